//! PodTopologySpread: pods of a kind are spread evenly over zones, nodes, or whatever a label of nodes tells
//! apart.

use std::collections::HashSet;
use std::sync::Arc;

use super::args::{DefaultingType, PodTopologySpreadArgs};
use super::default_selector::DefaultSelector;
use super::spread_counts::{Domains, SpreadCounts, matching_pods};
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, MAX_NODE_SCORE, NodeSnapshot, Plugin, PreFilterResult};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use crate::framework::topology_spread::SpreadConstraint;
use apimachinery::object::Object;
use apis::core::node_labels::{HOSTNAME, ZONE};

const NAME: &str = "PodTopologySpread";
const SCORES: &str = "PodTopologySpread/Score";
/// What a node scores that lacks a label which a constraint names; no constraint gives it to others.
const IGNORED: i64 = -1;

/// The plugin.
pub struct PodTopologySpread {
    defaults: Vec<SpreadConstraint>,
    /// Whether those are the system's, which do not ask that a node has all labels.
    are_system_defaults: bool,
    selectors: DefaultSelector,
    counts: SpreadCounts,
}

/// What Filter looks at.
struct HardSpread {
    constraints: Vec<SpreadConstraint>,
    domains: Vec<Domains>,
    /// For each constraint, how many pods the emptiest domain has, and whether the pod counts itself.
    bounds: Vec<(i64, i64)>,
}

/// What Score looks at (`preScoreState`).
struct SoftSpread {
    constraints: Vec<SpreadConstraint>,
    domains: Vec<Domains>,
    weights: Vec<f64>,
    requires_all: bool,
}

impl PodTopologySpread {
    /// With the constraints of pods that have none.
    pub fn new(args: &PodTopologySpreadArgs, selectors: DefaultSelector) -> PodTopologySpread {
        let are_system_defaults = args.defaulting_type == DefaultingType::System;
        let defaults = if are_system_defaults {
            vec![SpreadConstraint::soft(HOSTNAME, 3), SpreadConstraint::soft(ZONE, 5)]
        } else {
            SpreadConstraint::read_all(&args.default_constraints)
        };
        PodTopologySpread { defaults, are_system_defaults, selectors, counts: SpreadCounts::default() }
    }

    /// The constraints of a pod; those of a pod that has none are for whatever belongs to it.
    fn constraints(&self, pod: &PodInfo, is_hard: bool) -> Vec<SpreadConstraint> {
        let of_hardness = |constraint: &&SpreadConstraint| constraint.is_hard == is_hard;
        if !pod.spread.is_empty() {
            return pod.spread.iter().filter(of_hardness).cloned().collect();
        }
        let defaults: Vec<_> = self.defaults.iter().filter(of_hardness).collect();
        let selector = if defaults.is_empty() { None } else { self.selectors.of(pod) };
        let Some(selector) = selector else { return Vec::new() };
        let with_selector = |constraint: &SpreadConstraint| SpreadConstraint {
            selector: selector.clone(),
            ..constraint.clone()
        };
        defaults.into_iter().map(with_selector).collect()
    }
}

impl Plugin for PodTopologySpread {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::AssignedPod, ActionType::Add),
            (EventResource::AssignedPod, ActionType::Delete),
            (EventResource::AssignedPod, ActionType::UpdatePodLabel),
            (EventResource::Node, ActionType::Add),
            (EventResource::Node, ActionType::Delete),
            (EventResource::Node, ActionType::UpdateNodeLabel),
            (EventResource::Node, ActionType::UpdateNodeTaint),
        ]
    }

    /// Pods count that belong together, and nodes whose labels are looked at.
    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let objects = || occurrence.old.iter().chain(&occurrence.new);
        let constraints = self.constraints(pod, true);
        if occurrence.event.0 == EventResource::AssignedPod {
            let namespace = &pod.object.metadata.namespace;
            let counts = |other: &Arc<Object>| {
                let selects = |it: &SpreadConstraint| it.selector.matches(&other.metadata.labels);
                other.metadata.namespace == *namespace && constraints.iter().any(selects)
            };
            return QueueingHint::queue_if(objects().any(counts));
        }
        let has_labels = |node: &Arc<Object>| {
            let has = |it: &SpreadConstraint| node.metadata.labels.contains_key(&it.topology_key);
            constraints.iter().all(has)
        };
        QueueingHint::queue_if(objects().any(has_labels))
    }

    fn pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        snapshot: &NodeSnapshot,
    ) -> (PreFilterResult, Status) {
        let constraints = self.constraints(pod, true);
        if constraints.is_empty() {
            return (None, Status::skip());
        }
        let domains = self.counts.of(pod, snapshot, &constraints, true);
        let bounds = constraints.iter().zip(&domains).map(|(constraint, counts)| {
            let is_few = counts.len() < constraint.min_domains;
            let least = if is_few { 0 } else { counts.least() };
            (least, i64::from(constraint.selector.matches(&pod.object.metadata.labels)))
        });
        let bounds = bounds.collect();
        state.write(NAME, HardSpread { constraints, domains, bounds });
        state.looks_at_other_nodes = true;
        (None, Status::success())
    }

    fn filter(&self, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> Status {
        let Some(HardSpread { constraints, domains, bounds }) = state.read(NAME) else {
            return Status::success();
        };
        for ((constraint, counts), (least, own)) in constraints.iter().zip(domains).zip(bounds) {
            let Some(value) = node.label(&constraint.topology_key) else {
                let text = "node(s) didn't match pod topology spread constraints (missing required label)";
                return Status::unresolvable(text);
            };
            let here = counts.get(value);
            if here + own - least > constraint.max_skew {
                return Status::unschedulable("node(s) didn't match pod topology spread constraints");
            }
        }
        Status::success()
    }

    fn pre_score(&self, state: &mut CycleState, pod: &PodInfo, nodes: &[Arc<NodeInfo>]) -> Status {
        let constraints = self.constraints(pod, false);
        if constraints.is_empty() {
            return Status::skip();
        }
        let requires_all = !pod.spread.is_empty() || !self.are_system_defaults;
        let mut soft = SoftSpread::new(constraints, nodes, requires_all);
        soft.domains = self.counts.of(pod, &state.nodes, &soft.constraints, requires_all);
        state.write(SCORES, soft);
        Status::success()
    }

    /// The pods that count in the node's domains, the more domains there are the weightier; less is better.
    fn score(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let Some(soft) = state.read::<SoftSpread>(SCORES) else { return 0 };
        if soft.ignores(node) {
            return IGNORED;
        }
        let mut score = 0.0;
        let domains = soft.constraints.iter().zip(&soft.domains).zip(&soft.weights);
        for ((constraint, counts), weight) in domains {
            let Some(value) = node.label(&constraint.topology_key) else { continue };
            // Where a node stands for itself its own pods count, whoever else calls itself so.
            let here = if constraint.topology_key == HOSTNAME {
                counts.get_of_one_node(value).unwrap_or_else(|| matching_pods(pod, node, constraint))
            } else {
                counts.get(value)
            };
            score += here as f64 * weight + (constraint.max_skew - 1) as f64;
        }
        score.round() as i64
    }

    fn normalize_scores(&self, scores: &mut [i64]) {
        let counted = || scores.iter().copied().filter(|score| *score != IGNORED);
        let (least, most) = (counted().min().unwrap_or(0), counted().max().unwrap_or(0));
        for score in scores {
            *score = match *score {
                IGNORED => 0,
                _ if most == 0 => MAX_NODE_SCORE,
                counted => MAX_NODE_SCORE * (most + least - counted) / most,
            };
        }
    }
}

impl SoftSpread {
    /// With how much each constraint weighs, by the domains of the nodes that will be scored: a count in one
    /// of many domains says more.
    fn new(constraints: Vec<SpreadConstraint>, nodes: &[Arc<NodeInfo>], requires_all: bool) -> SoftSpread {
        let (domains, weights) = (Vec::new(), Vec::with_capacity(constraints.len()));
        let mut soft = SoftSpread { constraints, domains, weights, requires_all };
        let scored: Vec<&Arc<NodeInfo>> = nodes.iter().filter(|node| !soft.ignores(node)).collect();
        for constraint in &soft.constraints {
            let size = if constraint.topology_key == HOSTNAME {
                scored.len()
            } else {
                let names = scored.iter().map(|node| node.label(&constraint.topology_key).unwrap_or(""));
                names.collect::<HashSet<&str>>().len()
            };
            soft.weights.push((size as f64 + 2.0).ln());
        }
        soft
    }

    fn ignores(&self, node: &NodeInfo) -> bool {
        self.requires_all && self.constraints.iter().any(|it| node.label(&it.topology_key).is_none())
    }
}
