//! NodeAffinity: which nodes a pod wants, by `nodeSelector` and by `affinity.nodeAffinity`.

use std::sync::Arc;

use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, Plugin, PreFilterResult, Snapshot, default_normalize};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apimachinery::object::{Object, ObjectMeta};
use apis::views::node_affinity::has_labels;

/// The plugin.
pub struct NodeAffinity;

impl Plugin for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[(EventResource::Node, ActionType::Add), (EventResource::Node, ActionType::UpdateNodeLabel)]
    }

    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let fits = |node: &Arc<Object>| matches(pod, &node.metadata);
        QueueingHint::queue_if(occurrence.new.as_ref().is_none_or(fits))
    }

    fn pre_filter(&self, _: &mut CycleState, pod: &PodInfo, _: &Snapshot) -> (PreFilterResult, Status) {
        if pod.pod.spec.node_selector.is_empty() && pod.affinity.required.is_none() {
            return (None, Status::skip());
        }
        match pod.affinity.named_nodes() {
            Some(nodes) if nodes.is_empty() && has_terms(pod) => {
                (None, Status::unresolvable("pod affinity terms conflict"))
            }
            named => (named.filter(|nodes| !nodes.is_empty()), Status::success()),
        }
    }

    fn filter(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let fits = node.object.as_ref().is_some_and(|object| matches(pod, &object.metadata));
        if fits {
            Status::success()
        } else {
            Status::unresolvable("node(s) didn't match Pod's node affinity/selector")
        }
    }

    fn pre_score(&self, _: &mut CycleState, pod: &PodInfo, _: &[Arc<NodeInfo>]) -> Status {
        if pod.affinity.preferred.is_empty() { Status::skip() } else { Status::success() }
    }

    /// The weights of the preferences that the node meets; one with an empty term is met by no node.
    fn score(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let Some(object) = &node.object else { return 0 };
        let met = pod.affinity.preferred.iter().filter(|term| term.preference.matches(&object.metadata));
        met.map(|term| term.weight).sum()
    }

    fn normalize_scores(&self, scores: &mut [i64]) {
        default_normalize(scores, false);
    }
}

fn has_terms(pod: &PodInfo) -> bool {
    pod.affinity.required.as_ref().is_some_and(|required| !required.node_selector_terms.is_empty())
}

/// Whether the pod wants to be on the node.
pub fn matches(pod: &PodInfo, node: &ObjectMeta) -> bool {
    has_labels(node, &pod.pod.spec.node_selector)
        && pod.affinity.required.as_ref().is_none_or(|required| required.matches(node))
}
