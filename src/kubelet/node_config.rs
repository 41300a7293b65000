//! What a simulated node is like: its name, its address and what it has.

use std::collections::BTreeMap;

use super::container_runtime::own_listeners::OwnListeners;
use super::container_runtime::stages::StageSet;
use super::options::KubeletOptions;
use apimachinery::quantity::Quantity;

/// A node, before its kubelet starts.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// As `node-1`.
    pub name: String,
    /// Its address (`InternalIP`).
    pub address: String,
    /// Where its pods' addresses come from.
    pub pod_cidr: String,
    /// The name server of its pods (`--cluster-dns`).
    pub cluster_dns: String,
    /// Labels beside those that every node has.
    pub labels: BTreeMap<String, String>,
    /// Quantities of `cpu`, `memory`, `ephemeral-storage` and `pods`, and of whatever else it has.
    pub capacity: BTreeMap<String, String>,
    /// What happens to its pods.
    pub stages: StageSet,
    /// What its kubelet is told.
    pub options: KubeletOptions,
    /// What listens at ports of its pods because the user says so.
    pub listeners: OwnListeners,
}

impl NodeConfig {
    /// The `number`th node, counted from 1: 8 CPUs, 32 GiB, 110 pods, and addresses that go with its number.
    /// The first 3,000 get 254 pod addresses each that nobody else has, as `10.244.1.0/24`.
    pub fn numbered(number: u32) -> NodeConfig {
        let capacity = [("cpu", "8"), ("memory", "32Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110")];
        NodeConfig {
            name: format!("node-{number}"),
            address: format!("172.18.{}.{}", (number + 1) >> 8 & 0xff, (number + 1) & 0xff),
            pod_cidr: format!("10.{}.{}.0/24", 244 + (number >> 8) % 12, number & 0xff),
            cluster_dns: "10.96.0.10".into(),
            labels: BTreeMap::new(),
            capacity: capacity.into_iter().map(|(name, amount)| (name.into(), amount.into())).collect(),
            stages: StageSet::builtin(),
            options: KubeletOptions::default(),
            listeners: OwnListeners::default(),
        }
    }

    /// The user that its kubelet is.
    pub fn user_name(&self) -> String {
        format!("system:node:{}", self.name)
    }

    /// What is left for pods: a tenth of the disk is kept for the node, as the eviction threshold does.
    pub(crate) fn allocatable(&self) -> BTreeMap<String, String> {
        let amount = |(name, amount): (&String, &String)| {
            let left = match (name.as_str(), Quantity::parse(amount)) {
                ("ephemeral-storage", Ok(quantity)) => (quantity.value() / 10 * 9).to_string(),
                _ => amount.clone(),
            };
            (name.clone(), left)
        };
        self.capacity.iter().map(amount).collect()
    }
}
