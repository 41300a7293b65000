//! InterPodAffinity: which pods want to be near each other, and which do not.

use std::collections::HashMap;
use std::sync::Arc;

use super::args::InterPodAffinityArgs;
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, MAX_NODE_SCORE, Plugin, PreFilterResult, Snapshot};
use crate::framework::pod_affinity::{AffinityTerm, PodAffinity};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apimachinery::object::{Object, ObjectMeta};
use apis::views::pod::Pod;
use client_go::lister::Lister;

const NAME: &str = "InterPodAffinity";
/// The plugin. Namespaces are read because terms may select them by their labels.
pub struct InterPodAffinity {
    /// Of namespaces.
    pub namespaces: Lister,
    /// What it is told.
    pub args: InterPodAffinityArgs,
}

/// A label of nodes and a value of it, with a number.
type Topology = HashMap<(String, String), i64>;

/// How many pods there are in each domain that matter to the pod.
#[derive(Default)]
struct AffinityCounts {
    /// Pods that do not want it near.
    repelling: Topology,
    /// Pods that it wants near.
    attracting: Topology,
    /// Pods that it does not want near.
    avoided: Topology,
}

impl Plugin for InterPodAffinity {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::AssignedPod, ActionType::Add),
            (EventResource::AssignedPod, ActionType::Delete),
            (EventResource::AssignedPod, ActionType::UpdatePodLabel),
            (EventResource::Node, ActionType::Add),
            (EventResource::Node, ActionType::UpdateNodeLabel),
            (EventResource::Namespace, ActionType::Add),
            (EventResource::Namespace, ActionType::Update),
        ]
    }

    /// A pod is worth a try if it is wanted near, if it was not wanted near and has gone or changed, or if it
    /// did not want this one near. A node is, if it has a label that the pod looks at.
    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let wants = &pod.pod_affinity;
        let objects = occurrence.old.iter().chain(&occurrence.new);
        let mut objects = objects.map(|object| (object, occurrence.event.0));
        let helps = |(object, resource): (&Arc<Object>, EventResource)| match resource {
            EventResource::AssignedPod => {
                let metadata = &object.metadata;
                let wanted = || wants.required.iter().any(|term| self.matches(term, metadata));
                let avoided = || wants.required_anti.iter().any(|term| self.matches(term, metadata));
                let avoids = || {
                    let theirs = PodAffinity::of(&object.view::<Pod>(), &metadata.namespace);
                    theirs.required_anti.iter().any(|term| self.matches(term, &pod.object.metadata))
                };
                wanted() || avoided() || avoids()
            }
            EventResource::Node if !(wants.required.is_empty() && wants.required_anti.is_empty()) => {
                let mut terms = wants.required.iter().chain(&wants.required_anti);
                terms.any(|term| object.metadata.labels.contains_key(&term.topology_key))
            }
            _ => true,
        };
        QueueingHint::queue_if(objects.any(helps))
    }

    fn pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        snapshot: &Snapshot,
    ) -> (PreFilterResult, Status) {
        let counts = self.count(pod, snapshot);
        let wants = &pod.pod_affinity;
        if counts.repelling.is_empty() && wants.required.is_empty() && wants.required_anti.is_empty() {
            return (None, Status::skip());
        }
        state.write(NAME, counts);
        state.looks_at_other_nodes = true;
        (None, Status::success())
    }

    fn filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let Some(counts) = state.read::<AffinityCounts>(NAME) else { return Status::success() };
        let labels = |key: &str| node.label(key);
        let near = |topology: &Topology, term: &AffinityTerm| {
            let value = labels(&term.topology_key);
            value.is_some_and(|value| topology.contains_key(&(term.topology_key.clone(), value.to_owned())))
        };
        let wants = &pod.pod_affinity;
        if !wants.required.is_empty() && !self.is_attracted(counts, pod, node) {
            return Status::unresolvable("node(s) didn't match pod affinity rules");
        }
        if wants.required_anti.iter().any(|term| near(&counts.avoided, term)) {
            return Status::unschedulable("node(s) didn't match pod anti-affinity rules");
        }
        if counts.repelling.keys().any(|(key, value)| labels(key) == Some(value)) {
            return Status::unschedulable("node(s) didn't satisfy existing pods anti-affinity rules");
        }
        Status::success()
    }

    fn pre_score(&self, state: &mut CycleState, pod: &PodInfo, _: &[Arc<NodeInfo>]) -> Status {
        let ignores_others = self.args.ignore_preferred_terms_of_existing_pods;
        let others_care = || state.nodes.iter().any(|node| node.pods_with_affinity > 0);
        if pod.pod_affinity.preferred.is_empty() && (ignores_others || !others_care()) {
            return Status::skip();
        }
        let weights = self.weigh(pod, &state.nodes);
        if weights.is_empty() {
            return Status::skip();
        }
        state.write(SCORES, weights);
        Status::success()
    }

    fn score(&self, state: &CycleState, _pod: &PodInfo, node: &NodeInfo) -> i64 {
        let Some(weights) = state.read::<Topology>(SCORES) else { return 0 };
        let here = weights.iter().filter(|((key, value), _)| node.label(key) == Some(value));
        here.map(|(_, weight)| weight).sum()
    }

    fn normalize_scores(&self, scores: &mut [i64]) {
        let (least, most) = (scores.iter().min().copied(), scores.iter().max().copied());
        let (least, range) = (least.unwrap_or(0), most.unwrap_or(0) - least.unwrap_or(0));
        for score in scores {
            let share = (*score - least) as f64 / range as f64;
            *score = if range == 0 { 0 } else { (MAX_NODE_SCORE as f64 * share) as i64 };
        }
    }
}

/// Under which name the weights are kept beside the counts.
const SCORES: &str = "InterPodAffinity/Score";

impl InterPodAffinity {
    fn matches(&self, term: &AffinityTerm, pod: &ObjectMeta) -> bool {
        let namespace = |name: &str| self.namespaces.get("", name).map(|found| found.metadata.clone());
        term.matches(pod, namespace)
    }

    fn count(&self, pod: &PodInfo, snapshot: &Snapshot) -> AffinityCounts {
        let wants = &pod.pod_affinity;
        let looks_at_all = !wants.required.is_empty() || !wants.required_anti.is_empty();
        let mut counts = AffinityCounts::default();
        for node in snapshot.iter().filter(|node| looks_at_all || node.pods_with_affinity > 0) {
            for other in &node.pods {
                let anti = other.pod_affinity.required_anti.iter();
                add(
                    &mut counts.repelling,
                    node,
                    anti.filter(|term| self.matches(term, &pod.object.metadata)),
                    1,
                );
                if !wants.required.is_empty()
                    && wants.required.iter().all(|term| self.matches(term, &other.object.metadata))
                {
                    add(&mut counts.attracting, node, wants.required.iter(), 1);
                }
                let avoided =
                    wants.required_anti.iter().filter(|term| self.matches(term, &other.object.metadata));
                add(&mut counts.avoided, node, avoided, 1);
            }
        }
        counts
    }

    /// Each term has its pods near the node. The first of pods that only want each other may go anywhere.
    fn is_attracted(&self, counts: &AffinityCounts, pod: &PodInfo, node: &NodeInfo) -> bool {
        let terms = &pod.pod_affinity.required;
        let value = |term: &AffinityTerm| node.label(&term.topology_key).map(ToOwned::to_owned);
        let Some(values) = terms.iter().map(value).collect::<Option<Vec<String>>>() else { return false };
        let has_pods = |(term, value): (&AffinityTerm, String)| {
            counts.attracting.contains_key(&(term.topology_key.clone(), value))
        };
        let is_first =
            counts.attracting.is_empty() && terms.iter().all(|term| self.matches(term, &pod.object.metadata));
        terms.iter().zip(values).all(has_pods) || is_first
    }

    fn weigh(&self, pod: &PodInfo, nodes: &[Arc<NodeInfo>]) -> Topology {
        let mut weights = Topology::new();
        let wants = &pod.pod_affinity.preferred;
        for node in nodes.iter().filter(|node| !wants.is_empty() || node.pods_with_affinity > 0) {
            for other in &node.pods {
                for (weight, term) in
                    wants.iter().filter(|(_, term)| self.matches(term, &other.object.metadata))
                {
                    add(&mut weights, node, [term].into_iter(), *weight);
                }
                self.weigh_wishes_of(other, pod, node, &mut weights);
            }
        }
        weights
    }

    /// What a pod that is there thinks of the one that comes.
    fn weigh_wishes_of(&self, other: &PodInfo, pod: &PodInfo, node: &NodeInfo, weights: &mut Topology) {
        let theirs = &other.pod_affinity;
        if self.args.hard_pod_affinity_weight > 0 {
            let required = theirs.required.iter().filter(|term| self.matches(term, &pod.object.metadata));
            add(weights, node, required, self.args.hard_pod_affinity_weight);
        }
        if self.args.ignore_preferred_terms_of_existing_pods {
            return;
        }
        for (weight, term) in
            theirs.preferred.iter().filter(|(_, term)| self.matches(term, &pod.object.metadata))
        {
            add(weights, node, [term].into_iter(), *weight);
        }
    }
}

fn add<'a>(
    topology: &mut Topology,
    node: &NodeInfo,
    terms: impl Iterator<Item = &'a AffinityTerm>,
    weight: i64,
) {
    for term in terms {
        if let Some(value) = node.label(&term.topology_key) {
            *topology.entry((term.topology_key.clone(), value.to_owned())).or_default() += weight;
        }
    }
}

impl NodeInfo {
    /// The value of a label of the node.
    pub fn label(&self, key: &str) -> Option<&str> {
        let metadata: &ObjectMeta = &self.object.as_ref()?.metadata;
        metadata.labels.get(key).map(String::as_str)
    }
}
