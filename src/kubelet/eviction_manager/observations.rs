//! What is left of what a node has (`makeSignalObservations`).

use std::collections::BTreeMap;

use super::ranking::PodUse;
use super::signal::Signal;
use crate::node_config::NodeConfig;
use apimachinery::quantity::Quantity;

/// What a node uses of its memory beside its pods: as much as its metrics say, and of a small one an eighth.
const OWN_BYTES: i64 = 512 << 20;
/// A disk has room for so many files: what `mkfs.ext4` makes of it (`inode_ratio`).
const BYTES_PER_INODE: i64 = 16_384;
/// The processes that a machine takes (`/proc/sys/kernel/pid_max`).
const MOST_PIDS: i64 = 32_768;

/// Of one signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) available: i64,
    pub(super) capacity: i64,
}

/// Of all. Nothing is said of what the node does not say how much of it has.
pub(super) fn observe(config: &NodeConfig, pods: &[PodUse]) -> BTreeMap<Signal, Observation> {
    let capacity = |name: &str| Quantity::parse(config.capacity.get(name)?).ok().map(|amount| amount.value());
    let used = |of: fn(&PodUse) -> i64| pods.iter().fold(0_i64, |sum, pod| sum.saturating_add(of(pod)));
    let mut all = BTreeMap::new();
    if let Some(capacity) = capacity("memory") {
        let own = OWN_BYTES.min(capacity / 8);
        let available = (capacity - own).saturating_sub(used(|pod| pod.memory));
        all.insert(Signal::Memory, Observation { available: available.max(0), capacity });
    }
    if let Some(capacity) = capacity("ephemeral-storage") {
        let available = capacity.saturating_sub(used(|pod| pod.disk)).max(0);
        all.insert(Signal::NodeFs, Observation { available, capacity });
        all.insert(Signal::ImageFs, Observation { available, capacity });
        let capacity = capacity / BYTES_PER_INODE;
        let available = capacity.saturating_sub(used(|pod| pod.inodes)).max(0);
        all.insert(Signal::NodeFsInodes, Observation { available, capacity });
        all.insert(Signal::ImageFsInodes, Observation { available, capacity });
    }
    let available = MOST_PIDS.saturating_sub(used(|pod| pod.pids)).max(0);
    all.insert(Signal::Pids, Observation { available, capacity: MOST_PIDS });
    all
}
