//! NodeAffinity: which nodes a pod wants, by `nodeSelector` and by `affinity.nodeAffinity`.

use std::sync::Arc;

use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, NodeSnapshot, Plugin, PreFilterResult, default_normalize};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apimachinery::object::{Object, ObjectMeta};
use apis::views::node_affinity::{NodeAffinity as Affinity, PreferredTerm, has_labels};

/// The plugin.
#[derive(Default)]
pub struct NodeAffinityPlugin {
    /// What every pod wants beside what it wants itself (`addedAffinity`).
    pub added: Affinity,
}

impl Plugin for NodeAffinityPlugin {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[(EventResource::Node, ActionType::Add), (EventResource::Node, ActionType::UpdateNodeLabel)]
    }

    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let fits = |node: &Arc<Object>| self.is_enforced(&node.metadata) && matches(pod, &node.metadata);
        QueueingHint::queue_if(occurrence.new.as_ref().is_none_or(fits))
    }

    fn pre_filter(&self, _: &mut CycleState, pod: &PodInfo, _: &NodeSnapshot) -> (PreFilterResult, Status) {
        let is_free = pod.node_selector.is_empty() && pod.affinity.required.is_none();
        if is_free && self.added.required.is_none() {
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
        let is = |fits: &dyn Fn(&ObjectMeta) -> bool| {
            node.object.as_ref().is_some_and(|object| fits(&object.metadata))
        };
        if !is(&|node| self.is_enforced(node)) {
            return Status::unresolvable("node(s) didn't match scheduler-enforced node affinity");
        }
        if !is(&|node| matches(pod, node)) {
            return Status::unresolvable("node(s) didn't match Pod's node affinity/selector");
        }
        Status::success()
    }

    fn pre_score(&self, _: &mut CycleState, pod: &PodInfo, _: &[Arc<NodeInfo>]) -> Status {
        let is_indifferent = pod.affinity.preferred.is_empty() && self.added.preferred.is_empty();
        if is_indifferent { Status::skip() } else { Status::success() }
    }

    /// The weights of the preferences that the node meets; one with an empty term is met by no node.
    fn score(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let Some(object) = &node.object else { return 0 };
        let is_met = |term: &&PreferredTerm| term.preference.matches(&object.metadata);
        let all = self.added.preferred.iter().chain(&pod.affinity.preferred);
        all.filter(is_met).map(|term| term.weight).sum()
    }

    fn normalize_scores(&self, scores: &mut [i64]) {
        default_normalize(scores, false);
    }
}

impl NodeAffinityPlugin {
    fn is_enforced(&self, node: &ObjectMeta) -> bool {
        self.added.required.as_ref().is_none_or(|required| required.matches(node))
    }
}

fn has_terms(pod: &PodInfo) -> bool {
    pod.affinity.required.as_ref().is_some_and(|required| !required.node_selector_terms.is_empty())
}

/// Whether the pod wants to be on the node.
pub fn matches(pod: &PodInfo, node: &ObjectMeta) -> bool {
    has_labels(node, &pod.node_selector)
        && pod.affinity.required.as_ref().is_none_or(|required| required.matches(node))
}
