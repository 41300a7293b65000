//! `NodeRegister`: the simulated nodes of one cluster, those that run and those that are stopped, and what a
//! new one is made from.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use super::config::Config;
use super::control_plane_pods::ControlPlanePods;
use super::stages;
use super::taken_addresses::TakenAddresses;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::node::Node;
use controllers::options::ControllerManagerOptions;
use kubelet::node_config::{IpFamily, NodeConfig};
use kubelet::node_group::{self, MAX_NODES, NodeGroup};
use kubelet::node_refusal::NodeRefusal;
use sync::{Mutex, MutexGuard};

/// The nodes that there are, and what they have.
#[derive(Clone, Default)]
pub(super) struct RegisteredNodes {
    /// By name. Bound: [`MAX_NODES`].
    nodes: BTreeMap<String, NodeConfig>,
    /// What these have, and Nodes that are none of these.
    taken: TakenAddresses,
    /// Below this number nothing is free.
    free_from: u32,
    /// What is stored has been looked at.
    knows_stored: bool,
}

impl RegisteredNodes {
    fn insert(&mut self, node: NodeConfig) {
        self.taken.take(&node.name, &node.addresses, &node.pod_cidrs);
        self.nodes.insert(node.name.clone(), node);
    }

    fn remove(&mut self, name: &str) -> Option<NodeConfig> {
        self.taken.release(name);
        self.free_from = 1;
        self.nodes.remove(name)
    }

    fn refusal(&self, node: &NodeConfig) -> Option<String> {
        self.taken.refusal(&node.name, &node.addresses, &node.pod_cidrs)
    }

    /// A Node was there before.
    fn keep(&mut self, object: &Object) {
        let node = object.view::<Node>();
        let addresses = node_group::internal_addresses(&node);
        self.taken.take(&object.metadata.name, &addresses, node.spec.pod_ranges());
    }

    /// A node has the addresses of its Node, if it can.
    fn have_stored_addresses(&self, node: &mut NodeConfig) {
        let Some((addresses, ranges)) = self.taken.of(&node.name) else { return };
        let stored = NodeConfig { pod_cidrs: ranges.clone(), ..node.clone() };
        if stored.check().is_ok() {
            *node = stored;
        }
        if !addresses.is_empty() {
            node.addresses.clone_from(addresses);
        }
    }
}

/// The nodes by their names.
pub(super) struct NodeRegister {
    nodes: Mutex<RegisteredNodes>,
    /// What all have in common.
    template: NodeConfig,
    controller_manager: ControllerManagerOptions,
    /// Those of Services, of which pods have addresses when nobody says of which.
    families: Vec<IpFamily>,
    /// What nodes of the control plane run.
    control_plane: Option<ControlPlanePods>,
}

impl NodeRegister {
    /// Those that the config has. The error is about the stages, what kubelets are told, the addresses of
    /// pods, or the groups.
    pub(super) fn new(config: &Config) -> Result<NodeRegister, NodeRefusal> {
        let register = NodeRegister::with(config, RegisteredNodes::default())?;
        register.template.check()?;
        register.fill(config, &[])?;
        Ok(register)
    }

    /// Those that another cluster has, of which this one is a fork, and no others. The error is about the
    /// stages.
    pub(super) fn inheriting(config: &Config, nodes: RegisteredNodes) -> Result<NodeRegister, NodeRefusal> {
        NodeRegister::with(config, RegisteredNodes { knows_stored: true, ..nodes })
    }

    fn with(config: &Config, nodes: RegisteredNodes) -> Result<NodeRegister, NodeRefusal> {
        Ok(NodeRegister {
            nodes: Mutex::new(nodes),
            template: template(config, config.stages.as_deref())?,
            controller_manager: config.controller_manager.clone(),
            families: families(config),
            control_plane: ControlPlanePods::of(config),
        })
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.lock().nodes.contains_key(name)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.lock().nodes.keys().cloned().collect()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<NodeConfig> {
        self.lock().nodes.values().cloned().collect()
    }

    /// Whether it knows which Nodes are stored.
    pub(super) fn knows_stored(&self) -> bool {
        self.lock().knows_stored
    }

    /// For a fork.
    pub(super) fn registered(&self) -> RegisteredNodes {
        self.lock().clone()
    }

    /// Has the nodes of the config and no others. Those of which there is a Node already have its addresses,
    /// and nobody has those of another Node.
    ///
    /// # Errors
    /// There are not enough addresses; what is wrong with the groups.
    pub(super) fn fill(&self, config: &Config, stored: &[Arc<Object>]) -> Result<(), NodeRefusal> {
        let mut there = RegisteredNodes::default();
        stored.iter().for_each(|node| there.keep(node));
        for number in 1..=config.nodes {
            let mut node = self.numbered(number)?;
            there.have_stored_addresses(&mut node);
            if there.refusal(&node).is_some() {
                let NodeConfig { addresses, pod_cidrs, .. } = self.free(&mut there)?;
                (node.addresses, node.pod_cidrs) = (addresses, pod_cidrs);
                there.have_stored_addresses(&mut node);
            }
            there.insert(node);
        }
        node_group::check_all(&config.node_groups)?;
        for group in &config.node_groups {
            self.add_group(&mut there, group)?;
        }
        self.have_control_plane(config, &mut there);
        *self.lock() = there;
        Ok(())
    }

    /// Where no node says that it is one of the control plane, the first is.
    fn have_control_plane(&self, config: &Config, there: &mut RegisteredNodes) {
        let Some(pods) = self.control_plane.as_ref() else { return };
        if there.nodes.values().any(ControlPlanePods::are_on) {
            return;
        }
        let numbered = (config.nodes > 0).then(|| NodeConfig::name_of(1));
        let first = numbered.or_else(|| config.node_groups.iter().find_map(|group| group.names().next()));
        let node = first.and_then(|first| there.nodes.get_mut(&first));
        node.into_iter().for_each(|node| pods.put_on(node));
    }

    /// Adds the nodes of a group, with addresses that nobody has.
    ///
    /// # Errors
    /// Names that are taken, and more nodes than a cluster takes: then none is added.
    pub(super) fn reserve(&self, group: &NodeGroup) -> Result<Vec<NodeConfig>, NodeRefusal> {
        node_group::check_all(std::slice::from_ref(group))?;
        self.add_group(&mut self.lock(), group)
    }

    fn add_group(
        &self,
        there: &mut RegisteredNodes,
        group: &NodeGroup,
    ) -> Result<Vec<NodeConfig>, NodeRefusal> {
        if let Some(taken) = group.names().find(|name| there.nodes.contains_key(name)) {
            return Err(format!("there is a node {taken:?} already").into());
        }
        room_for(there.nodes.len(), group.size())?;
        let mut made: Vec<NodeConfig> = Vec::new();
        for at in 0..group.size() {
            let free = self.free(there);
            let Ok(mut node) = free else {
                made.iter().for_each(|node| drop(there.remove(&node.name)));
                return Err(free.err().unwrap_or_default().into());
            };
            group.fill(at, &mut node);
            there.have_stored_addresses(&mut node);
            let pods = self.control_plane.as_ref().filter(|_| ControlPlanePods::are_on(&node));
            pods.into_iter().for_each(|pods| pods.put_on(&mut node));
            there.insert(node.clone());
            made.push(node);
        }
        Ok(made)
    }

    /// Adds a node as somebody has created it. Says whether it was not known.
    ///
    /// # Errors
    /// Why it can have no kubelet.
    pub(super) fn adopt(&self, object: &Object) -> Result<bool, NodeRefusal> {
        let mut there = self.lock();
        if there.nodes.contains_key(&object.metadata.name) {
            return Ok(false);
        }
        room_for(there.nodes.len(), 1)?;
        let mut node = self.free(&mut there)?;
        node_group::take_from(object, &mut node);
        node.check()?;
        there.refusal(&node).map_or(Ok(()), |why| Err(NodeRefusal(why)))?;
        there.insert(node);
        Ok(true)
    }

    /// The machine of a node is started again.
    pub(super) fn reboot(&self, name: &str, now: Time) {
        if let Some(node) = self.lock().nodes.get_mut(name) {
            node.boots.again(now);
        }
    }

    /// A node whose kubelet is about to start: the next one is not the first after a boot any more.
    pub(super) fn boot(&self, name: &str) -> Option<NodeConfig> {
        let mut there = self.lock();
        let node = there.nodes.get_mut(name)?;
        let booting = node.clone();
        node.boots.is_new = false;
        Some(booting)
    }

    /// Its kubelet will be reached there.
    pub(super) fn reached_at(&self, name: &str, endpoint: SocketAddr) {
        self.lock().nodes.get_mut(name).into_iter().for_each(|node| node.endpoint = Some(endpoint));
    }

    /// There is no such node any more.
    pub(super) fn forget(&self, name: &str) -> Option<NodeConfig> {
        self.lock().remove(name)
    }

    /// There is no such Node any more, which may have been nobody's here.
    pub(super) fn release(&self, name: &str) {
        let mut there = self.lock();
        if !there.nodes.contains_key(name) {
            there.remove(name);
        }
    }

    /// The next whose addresses nobody has.
    fn free(&self, there: &mut RegisteredNodes) -> Result<NodeConfig, String> {
        // As many as there may be nodes, and as many again that others have.
        for number in there.free_from.max(1)..=2 * MAX_NODES {
            let node = self.numbered(number)?;
            if there.taken.refusal("", &node.addresses, &node.pod_cidrs).is_none() {
                there.free_from = number;
                return Ok(node);
            }
        }
        Err("there are no addresses left for nodes".into())
    }

    fn numbered(&self, number: u32) -> Result<NodeConfig, String> {
        let node = NodeConfig { name: NodeConfig::name_of(number), ..self.template.clone() };
        let given = self.controller_manager.pod_cidrs(number)?;
        Ok(if given.is_empty() {
            node.of_families(number, &self.families)
        } else {
            node.with_ranges(number, given)
        })
    }

    fn lock(&self) -> MutexGuard<'_, RegisteredNodes> {
        self.nodes.lock()
    }
}

fn template(config: &Config, folder: Option<&Path>) -> Result<NodeConfig, String> {
    let mut node = NodeConfig::told(1, config.kubelet.clone());
    node.capacity.insert("pods".into(), config.kubelet.max_pods.to_string());
    node.stages = stages::load(folder)?;
    node.cluster_dns = config.apiserver.services.service_cluster_ip_range.cluster_dns().to_string();
    node.listeners = config.listeners.clone();
    node.runtime = config.runtime.clone();
    Ok(node)
}

fn families(config: &Config) -> Vec<IpFamily> {
    let ranges = config.apiserver.services.service_cluster_ip_range.all();
    ranges.map(|range| if range.network.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 }).collect()
}

fn room_for(there: usize, more: u32) -> Result<(), String> {
    if there + more as usize <= MAX_NODES as usize {
        return Ok(());
    }
    Err(format!("a cluster takes {MAX_NODES} simulated nodes, and there are {there}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use apis::networking::service_ranges::ServiceRanges;
    use controllers::cidr_set::ClusterCidrs;
    use serde_json::json;

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
        let addresses: BTreeSet<_> = register.all().into_iter().map(|node| node.addresses).collect();
        let ranges: BTreeSet<_> = register.all().into_iter().map(|node| node.pod_cidrs).collect();
        assert_eq!((addresses.len(), ranges.len()), (4, 4));
        assert!(register.reserve(&group("late", None)).is_err_and(|why| why.0.contains("already")));
        let many = register.reserve(&group("many", Some(MAX_NODES))).unwrap_err();
        assert_eq!(many.0, "a cluster takes 3000 simulated nodes, and there are 4");
        assert_eq!(register.names().len(), 4);
    }

    #[test]
    fn control_planes_are_on_the_nodes_that_say_so_or_on_the_first() {
        let having = |config: Config| -> Vec<String> {
            let register = NodeRegister::new(&config).unwrap();
            let mut late = group("late", None);
            late.roles = vec!["control-plane".into()];
            register.reserve(&late).unwrap();
            let nodes = register.all().into_iter().filter(|node| !node.static_pods.is_empty());
            nodes.map(|node| node.name).collect()
        };
        assert_eq!(having(Config::new().nodes(2)), [""; 0]);
        let shown = || Config::new().system_pods(true);
        assert_eq!(having(shown().nodes(2)), ["late", "node-1"]);
        let groups = || [group("b", None), group("a", None)];
        assert_eq!(having(shown().nodes(0).node_groups(groups())), ["b", "late"]);
        let mut groups = groups();
        groups[1].roles = vec!["control-plane".into()];
        assert_eq!(having(shown().nodes(1).node_groups(groups)), ["a", "late"]);
    }

    #[test]
    fn a_fork_has_the_nodes_of_its_parent_and_no_others() {
        let config = Config::new().nodes(2).node_groups([group("gpu", None)]);
        let parent = NodeRegister::new(&config).unwrap();
        parent.forget("gpu");
        parent.reboot("node-1", Time::UNIX_EPOCH);
        let fork = NodeRegister::inheriting(&config, parent.registered()).unwrap();
        assert_eq!(fork.names(), ["node-1", "node-2"]);
        assert!(fork.boot("node-1").unwrap().boots.is_new, "its first kubelet finds nothing");
        assert!(!fork.boot("node-1").unwrap().boots.is_new);
        let empty = NodeRegister::inheriting(&config, RegisteredNodes::default()).unwrap();
        assert!(empty.names().is_empty());
    }

    #[test]
    fn nodes_have_the_families_of_services_when_nobody_says_of_which() {
        let mut config = Config::new().nodes(1);
        config.apiserver.services.service_cluster_ip_range =
            ServiceRanges::parse("fd00:10:96::/112,10.96.0.0/16").unwrap();
        let node = NodeRegister::new(&config).unwrap().all().remove(0);
        assert_eq!(node.pod_cidrs, ["fd00:10:244:1::/64", "10.244.1.0/24"]);
        assert_eq!(node.addresses, ["fc00:f853:ccd:e793::2", "172.18.0.2"]);
        config.controller_manager.cluster_cidr = Some(ClusterCidrs::parse("10.7.0.0/16").unwrap());
        let node = NodeRegister::new(&config).unwrap().all().remove(0);
        assert_eq!((node.pod_cidrs, node.addresses), (vec!["10.7.0.0/24".into()], vec!["172.18.0.2".into()]));
    }

    fn stored(name: &str, address: &str, range: &str) -> Arc<Object> {
        let status = json!({"addresses": [{"type": "InternalIP", "address": address}]});
        let node = json!({"metadata": {"name": name}, "spec": {"podCIDR": range}, "status": status});
        Arc::new(Object::from_value(&node, vec![]).unwrap())
    }

    #[test]
    fn what_stored_nodes_have_nobody_else_is_given() {
        let config = Config::new().nodes(2).node_groups([group("gpu", Some(2))]);
        let register = NodeRegister::new(&config).unwrap();
        // Of a time with one node less, and of one that is nobody's.
        let there = [
            stored("gpu-1", "172.18.0.3", "10.244.2.0/24"),
            stored("node-1", "172.18.0.2", "10.244.1.0/24"),
            stored("theirs", "172.18.0.4", "10.244.3.0/24"),
        ];
        register.fill(&config, &there).unwrap();
        let range = |name: &str| {
            let all = register.all();
            all.into_iter()
                .find(|node| node.name == name)
                .map(|node| (node.addresses.join(","), node.pod_cidrs.join(",")))
        };
        let is = |address: &str, range: &str| Some((address.to_owned(), range.to_owned()));
        assert_eq!(range("node-1"), is("172.18.0.2", "10.244.1.0/24"));
        assert_eq!(range("gpu-1"), is("172.18.0.3", "10.244.2.0/24"), "as its Node says");
        assert_eq!(range("node-2"), is("172.18.0.5", "10.244.4.0/24"), "the next that is free");
        let ranges: BTreeSet<_> = register.all().into_iter().map(|node| node.pod_cidrs).collect();
        assert!(ranges.len() == 4 && !ranges.contains(&vec!["10.244.3.0/24".to_owned()]), "{ranges:?}");
        register.release("theirs");
        assert!(register.adopt(&stored("late", "172.18.0.4", "10.244.3.0/24")).unwrap());
    }

    #[test]
    fn a_node_that_says_it_has_what_another_has_is_refused() {
        let register = NodeRegister::new(&Config::new().nodes(2)).unwrap();
        let why = register.adopt(&stored("mine", "10.0.0.9", "10.244.0.0/16")).unwrap_err().0;
        assert_eq!(why, "its pod CIDR 10.244.0.0/16 overlaps that of node \"node-2\"");
        let why = register.adopt(&stored("mine", "172.18.0.2", "")).unwrap_err().0;
        assert_eq!(why, "its address 172.18.0.2 is that of node \"node-1\"");
        assert_eq!(register.names(), ["node-1", "node-2"]);
        assert!(register.adopt(&stored("mine", "10.0.0.9", "10.1.0.0/16")).unwrap());
        register.forget("mine");
        assert!(register.adopt(&stored("other", "10.0.0.9", "10.1.0.0/16")).unwrap());
    }
}
