//! NodeResourcesBalancedAllocation: better are nodes whose CPU and memory are used alike.

use std::sync::Arc;

use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, MAX_NODE_SCORE, Plugin};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;

/// The plugin.
pub struct NodeResourcesBalancedAllocation;

impl Plugin for NodeResourcesBalancedAllocation {
    fn name(&self) -> &'static str {
        "NodeResourcesBalancedAllocation"
    }

    /// A pod that asks for nothing unbalances nothing.
    fn pre_score(&self, _: &mut CycleState, pod: &PodInfo, _: &[Arc<NodeInfo>]) -> Status {
        let asks = pod.requests.milli_cpu > 0 || pod.requests.memory > 0;
        if asks { Status::success() } else { Status::skip() }
    }

    fn score(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let (asked, taken, all) = (&pod.requests, &node.requested, &node.allocatable);
        let share = |all: i64, taken: i64| (all > 0).then(|| (taken as f64 / all as f64).min(1.0));
        let cpu = share(all.milli_cpu, taken.milli_cpu + asked.milli_cpu);
        let memory = share(all.memory, taken.memory + asked.memory);
        // The standard deviation of two values is half of what lies between them.
        let deviation = cpu.zip(memory).map_or(0.0, |(cpu, memory)| (cpu - memory).abs() / 2.0);
        ((1.0 - deviation) * MAX_NODE_SCORE as f64) as i64
    }
}
