//! NodeUnschedulable: no new pods on cordoned nodes, but for those that tolerate it.

use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, Plugin};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apis::views::node::{Node, Taint};

/// The plugin.
pub struct NodeUnschedulable;

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::Node, ActionType::Add),
            (EventResource::Node, ActionType::UpdateNodeTaint),
            (EventResource::TargetPod, ActionType::UpdatePodToleration),
        ]
    }

    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let Some(new) = occurrence.new.as_ref().filter(|_| occurrence.event.0 == EventResource::Node) else {
            return QueueingHint::Queue;
        };
        QueueingHint::queue_if(!new.view::<Node>().spec.unschedulable || tolerates_cordon(pod))
    }

    fn filter(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        if node.node.spec.unschedulable && !tolerates_cordon(pod) {
            return Status::unresolvable("node(s) were unschedulable");
        }
        Status::success()
    }
}

fn tolerates_cordon(pod: &PodInfo) -> bool {
    let key = "node.kubernetes.io/unschedulable".into();
    let taint = Taint { key, effect: "NoSchedule".into(), ..Taint::default() };
    pod.tolerations.iter().any(|toleration| toleration.tolerates(&taint))
}
