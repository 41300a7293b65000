//! DefaultPreemption: makes room for a pod by evicting pods of lower priority
//! (`framework/preemption.Evaluator`).
//!
//! It plays through what would happen on every node that might be helped, and takes the node where it hurts
//! least: first of all where it breaks the fewest disruption budgets.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::args::DefaultPreemptionArgs;
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource};
use crate::framework::fit_error::{Diagnosis, FitError, NodeStatuses};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, NodeSnapshot, Plugin, PostFilterCycle, PostFilterResult};
use crate::framework::pod_info::PodInfo;
use crate::framework::preempting::Preempting;
use crate::framework::preemption_candidate::{PreemptionCandidate, importance};
use crate::framework::status::{Code, Status};
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apis::views::meta;
use apis::views::pod_disruption_budget::PodDisruptionBudget;
use client_go::lister::Lister;
use entropy::Entropy;

/// The plugin.
pub struct DefaultPreemption {
    /// Reads PodDisruptionBudgets.
    pub budgets: Lister,
    /// How many nodes are looked at.
    pub args: DefaultPreemptionArgs,
    /// Says where to begin when not all are.
    pub entropy: Entropy,
    /// Whose victims are on their way out.
    pub preempting: Preempting,
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> &'static str {
        "DefaultPreemption"
    }

    fn pre_enqueue(&self, pod: &PodInfo) -> Status {
        if self.preempting.is_running(pod.uid()) {
            return Status::unresolvable("waiting for the preemption for this pod to be finished");
        }
        Status::success()
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[(EventResource::AssignedPod, ActionType::Delete)]
    }

    fn post_filter(&self, pod: &PodInfo, cycle: &PostFilterCycle<'_>) -> (Option<PostFilterResult>, Status) {
        let no = |text: &str| Status::unschedulable(format!("preemption: {text}"));
        if let Some(why) = why_not_eligible(pod, cycle) {
            return (None, no(why));
        }
        let budgets = self.budgets.all();
        let (candidates, statuses) = self.find_candidates(pod, cycle, &budgets);
        let Some(best) = candidates.iter().min_by_key(|candidate| candidate.cost()).cloned() else {
            let diagnosis = Diagnosis { nodes: statuses, ..Diagnosis::default() };
            let error = FitError { node_count: cycle.snapshot.len(), diagnosis };
            return (Some(PostFilterResult::default()), no(&error.to_string()));
        };
        (Some(PostFilterResult { candidates, ..PostFilterResult::at(best) }), Status::success())
    }
}

/// `PodEligibleToPreemptOthers`
fn why_not_eligible(pod: &PodInfo, cycle: &PostFilterCycle<'_>) -> Option<&'static str> {
    let view = pod.pod();
    if view.spec.preemption_policy.as_deref() == Some("Never") {
        return Some("not eligible due to preemptionPolicy=Never.");
    }
    let nominated = &view.status.nominated_node_name;
    if cycle.statuses.get(nominated).code == Code::UnschedulableAndUnresolvable {
        return None;
    }
    let node = cycle.snapshot.iter().find(|node| *node.name == **nominated)?;
    let leaves = |victim: &Arc<PodInfo>| {
        let is_preempted = || {
            let view = victim.pod();
            let target = meta::condition(&view.status.conditions, "DisruptionTarget");
            target.is_some_and(|c| c.status == "True" && c.reason == "PreemptionByScheduler")
        };
        victim.object.is_deleting() && victim.priority < pod.priority && is_preempted()
    };
    node.pods.iter().any(leaves).then_some("not eligible due to a terminating pod on the nominated node.")
}

impl DefaultPreemption {
    /// The nodes that would have room, of which enough are as good as all; of those that would not, why
    /// (`DryRunPreemption`).
    fn find_candidates(
        &self,
        pod: &PodInfo,
        cycle: &PostFilterCycle<'_>,
        budgets: &[Arc<Object>],
    ) -> (Vec<PreemptionCandidate>, NodeStatuses) {
        let absent = Status::unresolvable("Preemption is not helpful for scheduling");
        let mut statuses = NodeStatuses { explicit: BTreeMap::new(), absent };
        let is_hopeful = |node: &&Arc<NodeInfo>| cycle.statuses.may_be_resolved(&node.name);
        let nodes: Vec<&Arc<NodeInfo>> = cycle.snapshot.iter().filter(is_hopeful).collect();
        let enough = self.enough_candidates(nodes.len());
        let start = if enough < nodes.len() { self.entropy.below(nodes.len()) } else { 0 };
        let mut candidates: Vec<PreemptionCandidate> = Vec::new();
        for node in nodes[start..].iter().chain(&nodes[..start]) {
            match select_victims(pod, node, cycle, budgets) {
                Ok(candidate) => candidates.push(candidate),
                Err(status) => drop(statuses.explicit.insert(node.name.clone(), status)),
            }
            let is_harmless = |candidate: &PreemptionCandidate| candidate.violations == 0;
            if candidates.len() >= enough && candidates.iter().any(is_harmless) {
                break;
            }
        }
        (candidates, statuses)
    }

    /// `calculateNumCandidates`
    fn enough_candidates(&self, nodes: usize) -> usize {
        let share = nodes * self.args.min_candidate_nodes_percentage / 100;
        share.max(self.args.min_candidate_nodes_absolute).min(nodes)
    }
}

/// `SelectVictimsOnNode`: all of lower priority leave; then as many as have room come back, those first whose
/// leaving would break a budget, and of these and of the others the important ones first.
fn select_victims(
    pod: &PodInfo,
    node: &NodeInfo,
    cycle: &PostFilterCycle<'_>,
    budgets: &[Arc<Object>],
) -> Result<PreemptionCandidate, Status> {
    let mut node = node.clone();
    let mut potential: Vec<Arc<PodInfo>> =
        node.pods.iter().filter(|other| other.priority < pod.priority).cloned().collect();
    if potential.is_empty() {
        return Err(Status::unresolvable("No preemption victims found for incoming pod"));
    }
    for victim in &potential {
        node.remove_pod(victim.uid());
    }
    let status = filter(pod, &node, cycle);
    if !status.is_success() {
        return Err(status);
    }
    potential.sort_by_key(|victim| importance(victim));
    let (violating, others) = split_by_violation(potential, budgets);
    let mut reprieve = |potential: Vec<Arc<PodInfo>>| {
        let mut victims = Vec::new();
        for victim in potential {
            node.add_pod(victim.clone());
            if !filter(pod, &node, cycle).is_success() {
                node.remove_pod(victim.uid());
                victims.push(victim);
            }
        }
        victims
    };
    let mut victims = reprieve(violating);
    let violations = victims.len();
    victims.extend(reprieve(others));
    victims.sort_by_key(|victim| importance(victim));
    Ok(PreemptionCandidate { node: node.name.clone(), victims, violations })
}

/// Those whose leaving, in this order, would break a budget; and the others (`filterPodsWithPDBViolation`).
fn split_by_violation(
    pods: Vec<Arc<PodInfo>>,
    budgets: &[Arc<Object>],
) -> (Vec<Arc<PodInfo>>, Vec<Arc<PodInfo>>) {
    let budgets: Vec<_> = budgets.iter().filter_map(|budget| PreemptionBudget::of(budget)).collect();
    let mut allowed: Vec<i64> = budgets.iter().map(|budget| budget.view.status.disruptions_allowed).collect();
    pods.into_iter().partition(|pod| {
        let mut violates = false;
        let counting = budgets.iter().zip(&mut allowed).filter(|(budget, _)| budget.counts(pod));
        for (_, allowed) in counting {
            *allowed -= 1;
            violates |= *allowed < 0;
        }
        violates
    })
}

/// A budget that protects somebody.
struct PreemptionBudget<'a> {
    object: &'a Object,
    view: Arc<PodDisruptionBudget>,
    selector: Selector,
}

impl PreemptionBudget<'_> {
    /// None when it selects nothing, or everything by an empty selector, which counts as nothing here.
    fn of(object: &Object) -> Option<PreemptionBudget<'_>> {
        let view = object.view::<PodDisruptionBudget>();
        let selector = view.spec.selector.as_ref()?.selector().ok().filter(|it| !it.is_everything())?;
        Some(PreemptionBudget { object, view, selector })
    }

    /// A pod that the apiserver has let go already is counted there.
    fn counts(&self, pod: &PodInfo) -> bool {
        let metadata = &pod.object.metadata;
        metadata.namespace == self.object.metadata.namespace
            && self.selector.matches(&metadata.labels)
            && !self.view.status.disrupted_pods.contains_key(&metadata.name)
    }
}

/// What the filters say of a node that has other pods than in the snapshot. What was counted over all nodes
/// is counted anew, where a filter depends on that.
fn filter(pod: &PodInfo, node: &NodeInfo, cycle: &PostFilterCycle<'_>) -> Status {
    if !cycle.state.looks_at_other_nodes {
        return cycle.framework.run_filter(cycle.state, pod, node);
    }
    let replaced = cycle
        .snapshot
        .iter()
        .map(|other| if other.name == node.name { Arc::new(node.clone()) } else { other.clone() });
    let snapshot: NodeSnapshot = replaced.collect();
    let mut state = CycleState::over(&snapshot);
    match cycle.framework.run_pre_filter(&mut state, pod, &snapshot, &mut Diagnosis::default()) {
        Ok(_) => cycle.framework.run_filter(&state, pod, node),
        Err(status) => status,
    }
}
