//! PodTopologySpread: pods of a kind are spread evenly over zones, nodes, or whatever a label of nodes tells
//! apart.

use std::collections::HashMap;
use std::sync::Arc;

use super::node_affinity;
use super::taint_toleration::untolerated;
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, MAX_NODE_SCORE, Plugin, PreFilterResult, Snapshot};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use crate::framework::topology_spread::SpreadConstraint;

const NAME: &str = "PodTopologySpread";
const SCORES: &str = "PodTopologySpread/Score";

/// The plugin.
pub struct PodTopologySpread;

/// For each constraint, how many pods that count each domain has.
type Domains = Vec<HashMap<String, i64>>;

impl Plugin for PodTopologySpread {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::AssignedPod, ActionType::Add),
            (EventResource::AssignedPod, ActionType::Delete),
            (EventResource::Node, ActionType::Add),
            (EventResource::Node, ActionType::UpdateNodeLabel),
            (EventResource::Node, ActionType::UpdateNodeTaint),
        ]
    }

    fn pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        snapshot: &Snapshot,
    ) -> (PreFilterResult, Status) {
        if !pod.spread.iter().any(|constraint| constraint.is_hard) {
            return (None, Status::skip());
        }
        state.write(NAME, count(pod, snapshot, true));
        state.looks_at_other_nodes = true;
        (None, Status::success())
    }

    fn filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let Some(domains) = state.read::<Domains>(NAME) else { return Status::success() };
        for (constraint, counts) in of_hardness(pod, true).zip(domains) {
            let Some(value) = node.label(&constraint.topology_key) else {
                let text = "node(s) didn't match pod topology spread constraints (missing required label)";
                return Status::unresolvable(text);
            };
            let is_few = counts.len() < constraint.min_domains;
            let least = if is_few { 0 } else { counts.values().min().copied().unwrap_or(0) };
            let own = i64::from(constraint.selector.matches(&pod.object.metadata.labels));
            let here = counts.get(value).copied().unwrap_or(0);
            if here + own - least > constraint.max_skew {
                return Status::unschedulable("node(s) didn't match pod topology spread constraints");
            }
        }
        Status::success()
    }

    fn pre_score(&self, state: &mut CycleState, pod: &PodInfo, nodes: &[Arc<NodeInfo>]) -> Status {
        if pod.spread.iter().all(|constraint| constraint.is_hard) {
            return Status::skip();
        }
        state.write(SCORES, count(pod, nodes, false));
        Status::success()
    }

    /// The pods that count in the node's domains, the more domains there are the weightier; less is better.
    fn score(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let Some(domains) = state.read::<Domains>(SCORES) else { return 0 };
        let mut score = 0.0;
        for (constraint, counts) in of_hardness(pod, false).zip(domains) {
            let Some(value) = node.label(&constraint.topology_key) else { continue };
            let here = counts.get(value).copied().unwrap_or(0) as f64;
            score += here * (counts.len() as f64 + 2.0).ln() + (constraint.max_skew - 1) as f64;
        }
        score.round() as i64
    }

    fn normalize_scores(&self, scores: &mut [i64]) {
        let (least, most) = (scores.iter().min().copied(), scores.iter().max().copied());
        let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
        for score in scores {
            *score = if most == 0 { MAX_NODE_SCORE } else { MAX_NODE_SCORE * (most + least - *score) / most };
        }
    }
}

fn of_hardness(pod: &PodInfo, is_hard: bool) -> impl Iterator<Item = &SpreadConstraint> {
    pod.spread.iter().filter(move |constraint| constraint.is_hard == is_hard)
}

/// Nodes count that have the labels of all constraints, and that the pod may go to as far as each constraint
/// cares.
fn count(pod: &PodInfo, nodes: &[Arc<NodeInfo>], is_hard: bool) -> Domains {
    let mut domains: Domains = of_hardness(pod, is_hard).map(|_| HashMap::new()).collect();
    let has_labels = |node: &&Arc<NodeInfo>| {
        of_hardness(pod, is_hard).all(|constraint| node.label(&constraint.topology_key).is_some())
    };
    for node in nodes.iter().filter(has_labels) {
        for (constraint, counts) in of_hardness(pod, is_hard).zip(&mut domains) {
            let Some(value) = node.label(&constraint.topology_key).filter(|_| may_go(pod, node, constraint))
            else {
                continue;
            };
            *counts.entry(value.to_owned()).or_default() += matching_pods(pod, node, constraint);
        }
    }
    domains
}

fn may_go(pod: &PodInfo, node: &NodeInfo, constraint: &SpreadConstraint) -> bool {
    let wanted = || node.object.as_ref().is_some_and(|object| node_affinity::matches(pod, &object.metadata));
    (constraint.ignores_affinity || wanted())
        && (!constraint.honors_taints || untolerated(&node.node.spec.taints, &pod.pod).is_none())
}

/// Pods that are on their way out do not count.
fn matching_pods(pod: &PodInfo, node: &NodeInfo, constraint: &SpreadConstraint) -> i64 {
    let namespace = &pod.object.metadata.namespace;
    let counts = |other: &&Arc<PodInfo>| {
        let metadata = &other.object.metadata;
        metadata.namespace == *namespace
            && !other.object.is_deleting()
            && constraint.selector.matches(&metadata.labels)
    };
    node.pods.iter().filter(counts).count() as i64
}
