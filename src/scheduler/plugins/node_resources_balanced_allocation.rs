//! NodeResourcesBalancedAllocation: better are nodes whose resources the pod makes used more alike.

use std::sync::Arc;

use super::args::{NodeResourcesBalancedAllocationArgs, ResourceSpec};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, MAX_NODE_SCORE, Plugin};
use crate::framework::pod_info::PodInfo;
use crate::framework::resource::Resource;
use crate::framework::status::Status;

/// The plugin.
#[derive(Default)]
pub struct NodeResourcesBalancedAllocation {
    /// Which resources are to be used alike.
    pub args: NodeResourcesBalancedAllocationArgs,
}

impl Plugin for NodeResourcesBalancedAllocation {
    fn name(&self) -> &'static str {
        "NodeResourcesBalancedAllocation"
    }

    /// A pod that asks for nothing unbalances nothing.
    fn pre_score(&self, _: &mut CycleState, pod: &PodInfo, _: &[Arc<NodeInfo>]) -> Status {
        let asks = |resource: &ResourceSpec| pod.requests.amount(&resource.name) > 0;
        if self.args.resources.iter().any(asks) { Status::success() } else { Status::skip() }
    }

    /// `balancedResourceScorer`: 75 when nothing changes, 100 when what was lopsided is even, 50 when what
    /// was even is lopsided.
    fn score(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let nothing = Resource::default();
        let with_pod = self.balance(&pod.requests, node);
        let without = self.balance(&nothing, node);
        MAX_NODE_SCORE / 2 + (MAX_NODE_SCORE / 2 + with_pod - without) / 2
    }
}

impl NodeResourcesBalancedAllocation {
    /// How even the shares are that are taken, with `more` than there is now.
    fn balance(&self, more: &Resource, node: &NodeInfo) -> i64 {
        let share = |resource: &ResourceSpec| {
            let all = node.allocatable.amount(&resource.name);
            let taken = node.requested.amount(&resource.name) + more.amount(&resource.name);
            (all != 0).then(|| (taken as f64 / all as f64).min(1.0))
        };
        let shares: Vec<f64> = self.args.resources.iter().filter_map(share).collect();
        ((1.0 - deviation(&shares)) * MAX_NODE_SCORE as f64) as i64
    }
}

/// The standard deviation; of two values it is half of what lies between them.
fn deviation(shares: &[f64]) -> f64 {
    match shares {
        [] | [_] => 0.0,
        [one, other] => ((one - other) / 2.0).abs(),
        shares => {
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            let squares: f64 = shares.iter().map(|share| (share - mean) * (share - mean)).sum();
            (squares / shares.len() as f64).sqrt()
        }
    }
}
