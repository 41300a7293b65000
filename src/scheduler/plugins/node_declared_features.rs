//! NodeDeclaredFeatures: pods that need what not every kubelet can do go where it says that it can
//! (`component-helpers/nodedeclaredfeatures`).

use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, NodeSnapshot, Plugin, PreFilterResult};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apis::views::node::Node;

const NAME: &str = "NodeDeclaredFeatures";

/// The plugin.
pub struct NodeDeclaredFeatures;

impl Plugin for NodeDeclaredFeatures {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::Node, ActionType::Add),
            (EventResource::Node, ActionType::UpdateNodeDeclaredFeature),
        ]
    }

    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let Some(new) = &occurrence.new else { return QueueingHint::Queue };
        let declared = &new.view::<Node>().status.declared_features;
        QueueingHint::queue_if(pod.needed_features.iter().all(|need| declared.iter().any(|it| it == need)))
    }

    fn pre_filter(&self, _: &mut CycleState, pod: &PodInfo, _: &NodeSnapshot) -> (PreFilterResult, Status) {
        (None, if pod.needed_features.is_empty() { Status::skip() } else { Status::success() })
    }

    fn filter(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let declared = &node.node.status.declared_features;
        let lacks: Vec<&str> = pod
            .needed_features
            .iter()
            .copied()
            .filter(|need| !declared.iter().any(|it| it == need))
            .collect();
        if lacks.is_empty() {
            return Status::success();
        }
        let lacks = lacks.join(", ");
        Status::unresolvable(format!(
            "node declared features check failed - unsatisfied requirements: {lacks}"
        ))
    }
}
