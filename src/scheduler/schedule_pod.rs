//! `schedulePod`: which nodes fit a pod, and which of these is best.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::failure::SchedulingFailure;
use super::framework::fit_error::{Diagnosis, FitError};
use super::framework::node_info::NodeInfo;
use super::framework::plugin::{CycleState, NodeSnapshot, PreFilterResult};
use super::framework::pod_info::PodInfo;
use super::framework::status::{Code, Status};
use super::schedule_one::{Attempts, Cursor};
use super::told::{refusals, table};
use flow::{Step, StepId};

/// Fewer nodes than this are all asked.
const MIN_FEASIBLE_NODES: usize = 100;
/// The smallest share of the nodes, in percent, that are scored.
const MIN_FEASIBLE_PERCENTAGE: usize = 5;

/// The pods for which room is being made, by the node where it is made.
type Nominated = BTreeMap<Arc<str>, Vec<Arc<PodInfo>>>;

impl Attempts {
    /// The node for a pod, or why there is none.
    pub(super) async fn schedule_pod(
        &self,
        pod: &PodInfo,
        snapshot: &NodeSnapshot,
        state: &mut CycleState,
        cursor: &mut Cursor,
        step: StepId,
    ) -> Result<Arc<str>, SchedulingFailure> {
        let (flow, framework) = (self.parts.context.client.flow(), self.parts.profiles.of(pod));
        let mut diagnosis = Diagnosis::default();
        let pre_filter = || framework.run_pre_filter(state, pod, snapshot, &mut diagnosis);
        let code =
            |said: &Result<PreFilterResult, Status>| said.as_ref().err().map_or(Code::Success, |no| no.code);
        let feasible = match self.at_point("PreFilter", framework, pre_filter, code) {
            Ok(allowed) => self.find_feasible(pod, snapshot, &allowed, state, &mut diagnosis, cursor).await?,
            Err(status) if status.is_rejected() => {
                diagnosis.pre_filter_message = status.message();
                diagnosis.unschedulable_plugins.insert(status.plugin);
                diagnosis.nodes.absent = status;
                Vec::new()
            }
            Err(status) => return Err(SchedulingFailure::error(&status.message())),
        };
        let asked = flow.record_with(step.cause(), || Step::Filtered {
            pod: pod.object.shared_key().clone(),
            feasible: feasible.len() as u32,
            nodes: snapshot.len() as u32,
            refusals: refusals(flow, &diagnosis, snapshot.len() - feasible.len()),
        });
        if feasible.is_empty() {
            return Err(self.run_post_filter(pod, snapshot, state, diagnosis, step).await);
        }
        if let [only] = feasible.as_slice() {
            return Ok(only.name.clone());
        }
        let score = || framework.run_score(state, pod, &feasible);
        let mut scores = self.at_point("Score", framework, score, |_| Code::Success);
        self.parts.extenders.prioritize(pod, &feasible, &mut scores.totals).await;
        let best = self.select_host(&scores.totals);
        let (node, score) = (feasible[best].name.clone(), scores.totals[best]);
        flow.record_with(asked.cause(), || Step::Scored {
            pod: pod.object.shared_key().clone(),
            node: node.clone(),
            score,
            table: table(best, &scores, &feasible),
        });
        Ok(node)
    }

    /// `findNodesThatFitPod`: where room was made for the pod it is looked first.
    async fn find_feasible(
        &self,
        pod: &PodInfo,
        snapshot: &NodeSnapshot,
        allowed: &PreFilterResult,
        state: &CycleState,
        diagnosis: &mut Diagnosis,
        cursor: &mut Cursor,
    ) -> Result<Vec<Arc<NodeInfo>>, SchedulingFailure> {
        let is_allowed =
            |node: &&Arc<NodeInfo>| allowed.as_ref().is_none_or(|names| names.contains(&*node.name));
        let view = pod.pod();
        let nominated = &view.status.nominated_node_name;
        let is_there = |node: &&Arc<NodeInfo>| *node.name == **nominated;
        let there = || snapshot.iter().filter(is_allowed).find(is_there);
        if let Some(node) = (!nominated.is_empty()).then(there).flatten() {
            let others = self.nominated(pod);
            if self.filter(state, pod, node, others.get(&node.name)).is_success() {
                let mut ignored = Diagnosis::default();
                // One that fails is asked again, about all nodes.
                let found = self.parts.extenders.filter(pod, vec![node.clone()], &mut ignored).await;
                if let Ok(found) = found
                    && !found.is_empty()
                {
                    return Ok(found);
                }
            }
        }
        let nodes: Vec<&Arc<NodeInfo>> = snapshot.iter().filter(is_allowed).collect();
        let filter = || self.find_nodes_that_fit(pod, &nodes, state, diagnosis, cursor);
        let framework = self.parts.profiles.of(pod);
        let code = |said: &Result<Vec<Arc<NodeInfo>>, Status>| {
            said.as_ref().err().map_or(Code::Success, |no| no.code)
        };
        let feasible = self.at_point("Filter", framework, filter, code);
        let feasible = feasible.map_err(|status| SchedulingFailure::error(&status.message()))?;
        let left = self.parts.extenders.filter(pod, feasible, diagnosis).await;
        left.map_err(|error| SchedulingFailure::error(&error.0))
    }

    /// `findNodesThatPassFilters`: asks nodes in turn until enough fit, or until a plugin fails.
    fn find_nodes_that_fit(
        &self,
        pod: &PodInfo,
        nodes: &[&Arc<NodeInfo>],
        state: &CycleState,
        diagnosis: &mut Diagnosis,
        cursor: &mut Cursor,
    ) -> Result<Vec<Arc<NodeInfo>>, Status> {
        let percentage = self.parts.profiles.of(pod).percentage_of_nodes_to_score;
        let wanted = num_feasible_nodes_to_find(nodes.len(), percentage);
        let nominated = self.nominated(pod);
        let mut feasible = Vec::with_capacity(wanted.min(nodes.len()));
        let mut refused = Vec::new();
        let mut failed = None;
        let mut asked = 0;
        for index in 0..nodes.len() {
            if feasible.len() == wanted {
                break;
            }
            let node = nodes[(cursor.next_start_node + index) % nodes.len()];
            asked += 1;
            let status = self.filter(state, pod, node, nominated.get(&node.name));
            if status.is_success() {
                feasible.push(node.clone());
                continue;
            }
            if status.code == Code::Error {
                failed = Some(status);
                break;
            }
            refused.push((node.name.clone(), status));
        }
        note_refusals(refused, diagnosis);
        // Also after a failure: else the other nodes would never get their turn.
        cursor.next_start_node = (cursor.next_start_node + asked) % nodes.len().max(1);
        failed.map_or(Ok(feasible), Err)
    }

    /// `RunFilterPluginsWithNominatedPods`: the pod must fit beside those for which room is being made.
    fn filter(
        &self,
        state: &CycleState,
        pod: &PodInfo,
        node: &Arc<NodeInfo>,
        nominated: Option<&Vec<Arc<PodInfo>>>,
    ) -> Status {
        let framework = self.parts.profiles.of(pod);
        let Some(nominated) = nominated else { return framework.run_filter(state, pod, node) };
        let mut crowded = NodeInfo::clone(node);
        nominated.iter().for_each(|pod| crowded.add_pod(pod.clone()));
        let status = framework.run_filter(state, pod, &crowded);
        if status.is_success() { framework.run_filter(state, pod, node) } else { status }
    }

    fn nominated(&self, pod: &PodInfo) -> Nominated {
        let mut nominated = Nominated::new();
        for (node, other) in self.parts.queue.nominated_before(pod) {
            nominated.entry(node).or_default().push(other);
        }
        nominated
    }

    /// It fits nowhere: perhaps room can be made.
    async fn run_post_filter(
        &self,
        pod: &PodInfo,
        snapshot: &NodeSnapshot,
        state: &CycleState,
        mut diagnosis: Diagnosis,
        step: StepId,
    ) -> SchedulingFailure {
        let statuses = &diagnosis.nodes;
        let framework = self.parts.profiles.of(pod);
        let post_filter = || framework.run_post_filter(pod, state, snapshot, statuses);
        let (mut result, mut status) =
            self.at_point("PostFilter", framework, post_filter, |(_, status)| status.code);
        let client = self.parts.context.client.caused_by(step);
        let written = framework.write_after_post_filter(&client, state).await;
        if !written.is_success() {
            return SchedulingFailure::error(&written.message());
        }
        if status.code == Code::Success
            && let Some(found) = result.take()
        {
            match self.parts.extenders.choose_victims(pod, found, snapshot).await {
                Ok(chosen) => result = Some(chosen),
                Err(why) => status = Status::unschedulable(format!("preemption: {}", why.0)),
            }
        }
        diagnosis.post_filter_message = status.message();
        let plugins = diagnosis.unschedulable_plugins.clone();
        let error = FitError { node_count: snapshot.len(), diagnosis };
        SchedulingFailure {
            preemption: result,
            ..SchedulingFailure::unschedulable(&error.to_string(), plugins)
        }
    }

    /// One of the best, at random, so that equal nodes are used alike.
    fn select_host(&self, scores: &[i64]) -> usize {
        let most = scores.iter().max();
        let best: Vec<usize> = (0..scores.len()).filter(|index| scores.get(*index) == most).collect();
        best[self.parts.context.entropy.below(best.len())]
    }
}

/// What nodes said against a pod, who were asked in turn: put in order all at once, there is no search for
/// each.
fn note_refusals(refused: Vec<(Arc<str>, Status)>, diagnosis: &mut Diagnosis) {
    diagnosis.unschedulable_plugins.extend(refused.iter().map(|(_, status)| status.plugin));
    diagnosis.nodes.explicit.append(&mut refused.into_iter().collect());
}

/// `numFeasibleNodesToFind`: all of a hundred; of more the share that is asked for, or one that shrinks from
/// a half to a twentieth.
fn num_feasible_nodes_to_find(nodes: usize, percentage: Option<i64>) -> usize {
    if nodes < MIN_FEASIBLE_NODES {
        return nodes;
    }
    let asked = percentage.and_then(|percentage| usize::try_from(percentage).ok()).filter(|it| *it > 0);
    let percentage =
        asked.unwrap_or_else(|| 50usize.saturating_sub(nodes / 125).max(MIN_FEASIBLE_PERCENTAGE));
    (nodes * percentage / 100).max(MIN_FEASIBLE_NODES).min(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_nodes_only_some_are_asked() {
        let cases = [
            (10, None, 10),
            (99, None, 99),
            (100, None, 100),
            (1000, None, 420),
            (6000, None, 300),
            (10_000, None, 500),
            (1000, Some(0), 420),
            (1000, Some(40), 400),
            (1000, Some(1), 100),
            (1000, Some(100), 1000),
        ];
        for (nodes, percentage, wanted) in cases {
            assert_eq!(num_feasible_nodes_to_find(nodes, percentage), wanted, "{nodes} {percentage:?}");
        }
    }
}
