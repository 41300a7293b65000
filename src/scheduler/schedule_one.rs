//! One attempt to schedule one pod (`ScheduleOne`).
//! Next: src/scheduler/framework/runtime.rs
//!
//! The scheduling cycle decides, and takes one pod at a time. The binding cycle writes; the next attempt
//! does not wait for it.

use std::sync::Arc;
use std::time::Duration;

use super::failure::{SchedulingFailure, handle_scheduling_failure, patch_status};
use super::framework::cluster_event::{ActionType, EventResource, Occurrence};
use super::framework::fit_error::FitError;
use super::framework::plugin::{BindRequest, CycleState, NodeSnapshot, PostFilterResult};
use super::framework::pod_info::{Because, PodInfo, QueuedPodInfo};
use super::framework::runtime::Framework;
use super::framework::status::{Code, Status};
use super::parts::SchedulerParts;
use apimachinery::object::Object;
use apis::core::pod::PODS;
use client_go::component::ComponentContext;
use client_go::event_recorder::EventRecorder;
use flow::{HeldStep, Step, StepId};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

/// Where the next attempt begins to ask: all nodes get their turn although not all are asked each time.
#[derive(Default)]
pub struct Cursor {
    pub(super) next_start_node: usize,
}

/// What a scheduling cycle has decided.
struct Chosen {
    node: Arc<str>,
    state: CycleState,
    /// When the attempt began.
    begun: Duration,
}

/// The attempts of a scheduler, one pod after the other (`schedule_one.go`). Cloning shares it.
#[derive(Clone)]
pub struct Attempts {
    pub(super) parts: Arc<SchedulerParts>,
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
        let pod = info.pod.object.shared_key();
        self.parts.context.client.flow().gate(|| HeldStep::in_scheduler(pod.clone())).await;
        let step = self.record_attempt(&info);
        tracing::debug!(pod = %info.pod.object.shared_key(), "Attempting to schedule pod");
        let begun = self.parts.context.clock.elapsed();
        let outcome = self.scheduling_cycle(&info, cursor, step).await;
        if let Err(failure) = &outcome {
            self.count(&info.pod, failure.result(), begun);
        }
        // The semaphore is never closed; without a permit the write goes all the same.
        let permit = self.parts.writes.clone().acquire_owned().await.ok();
        let attempts = self.clone();
        self.parts.context.tasks.spawn("kube-scheduler: bind", async move {
            match outcome {
                Ok(chosen) => {
                    let chosen = Chosen { begun, ..chosen };
                    attempts.binding_cycle(info, chosen, step, permit).await;
                }
                Err(failure) => {
                    let _permit = permit;
                    let context = attempts.context_of(&info.pod, step);
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
            let action = ("Scheduling", None);
            self.recorder(pod).event_of((&PODS, &pod.object), action, "Warning", "FailedScheduling", text);
        }
        pod.object.is_deleting() || self.parts.cache.has_pod(pod.uid())
    }

    async fn scheduling_cycle(
        &self,
        info: &QueuedPodInfo,
        cursor: &mut Cursor,
        step: StepId,
    ) -> Result<Chosen, SchedulingFailure> {
        let (pod, framework) = (&info.pod, self.parts.profiles.of(&info.pod));
        let snapshot = self.parts.cache.snapshot();
        if snapshot.is_empty() {
            // Upstream waits out a back-off here; whoever hears of new nodes can as well be woken by one.
            let plugins = framework.listeners((EventResource::Node, ActionType::Add));
            return Err(SchedulingFailure::unschedulable("no nodes available to schedule pods", plugins));
        }
        let mut state = CycleState::over(&snapshot);
        state.is_timed = self.parts.plugin_numbers.times_this_cycle();
        let begun = self.parts.context.clock.elapsed();
        let found = self.schedule_pod(pod, &snapshot, &mut state, cursor, step).await;
        self.parts.metrics.decided(self.since(begun));
        let node = found?;
        self.parts.context.client.flow().record_with(step.cause(), || Step::Assumed {
            pod: pod.object.shared_key().clone(),
            node: node.clone(),
        });
        // Whoever reserves and binds needs no nodes, and what nobody holds need not be copied when it
        // changes.
        state.nodes = NodeSnapshot::default();
        drop(snapshot);
        if !self.parts.cache.assume(pod.clone(), &node) {
            return Err(SchedulingFailure::error("pod is in the cache, so can't be assumed"));
        }
        let reserve = || framework.run_reserve(&state, pod, &node);
        let mut status = self.at_point("Reserve", framework, reserve, |status| status.code);
        if status.is_success() {
            let permit = || framework.run_permit(&state, pod, &node, &self.parts.context.clock);
            status = self.at_point("Permit", framework, permit, |status| status.code);
        }
        if !status.is_success() {
            framework.run_unreserve(&state, pod, &node);
            self.parts.cache.forget(pod.uid());
            return Err(rejected_by_plugin(&node, status));
        }
        Ok(Chosen { node, state, begun: Duration::ZERO })
    }

    async fn binding_cycle(
        &self,
        info: QueuedPodInfo,
        chosen: Chosen,
        step: StepId,
        mut permit: Option<OwnedSemaphorePermit>,
    ) {
        let (context, pod, node) = (&self.parts.context, info.pod.clone(), chosen.node.clone());
        let framework = self.parts.profiles.of(&pod).clone();
        let is_waiting = framework.waiting_pods().has(pod.uid());
        let is_waiting = is_waiting || framework.waits_before_binding(&chosen.state, &pod);
        // Whoever waits must not keep those from binding that it may wait for.
        if is_waiting {
            drop(permit.take());
        }
        let client = context.client.caused_by(step);
        let recorder = self.recorder(&pod).caused_by(step);
        let request = BindRequest { client: &client, recorder: &recorder, pod: &pod, node: &node };
        if is_waiting || framework.prepares_binding(&pod) {
            expect(request).await;
        }
        let prepared = self.prepare_binding(&framework, request, chosen.state.is_timed).await;
        if is_waiting {
            permit = self.parts.writes.clone().acquire_owned().await.ok();
        }
        let _permit = permit;
        if let Err(failure) = prepared {
            return self.take_back(info, &chosen, request, failure).await;
        }
        // From here on it cannot be found unschedulable: what happens in the cluster does not matter to it.
        self.parts.queue.done(pod.uid());
        let status = self.bind(&framework, request, chosen.state.is_timed).await;
        if !status.is_success() {
            let text = format!("running Bind plugin {:?}: {status}", status.plugin);
            let failure = SchedulingFailure::error(&text);
            return self.take_back(info, &chosen, request, failure).await;
        }
        let post_bind = || framework.run_post_bind(&pod, &node, chosen.state.is_timed);
        self.at_point("PostBind", &framework, post_bind, |()| Code::Success);
        self.count(&pod, "scheduled", chosen.begun);
        let since = (context.clock.now() - info.came_at).to_std().unwrap_or_default();
        self.parts.metrics.scheduled(&info, since);
        let step = self.record_bound(&pod, &node, step);
        tracing::info!(pod = %pod.object.shared_key(), %node, "Successfully bound pod to node");
        self.parts.queue.nominate(&pod, None);
        let text = format!("Successfully assigned {} to {node}", pod.object.key());
        let recorder = recorder.caused_by(step);
        recorder.event_of((&PODS, &pod.object), ("Binding", None), "Normal", "Scheduled", text);
    }

    /// Waits for what plugins wait for, and lets them write what has to be there before the binding.
    async fn prepare_binding(
        &self,
        framework: &Framework,
        request: BindRequest<'_>,
        is_timed: bool,
    ) -> Result<(), SchedulingFailure> {
        let (waits, begun) =
            (framework.waiting_pods().has(request.pod.uid()), self.parts.context.clock.elapsed());
        let status = framework.wait_on_permit(request.pod, &self.parts.context.clock).await;
        if waits {
            self.parts.metrics.permitted(status.code, self.since(begun));
        }
        if !status.is_success() {
            return Err(rejected_by_plugin(request.node, status));
        }
        let begun = self.parts.context.clock.elapsed();
        let status = framework.run_pre_bind(request, is_timed).await;
        self.parts.metrics.ran("PreBind", &framework.name, status.code, self.since(begun));
        if status.is_rejected() {
            return Err(rejected_by_plugin(request.node, status));
        }
        if status.is_success() {
            return Ok(());
        }
        let text = format!("running PreBind plugin {:?}: {status}", status.plugin);
        Err(SchedulingFailure::error(&text))
    }

    /// An extender that binds goes before the plugins (`extendersBinding`).
    async fn bind(&self, framework: &Framework, request: BindRequest<'_>, is_timed: bool) -> Status {
        if let Some(status) = self.parts.extenders.bind(request.pod, request.node).await {
            return status;
        }
        let begun = self.parts.context.clock.elapsed();
        let status = framework.run_bind(request, is_timed).await;
        self.parts.metrics.ran("Bind", &framework.name, status.code, self.since(begun));
        status
    }

    /// Runs the plugins of a point, and notes how long that took and what they said.
    pub(super) fn at_point<T>(
        &self,
        point: &str,
        framework: &Framework,
        run: impl FnOnce() -> T,
        code: impl FnOnce(&T) -> Code,
    ) -> T {
        let begun = self.parts.context.clock.elapsed();
        let said = run();
        self.parts.metrics.ran(point, &framework.name, code(&said), self.since(begun));
        said
    }

    fn since(&self, begun: Duration) -> Duration {
        self.parts.context.clock.elapsed().saturating_sub(begun)
    }

    /// The pod is not on its node after all, and whoever waits for its place may try.
    async fn take_back(
        &self,
        info: QueuedPodInfo,
        chosen: &Chosen,
        request: BindRequest<'_>,
        mut failure: SchedulingFailure,
    ) {
        let pod = info.pod.clone();
        failure.preemption.get_or_insert_with(PostFilterResult::default);
        self.count(&pod, failure.result(), chosen.begun);
        let framework = self.parts.profiles.of(&pod);
        framework.run_unreserve(&chosen.state, &pod, &chosen.node);
        framework.run_take_back(request).await;
        self.parts.cache.forget(pod.uid());
        let event = (EventResource::AssignedPod, ActionType::Delete);
        self.parts.queue.move_all(Occurrence { event, old: Some(pod.object.clone()), new: None });
        let mut context = self.parts.context.clone();
        context.client = request.client.clone();
        context.recorder = request.recorder.clone();
        handle_scheduling_failure(&self.parts, &context, info, failure).await;
    }

    fn count(&self, pod: &PodInfo, result: &str, begun: Duration) {
        self.parts.metrics.attempted(&self.parts.profiles.of(pod).name, result, self.since(begun));
    }

    /// Speaks in the name of the pod's profile.
    fn recorder(&self, pod: &PodInfo) -> EventRecorder {
        self.parts.context.recorder.named(&self.parts.profiles.of(pod).name)
    }

    /// The scheduler's context, speaking on account of an attempt.
    fn context_of(&self, pod: &PodInfo, step: StepId) -> ComponentContext {
        let mut context = self.parts.context.clone();
        context.client = context.client.caused_by(step);
        context.recorder = self.recorder(pod).caused_by(step);
        context
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

/// Tells where a pod will be that is not bound at once, for those who give nodes their sizes
/// (`NominatedNodeNameForExpectation`). Nothing depends on it.
async fn expect(request: BindRequest<'_>) {
    let BindRequest { client, pod, node, .. } = request;
    if pod.pod().status.nominated_node_name == *node {
        return;
    }
    let told = patch_status(client, &pod.object, json!({"nominatedNodeName": node})).await;
    if let Err(status) = told {
        tracing::debug!(pod = %pod.object.shared_key(), status = %status.message, "updating the nominated node");
    }
}

/// The no of a Reserve or Permit plugin, told as that of the one node that it is about.
fn rejected_by_plugin(node: &str, status: Status) -> SchedulingFailure {
    if !status.is_rejected() {
        return SchedulingFailure::error(&status.message());
    }
    let mut error = FitError { node_count: 1, ..FitError::default() };
    let plugin = status.plugin;
    error.diagnosis.nodes.explicit.insert(node.into(), status);
    SchedulingFailure::unschedulable(&error.to_string(), [plugin].into())
}

#[cfg(test)]
pub(super) mod tests {
    use std::convert::Infallible;

    use futures::FutureExt;
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
        Scheduler::new(context())
    }

    /// Of an apiserver that answers nothing.
    pub(crate) fn context() -> ComponentContext {
        let service = BoxCloneSyncService::new(tower::service_fn(|_: ApiRequest| async {
            Ok::<_, Infallible>(ApiResponse::default())
        }));
        let (clock, entropy) = (Clock::stepped(Time::UNIX_EPOCH), Entropy::seeded(7));
        let identity = Arc::new(UserInfo::authenticated("system:kube-scheduler", &[]));
        let client = Client::new(service, identity, clock.clone(), Flow::off());
        let source = ("default-scheduler", "");
        ComponentContext::new("kube-scheduler", source, client, clock, entropy)
    }

    /// The node that is chosen for a pod, or what is said of it.
    pub(crate) fn decide_on(scheduler: &Scheduler, pod: Arc<PodInfo>) -> Result<String, SchedulingFailure> {
        // Without extenders nothing is waited for.
        decide(scheduler, pod).now_or_never().expect("nothing is waited for")
    }

    /// As [`decide_on`], where extenders are asked.
    pub(crate) async fn decide(
        scheduler: &Scheduler,
        pod: Arc<PodInfo>,
    ) -> Result<String, SchedulingFailure> {
        decide_from(scheduler, pod, &mut Cursor::default()).await
    }

    /// As [`decide`], where the first node that is asked is the one at which another attempt has stopped.
    pub(crate) async fn decide_from(
        scheduler: &Scheduler,
        pod: Arc<PodInfo>,
        cursor: &mut Cursor,
    ) -> Result<String, SchedulingFailure> {
        let info = QueuedPodInfo::new(pod, Time::UNIX_EPOCH);
        let attempts = Attempts::new(scheduler.parts.clone());
        let chosen = attempts.scheduling_cycle(&info, cursor, StepId::NONE).await;
        chosen.map(|chosen| chosen.node.to_string())
    }
}
