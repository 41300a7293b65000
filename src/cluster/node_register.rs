//! `NodeRegister`: the simulated nodes of one cluster, those that run and those that are stopped, and what a
//! new one is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::config::Config;
use super::stages;
use apimachinery::object::Object;
use apimachinery::time::Time;
use controllers::options::ControllerManagerOptions;
use kubelet::node_config::NodeConfig;
use kubelet::node_group::{self, MAX_NODES, NodeGroup};
use kubelet::node_refusal::NodeRefusal;
use sync::{Mutex, MutexGuard};

/// The nodes by their names.
pub(super) struct NodeRegister {
    /// Bound: [`MAX_NODES`].
    nodes: Mutex<BTreeMap<String, NodeConfig>>,
    /// What all have in common.
    template: NodeConfig,
    controller_manager: ControllerManagerOptions,
}

impl NodeRegister {
    /// Those that the config has. The error is about the stages, the addresses of pods, or the groups.
    pub(super) fn new(config: &Config) -> Result<NodeRegister, NodeRefusal> {
        let register = NodeRegister {
            nodes: Mutex::default(),
            template: template(config, config.stages.as_deref())?,
            controller_manager: config.controller_manager.clone(),
        };
        for number in 1..=config.nodes {
            let node = register.numbered(number)?;
            register.lock().insert(node.name.clone(), node);
        }
        node_group::check_all(&config.node_groups)?;
        for group in &config.node_groups {
            register.reserve(group)?;
        }
        Ok(register)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<NodeConfig> {
        self.lock().values().cloned().collect()
    }

    /// Has those that another cluster has, of which this one is a fork, and no others.
    pub(super) fn inherit(&self, nodes: Vec<NodeConfig>) {
        *self.lock() = nodes.into_iter().map(|node| (node.name.clone(), node)).collect();
    }

    /// Adds the nodes of a group, with addresses that nobody has.
    ///
    /// # Errors
    /// Names that are taken, and more nodes than a cluster takes: then none is added.
    pub(super) fn reserve(&self, group: &NodeGroup) -> Result<Vec<NodeConfig>, NodeRefusal> {
        node_group::check_all(std::slice::from_ref(group))?;
        let mut nodes = self.lock();
        if let Some(taken) = group.names().find(|name| nodes.contains_key(name)) {
            return Err(format!("there is a node {taken:?} already").into());
        }
        room_for(nodes.len(), group.size())?;
        let mut free = free_numbers(&nodes);
        let mut made = Vec::new();
        for at in 0..group.size() {
            let mut node = self.free(&mut free, &nodes)?;
            group.fill(at, &mut node);
            made.push(node);
        }
        nodes.extend(made.iter().map(|node| (node.name.clone(), node.clone())));
        Ok(made)
    }

    /// Adds a node as somebody has created it. Says whether it was not known.
    ///
    /// # Errors
    /// Why it can have no kubelet.
    pub(super) fn adopt(&self, object: &Object) -> Result<bool, NodeRefusal> {
        let mut nodes = self.lock();
        if nodes.contains_key(&object.metadata.name) {
            return Ok(false);
        }
        room_for(nodes.len(), 1)?;
        let mut node = self.free(&mut free_numbers(&nodes), &nodes)?;
        node_group::take_from(object, &mut node);
        node.check()?;
        nodes.insert(node.name.clone(), node);
        Ok(true)
    }

    /// The machine of a node is started again.
    pub(super) fn reboot(&self, name: &str, now: Time) {
        if let Some(node) = self.lock().get_mut(name) {
            node.boots.again(now);
        }
    }

    /// A node whose kubelet is about to start: the next one is not the first after a boot any more.
    pub(super) fn boot(&self, name: &str) -> Option<NodeConfig> {
        let mut nodes = self.lock();
        let node = nodes.get_mut(name)?;
        let booting = node.clone();
        node.boots.is_new = false;
        Some(booting)
    }

    /// There is no such node any more.
    pub(super) fn forget(&self, name: &str) -> Option<NodeConfig> {
        self.lock().remove(name)
    }

    /// The next whose addresses nobody has.
    fn free(
        &self,
        numbers: &mut impl Iterator<Item = u32>,
        nodes: &BTreeMap<String, NodeConfig>,
    ) -> Result<NodeConfig, String> {
        let ranges: BTreeSet<&str> = nodes.values().map(|node| node.pod_cidr.as_str()).collect();
        loop {
            let number = numbers.next().ok_or("there are no addresses left for nodes")?;
            let node = self.numbered(number)?;
            if !ranges.contains(node.pod_cidr.as_str()) {
                return Ok(node);
            }
        }
    }

    fn numbered(&self, number: u32) -> Result<NodeConfig, String> {
        let NodeConfig { name, address, pod_cidr, .. } = NodeConfig::numbered(number);
        let given = self.controller_manager.pod_cidr(number)?;
        Ok(NodeConfig { name, address, pod_cidr: given.unwrap_or(pod_cidr), ..self.template.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, NodeConfig>> {
        self.nodes.lock()
    }
}

fn template(config: &Config, folder: Option<&Path>) -> Result<NodeConfig, String> {
    let mut node = NodeConfig::numbered(1);
    node.capacity.insert("pods".into(), config.kubelet.max_pods.to_string());
    node.stages = stages::load(folder)?;
    node.cluster_dns = config.apiserver.services.service_cluster_ip_range.cluster_dns().to_string();
    node.options = config.kubelet.clone();
    node.listeners = config.listeners.clone();
    node.runtime = config.runtime.clone();
    Ok(node)
}

fn room_for(there: usize, more: u32) -> Result<(), String> {
    if there + more as usize <= MAX_NODES as usize {
        return Ok(());
    }
    Err(format!("a cluster takes {MAX_NODES} simulated nodes, and there are {there}"))
}

/// The numbers of which no node has the address.
fn free_numbers(nodes: &BTreeMap<String, NodeConfig>) -> impl Iterator<Item = u32> + use<> {
    let taken: BTreeSet<String> = nodes.values().map(|node| node.address.clone()).collect();
    // As many as there may be nodes, and as many again that others have.
    (1..=2 * MAX_NODES).filter(move |number| !taken.contains(&NodeConfig::numbered(*number).address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, count: Option<u32>) -> NodeGroup {
        NodeGroup { name: name.into(), count, ..NodeGroup::default() }
    }

    #[test]
    fn nodes_have_addresses_of_their_own_and_names_once() {
        let config = Config::new().nodes(2).node_groups([group("gpu", Some(2))]);
        let register = NodeRegister::new(&config).unwrap();
        assert_eq!(register.names(), ["gpu-1", "gpu-2", "node-1", "node-2"]);
        register.forget("node-1");
        register.reserve(&group("late", None)).unwrap();
        let addresses: BTreeSet<_> = register.all().into_iter().map(|node| node.address).collect();
        let ranges: BTreeSet<_> = register.all().into_iter().map(|node| node.pod_cidr).collect();
        assert_eq!((addresses.len(), ranges.len()), (4, 4));
        assert!(register.reserve(&group("late", None)).is_err_and(|why| why.0.contains("already")));
        let many = register.reserve(&group("many", Some(MAX_NODES))).unwrap_err();
        assert_eq!(many.0, "a cluster takes 3000 simulated nodes, and there are 4");
        assert_eq!(register.names().len(), 4);
    }

    #[test]
    fn a_fork_has_the_nodes_of_its_parent_and_no_others() {
        let config = Config::new().nodes(2).node_groups([group("gpu", None)]);
        let (parent, fork) = (NodeRegister::new(&config).unwrap(), NodeRegister::new(&config).unwrap());
        parent.forget("gpu");
        parent.reboot("node-1", Time::UNIX_EPOCH);
        fork.inherit(parent.all());
        assert_eq!(fork.names(), ["node-1", "node-2"]);
        assert!(fork.boot("node-1").unwrap().boots.is_new, "its first kubelet finds nothing");
        assert!(!fork.boot("node-1").unwrap().boots.is_new);
        fork.inherit(vec![]);
        assert!(fork.names().is_empty());
    }
}
