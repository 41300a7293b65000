//! NodeName: a pod that names its node goes nowhere else.

use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, Plugin};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;

/// The plugin.
pub struct NodeName;

impl Plugin for NodeName {
    fn name(&self) -> &'static str {
        "NodeName"
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[(EventResource::Node, ActionType::Add)]
    }

    fn filter(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let wanted = pod.node_name();
        if wanted.is_empty() || *wanted == *node.name {
            return Status::success();
        }
        Status::unresolvable("node(s) didn't match the requested node name")
    }
}
