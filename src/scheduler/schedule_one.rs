//! One attempt to schedule one pod (`ScheduleOne`).
//! Next: src/scheduler/framework/runtime.rs
//!
//! The scheduling cycle decides, and takes one pod at a time. The binding cycle writes; the next attempt
//! does not wait for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::failure::{SchedulingFailure, handle_scheduling_failure};
use super::framework::cluster_event::{ActionType, EventResource, Occurrence};
use super::framework::fit_error::{Diagnosis, FitError};
use super::framework::node_info::NodeInfo;
use super::framework::plugin::{BindRequest, CycleState, PreFilterResult, Snapshot};
use super::framework::pod_info::{Because, PodInfo, QueuedPodInfo};
use super::framework::status::Status;
use super::parts::SchedulerParts;
use super::told::{refusals, table};
use apimachinery::object::Object;
use apis::core::pod::PODS;
use client_go::component::ComponentContext;
use flow::{Step, StepId};

/// Fewer nodes than this are all asked.
const MIN_FEASIBLE_NODES: usize = 100;
/// The smallest share of the nodes, in percent, that are scored.
const MIN_FEASIBLE_PERCENTAGE: usize = 5;

/// Where the next attempt begins to ask: all nodes get their turn although not all are asked each time.
#[derive(Default)]
pub struct Cursor {
    next_start_node: usize,
}

/// What a scheduling cycle has decided.
struct Chosen {
    node: Arc<str>,
    state: CycleState,
}

/// The attempts of a scheduler, one pod after the other (`schedule_one.go`). Cloning shares it.
#[derive(Clone)]
pub struct Attempts {
    parts: Arc<SchedulerParts>,
}

impl Attempts {
    /// Of the scheduler that these are the parts of.
    pub fn new(parts: Arc<SchedulerParts>) -> Attempts {
        Attempts { parts }
    }

    /// Takes the next pod from the queue, and finds it a node or says why there is none.
    pub(super) async fn schedule_one(&self, cursor: &mut Cursor) {
        let info = self.parts.queue.pop().await;
        if self.skip_pod_schedule(&info.pod) {
            return self.parts.queue.done(info.pod.uid());
        }
        let step = self.record_attempt(&info);
        tracing::debug!(pod = %info.pod.object.shared_key(), "Attempting to schedule pod");
        let outcome = self.scheduling_cycle(&info, cursor, step);
        // The semaphore is never closed; without a permit the write goes all the same.
        let permit = self.parts.writes.clone().acquire_owned().await.ok();
        let attempts = self.clone();
        self.parts.context.tasks.spawn("kube-scheduler: bind", async move {
            let _permit = permit;
            match outcome {
                Ok(chosen) => attempts.binding_cycle(info, chosen, step).await,
                Err(failure) => {
                    let context = attempts.context_of(step);
                    handle_scheduling_failure(&attempts.parts, &context, info, failure).await;
                }
            }
        });
    }

    /// A pod that is going, or that is on its way to a node already.
    fn skip_pod_schedule(&self, pod: &PodInfo) -> bool {
        if pod.object.is_deleting() {
            let key = pod.object.key();
            let text = format!("skip schedule deleting pod: {key}");
            self.parts.context.recorder.event((&PODS, &pod.object), "Warning", "FailedScheduling", text);
        }
        pod.object.is_deleting() || self.parts.cache.has_pod(pod.uid())
    }

    fn scheduling_cycle(
        &self,
        info: &QueuedPodInfo,
        cursor: &mut Cursor,
        step: StepId,
    ) -> Result<Chosen, SchedulingFailure> {
        let (pod, framework) = (&info.pod, &self.parts.framework);
        let snapshot = self.parts.cache.snapshot();
        if snapshot.is_empty() {
            // Upstream waits out a back-off here; whoever hears of new nodes can as well be woken by one.
            let plugins = framework.listeners((EventResource::Node, ActionType::Add));
            return Err(SchedulingFailure::unschedulable("no nodes available to schedule pods", plugins));
        }
        let mut state = CycleState::default();
        let node = self.schedule_pod(pod, &snapshot, &mut state, cursor, step)?;
        self.parts.context.client.flow().record_with(step.cause(), || Step::Assumed {
            pod: pod.object.shared_key().clone(),
            node: node.clone(),
        });
        if !self.parts.cache.assume(pod.clone(), &node) {
            return Err(SchedulingFailure::error("pod is in the cache, so can't be assumed"));
        }
        for status in [framework.run_reserve(&state, pod, &node), framework.run_permit(&state, pod, &node)] {
            if !status.is_success() {
                framework.run_unreserve(&state, pod, &node);
                self.parts.cache.forget(pod.uid());
                return Err(rejected_by_plugin(&node, status));
            }
        }
        Ok(Chosen { node, state })
    }

    /// `schedulePod`: which nodes fit, and which of these is best.
    fn schedule_pod(
        &self,
        pod: &PodInfo,
        snapshot: &Snapshot,
        state: &mut CycleState,
        cursor: &mut Cursor,
        step: StepId,
    ) -> Result<Arc<str>, SchedulingFailure> {
        let (flow, framework) = (self.parts.context.client.flow(), &self.parts.framework);
        let mut diagnosis = Diagnosis::default();
        let feasible = match framework.run_pre_filter(state, pod, snapshot, &mut diagnosis) {
            Ok(allowed) => self.find_nodes_that_fit(pod, snapshot, &allowed, state, &mut diagnosis, cursor),
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
            return Err(self.run_post_filter(pod, snapshot, state, diagnosis));
        }
        if let [only] = feasible.as_slice() {
            return Ok(only.name.clone());
        }
        let scores = framework.run_score(state, pod, &feasible);
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

    /// `findNodesThatPassFilters`: asks nodes in turn until enough fit.
    fn find_nodes_that_fit(
        &self,
        pod: &PodInfo,
        snapshot: &Snapshot,
        allowed: &PreFilterResult,
        state: &CycleState,
        diagnosis: &mut Diagnosis,
        cursor: &mut Cursor,
    ) -> Vec<Arc<NodeInfo>> {
        let is_allowed =
            |node: &&Arc<NodeInfo>| allowed.as_ref().is_none_or(|names| names.contains(&*node.name));
        let nodes: Vec<&Arc<NodeInfo>> = snapshot.iter().filter(is_allowed).collect();
        let wanted = num_feasible_nodes_to_find(nodes.len());
        let nominated = self.nominated(pod);
        let mut feasible = Vec::new();
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
            diagnosis.unschedulable_plugins.insert(status.plugin);
            diagnosis.nodes.explicit.insert(node.name.to_string(), status);
        }
        cursor.next_start_node = (cursor.next_start_node + asked) % nodes.len().max(1);
        feasible
    }

    /// `RunFilterPluginsWithNominatedPods`: the pod must fit beside those for which room is being made.
    fn filter(
        &self,
        state: &CycleState,
        pod: &PodInfo,
        node: &Arc<NodeInfo>,
        nominated: Option<&Vec<Arc<PodInfo>>>,
    ) -> Status {
        let framework = &self.parts.framework;
        let Some(nominated) = nominated else { return framework.run_filter(state, pod, node) };
        let mut crowded = NodeInfo::clone(node);
        nominated.iter().for_each(|pod| crowded.add_pod(pod.clone()));
        let status = framework.run_filter(state, pod, &crowded);
        if status.is_success() { framework.run_filter(state, pod, node) } else { status }
    }

    fn nominated(&self, pod: &PodInfo) -> BTreeMap<Arc<str>, Vec<Arc<PodInfo>>> {
        let mut nominated: BTreeMap<Arc<str>, Vec<Arc<PodInfo>>> = BTreeMap::new();
        for (node, other) in self.parts.queue.nominated_before(pod) {
            nominated.entry(node).or_default().push(other);
        }
        nominated
    }

    /// It fits nowhere: perhaps room can be made.
    fn run_post_filter(
        &self,
        pod: &PodInfo,
        snapshot: &Snapshot,
        state: &CycleState,
        mut diagnosis: Diagnosis,
    ) -> SchedulingFailure {
        let statuses = &diagnosis.nodes;
        let (result, status) = self.parts.framework.run_post_filter(pod, state, snapshot, statuses);
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

    async fn binding_cycle(&self, info: QueuedPodInfo, chosen: Chosen, step: StepId) {
        let (context, pod, node) = (&self.parts.context, info.pod.clone(), chosen.node);
        // From here on it cannot be found unschedulable: what happens in the cluster does not matter to it.
        self.parts.queue.done(pod.uid());
        let client = context.client.caused_by(step);
        let request = BindRequest { client: &client, pod: &pod, node: &node };
        let status = self.parts.framework.run_bind(request).await;
        if status.is_success() {
            let step = self.record_bound(&pod, &node, step);
            tracing::info!(pod = %pod.object.shared_key(), %node, "Successfully bound pod to node");
            self.parts.queue.nominate(&pod, None);
            let text = format!("Successfully assigned {} to {node}", pod.object.key());
            return context.recorder.caused_by(step).event((&PODS, &pod.object), "Normal", "Scheduled", text);
        }
        self.parts.framework.run_unreserve(&chosen.state, &pod, &node);
        self.parts.cache.forget(pod.uid());
        let event = (EventResource::AssignedPod, ActionType::Delete);
        self.parts.queue.move_all(Occurrence { event, old: Some(pod.object.clone()), new: None });
        let text = format!("running Bind plugin {:?}: {status}", status.plugin);
        let context = self.context_of(step);
        handle_scheduling_failure(&self.parts, &context, info, SchedulingFailure::error(&text)).await;
    }

    /// The scheduler's context, speaking on account of an attempt.
    fn context_of(&self, step: StepId) -> ComponentContext {
        let context = self.parts.context.clone();
        let (client, recorder) = (context.client.caused_by(step), context.recorder.caused_by(step));
        ComponentContext { client, recorder, ..context }
    }

    /// Its cause is what woke the pod: what it did itself meanwhile, as the scheduler's own word that it
    /// could not be placed, is none.
    fn record_attempt(&self, info: &QueuedPodInfo) -> StepId {
        let (context, object) = (&self.parts.context, &info.pod.object);
        let flow = context.client.flow();
        let changed = match &info.because {
            Because::Itself => Some(object),
            Because::Other(other) => Some(other),
            Because::Time => None,
        };
        let seen = |object: &Arc<Object>| flow.informed(&context.component, object.metadata.resource_version);
        flow.record_with(changed.and_then(seen), || Step::SchedulingAttempt {
            pod: object.shared_key().clone(),
        })
    }

    fn record_bound(&self, pod: &PodInfo, node: &Arc<str>, step: StepId) -> StepId {
        let flow = self.parts.context.client.flow();
        flow.record_with(step.cause(), || Step::Bound {
            pod: pod.object.shared_key().clone(),
            node: node.clone(),
        })
    }
}

/// The no of a Reserve or Permit plugin, told as that of the one node that it is about.
fn rejected_by_plugin(node: &str, status: Status) -> SchedulingFailure {
    if !status.is_rejected() {
        return SchedulingFailure::error(&status.message());
    }
    let mut error = FitError { node_count: 1, ..FitError::default() };
    let plugin = status.plugin;
    error.diagnosis.nodes.explicit.insert(node.to_owned(), status);
    SchedulingFailure::unschedulable(&error.to_string(), [plugin].into())
}

/// `numFeasibleNodesToFind`: all of a hundred; of more a share that shrinks from a half to a twentieth.
fn num_feasible_nodes_to_find(nodes: usize) -> usize {
    if nodes < MIN_FEASIBLE_NODES {
        return nodes;
    }
    let percentage = 50usize.saturating_sub(nodes / 125).max(MIN_FEASIBLE_PERCENTAGE);
    (nodes * percentage / 100).max(MIN_FEASIBLE_NODES)
}

#[cfg(test)]
pub(super) mod tests {
    use std::convert::Infallible;

    use tower::util::BoxCloneSyncService;

    use super::*;
    use crate::scheduler::Scheduler;
    use apimachinery::time::Time;
    use apimachinery::user::UserInfo;
    use apimachinery::wire::{ApiRequest, ApiResponse};
    use client_go::client::Client;
    use clock::Clock;
    use entropy::Entropy;
    use flow::Flow;

    /// A scheduler whose apiserver answers nothing: its cache is filled by hand.
    pub(crate) fn scheduler() -> Scheduler {
        let service = BoxCloneSyncService::new(tower::service_fn(|_: ApiRequest| async {
            Ok::<_, Infallible>(ApiResponse::default())
        }));
        let (clock, entropy) = (Clock::stepped(Time::UNIX_EPOCH), Entropy::seeded(7));
        let identity = Arc::new(UserInfo::authenticated("system:kube-scheduler", &[]));
        let client = Client::new(service, identity, clock.clone(), Flow::off());
        let source = ("default-scheduler", "");
        Scheduler::new(ComponentContext::new("kube-scheduler", source, client, clock, entropy))
    }

    /// The node that is chosen for a pod, or what is said of it.
    pub(crate) fn decide_on(scheduler: &Scheduler, pod: Arc<PodInfo>) -> Result<String, SchedulingFailure> {
        let info = QueuedPodInfo::new(pod, Time::UNIX_EPOCH);
        let chosen = Attempts::new(scheduler.parts.clone()).scheduling_cycle(
            &info,
            &mut Cursor::default(),
            StepId::NONE,
        );
        chosen.map(|chosen| chosen.node.to_string())
    }

    #[test]
    fn of_many_nodes_only_some_are_asked() {
        let cases = [(10, 10), (99, 99), (100, 100), (1000, 420), (6000, 300), (10_000, 500)];
        for (nodes, wanted) in cases {
            assert_eq!(num_feasible_nodes_to_find(nodes), wanted, "{nodes}");
        }
    }
}
