//! TaintToleration: nodes push away the pods that do not tolerate their taints.

use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, Plugin, default_normalize};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apis::views::node::{Node, Taint};
use apis::views::pod;
use apis::views::toleration::Toleration;

/// The plugin.
pub struct TaintToleration;

impl Plugin for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
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
        QueueingHint::queue_if(untolerated(&new.view::<Node>().spec.taints, &pod.tolerations).is_none())
    }

    fn filter(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        match untolerated(&node.node.spec.taints, &pod.tolerations) {
            Some(_) => Status::unresolvable("node(s) had untolerated taint(s)"),
            None => Status::success(),
        }
    }

    fn pre_score(&self, _: &mut CycleState, _: &PodInfo, _: &[std::sync::Arc<NodeInfo>]) -> Status {
        Status::success()
    }

    /// Counts the taints that would rather not have the pod.
    fn score(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let tolerations = &pod.tolerations;
        let repels = |taint: &&Taint| {
            taint.effect == "PreferNoSchedule"
                && !tolerations.iter().any(|toleration| toleration.tolerates(taint))
        };
        node.node.spec.taints.iter().filter(repels).count() as i64
    }

    fn normalize_scores(&self, scores: &mut [i64]) {
        default_normalize(scores, true);
    }
}

/// The first taint that keeps a pod with these tolerations away.
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    pod::untolerated(taints, tolerations, &["NoSchedule", "NoExecute"])
}
