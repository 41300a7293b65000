//! Nodes that are added, removed, unwell and switched off, for whoever holds the cluster.

use super::Cluster;
use super::node_changes::refused;
use apimachinery::status::Status;
use kubelet::eviction::ShutdownGrace;
use kubelet::kubelet::Kubelet;
use kubelet::node_group::NodeGroup;
use kubelet::node_state::SaidCondition;

impl Cluster {
    /// Adds nodes while the cluster runs; when it returns they are ready. Their names.
    ///
    /// ```
    /// use kubarium::{Cluster, Config, NodeGroup};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let cluster = Cluster::start(Config::new()).await?;
    /// let capacity = [("nvidia.com/gpu".to_owned(), "8".to_owned())].into();
    /// let group = NodeGroup { name: "gpu".into(), count: Some(2), capacity, ..NodeGroup::default() };
    /// assert_eq!(cluster.add_nodes(&group).await?, ["gpu-1", "gpu-2"]);
    /// cluster.remove_node("gpu-2").await?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// What is wrong with the group, or that a name is taken.
    pub async fn add_nodes(&self, group: &NodeGroup) -> Result<Vec<String>, Status> {
        self.inside.add_nodes(&self.client(), group).await
    }

    /// Ends a node's kubelet and deletes the node. [`Cluster::stop_component`] of `kubelet/NODE` leaves the
    /// node.
    ///
    /// # Errors
    /// A node that is not simulated here.
    pub async fn remove_node(&self, name: &str) -> Result<(), Status> {
        self.inside.remove_node(&self.client(), name).await
    }

    /// The names of the simulated nodes.
    pub fn node_names(&self) -> Vec<String> {
        self.inside.running.nodes.names()
    }

    /// The kubelet of a node: it can be told of conditions that its node has from now on.
    ///
    /// # Errors
    /// A node that is not simulated here, or whose kubelet does not run.
    pub fn kubelet(&self, node: &str) -> Result<Kubelet, Status> {
        self.inside.kubelet(node)
    }

    /// Starts a node's machine again: what ran there is gone, and runs again as its restart policy says.
    ///
    /// # Errors
    /// A node that is not simulated here.
    pub fn reboot_node(&self, node: &str) -> Result<(), Status> {
        self.inside.reboot_node(node)
    }

    /// Switches a node's machine off. Its pods end in order before, as far as they are given time; with none
    /// they are just gone. [`Cluster::start_component`] of `kubelet/NODE` switches it on again.
    ///
    /// # Errors
    /// As [`Cluster::kubelet`].
    pub async fn shut_down_node(&self, node: &str, grace: ShutdownGrace) -> Result<(), Status> {
        self.inside.shut_down_node(node, grace).await
    }

    /// Its node has a condition, as `MemoryPressure`, until it recovers.
    ///
    /// # Errors
    /// As [`Cluster::kubelet`]; a condition that can be none.
    pub fn say_of_node(&self, node: &str, condition: SaidCondition) -> Result<(), Status> {
        self.kubelet(node)?.say(condition).map_err(refused)
    }
}
