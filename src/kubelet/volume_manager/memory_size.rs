//! How large a volume in memory is (`calculateEmptyDirMemorySize` of `pkg/volume/emptydir`, KEP-1967).

use super::cgroup_files::pod_memory_limit;
use super::facts::VolumeFacts;
use apimachinery::quantity::Quantity;

/// Bytes: what all pods of the node may have, or less where the pod or its volume is limited.
pub(super) fn memory_size(facts: &VolumeFacts<'_>, size_limit: Option<&str>) -> u64 {
    let bytes = |text: &str| Quantity::parse(text).ok().map(|amount| amount.value());
    let of_node =
        facts.allocatable.get("memory").and_then(|text| bytes(text)).unwrap_or(facts.memory_capacity);
    let limits = [pod_memory_limit(facts.pod), size_limit.and_then(bytes)];
    let limits = limits.into_iter().flatten().filter(|limit| *limit > 0);
    let least = limits.fold(of_node, i64::min);
    least.try_into().unwrap_or(0)
}
