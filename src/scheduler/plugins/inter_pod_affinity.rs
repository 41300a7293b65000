//! InterPodAffinity: which pods want to be near each other, and which do not.

use std::collections::HashMap;
use std::sync::Arc;

use super::args::InterPodAffinityArgs;
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, MAX_NODE_SCORE, NodeSnapshot, Plugin, PreFilterResult};
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

/// For each label of nodes, its values with a number. Bound: the nodes that there are.
#[derive(Default)]
struct Topology(Vec<(String, HashMap<String, i64>)>);

impl Topology {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// More of what is near a node by each of these terms. No allocation where there was such before.
    fn add<'a>(&mut self, node: &NodeInfo, terms: impl Iterator<Item = &'a AffinityTerm>, more: i64) {
        for term in terms {
            let key = &term.topology_key;
            let Some(value) = node.label(key) else { continue };
            let at = self.0.iter().position(|(own, _)| own == key).unwrap_or_else(|| {
                self.0.push((key.clone(), HashMap::new()));
                self.0.len() - 1
            });
            let values = &mut self.0[at].1;
            match values.get_mut(value) {
                Some(number) => *number += more,
                None => drop(values.insert(value.to_owned(), more)),
            }
        }
    }

    /// Whether there is something near a node by this term.
    fn is_near(&self, node: &NodeInfo, term: &AffinityTerm) -> bool {
        let values = self.0.iter().find(|(key, _)| *key == term.topology_key).map(|(_, values)| values);
        values.zip(node.label(&term.topology_key)).is_some_and(|(values, value)| values.contains_key(value))
    }

    /// The numbers of what is near a node.
    fn here<'a>(&'a self, node: &'a NodeInfo) -> impl Iterator<Item = i64> + 'a {
        self.0.iter().filter_map(|(key, values)| values.get(node.label(key)?).copied())
    }
}

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
        snapshot: &NodeSnapshot,
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
        let wants = &pod.pod_affinity;
        if !wants.required.is_empty() && !self.is_attracted(counts, pod, node) {
            return Status::unresolvable("node(s) didn't match pod affinity rules");
        }
        if wants.required_anti.iter().any(|term| counts.avoided.is_near(node, term)) {
            return Status::unschedulable("node(s) didn't match pod anti-affinity rules");
        }
        if counts.repelling.here(node).next().is_some() {
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
        weights.here(node).sum()
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

    fn count(&self, pod: &PodInfo, snapshot: &NodeSnapshot) -> AffinityCounts {
        let wants = &pod.pod_affinity;
        let looks_at_all = !wants.required.is_empty() || !wants.required_anti.is_empty();
        let mut counts = AffinityCounts::default();
        for node in snapshot.iter().filter(|node| looks_at_all || node.pods_with_affinity > 0) {
            for (other, number) in node.label_groups.all() {
                let metadata = &other.object.metadata;
                let theirs = other.pod_affinity.required_anti.iter();
                let repelling = theirs.filter(|term| self.matches(term, &pod.object.metadata));
                counts.repelling.add(node, repelling, number);
                if !wants.required.is_empty()
                    && wants.required.iter().all(|term| self.matches(term, metadata))
                {
                    counts.attracting.add(node, wants.required.iter(), number);
                }
                let avoided = wants.required_anti.iter().filter(|term| self.matches(term, metadata));
                counts.avoided.add(node, avoided, number);
            }
        }
        counts
    }

    /// Each term has its pods near the node. The first of pods that only want each other may go anywhere.
    fn is_attracted(&self, counts: &AffinityCounts, pod: &PodInfo, node: &NodeInfo) -> bool {
        let terms = &pod.pod_affinity.required;
        if !terms.iter().all(|term| node.label(&term.topology_key).is_some()) {
            return false;
        }
        let is_first =
            counts.attracting.is_empty() && terms.iter().all(|term| self.matches(term, &pod.object.metadata));
        is_first || terms.iter().all(|term| counts.attracting.is_near(node, term))
    }

    fn weigh(&self, pod: &PodInfo, nodes: &[Arc<NodeInfo>]) -> Topology {
        let mut weights = Topology::default();
        let wants = &pod.pod_affinity.preferred;
        for node in nodes.iter().filter(|node| !wants.is_empty() || node.pods_with_affinity > 0) {
            for (other, number) in node.label_groups.all() {
                for (weight, term) in
                    wants.iter().filter(|(_, term)| self.matches(term, &other.object.metadata))
                {
                    weights.add(node, [term].into_iter(), *weight * number);
                }
                self.weigh_wishes_of((other, number), pod, node, &mut weights);
            }
        }
        weights
    }

    /// What pods that are there, so many of a kind, think of the one that comes.
    fn weigh_wishes_of(
        &self,
        (other, number): (&PodInfo, i64),
        pod: &PodInfo,
        node: &NodeInfo,
        weights: &mut Topology,
    ) {
        let theirs = &other.pod_affinity;
        if self.args.hard_pod_affinity_weight > 0 {
            let required = theirs.required.iter().filter(|term| self.matches(term, &pod.object.metadata));
            weights.add(node, required, self.args.hard_pod_affinity_weight * number);
        }
        if self.args.ignore_preferred_terms_of_existing_pods {
            return;
        }
        for (weight, term) in
            theirs.preferred.iter().filter(|(_, term)| self.matches(term, &pod.object.metadata))
        {
            weights.add(node, [term].into_iter(), *weight * number);
        }
    }
}
