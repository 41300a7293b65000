//! Containers of a pod on this node as state machines on the clock (`pkg/kubelet/kuberuntime`,
//! `kuberuntime_container.go`).
//!
//! A container never waits by itself: it says when its next step is due and takes it when it is asked. Steps
//! that take no time are taken in one go, so that a pod without delays is Pending in one moment and Running
//! and ready in the same.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use super::context::SyncContext;
use super::hooks::StopPurpose;
use super::state::{ContainerEnd, KubeContainerState, RestartAction, RestartPolicy, waiting};
use super::task::Task;
use crate::backoff::RetryPause;
use crate::container_runtime::services::{ContainerId, Exit, RuntimeError, RuntimeService};
use crate::probe_counts::ProbeCount;
use crate::prober::{ProbeKind, Probers};
use apimachinery::duration;
use apimachinery::time::Time;
use apis::views::pod::{Container as Spec, Pod};
use clock::after;
use machine::bounds::START_ERROR;

/// The reason of a container that waits for what it names.
pub(crate) const CONFIG_ERROR: &str = "CreateContainerConfigError";
/// The grace of a pod that does not say.
const DEFAULT_GRACE_SECONDS: i64 = 30;
/// Until a container that could not be started is tried again.
const START_RETRY: Duration = Duration::from_secs(10);

/// One container of a pod on this node.
#[derive(Clone, Debug)]
pub struct KubeContainer {
    /// What it does now.
    pub state: KubeContainerState,
    /// How it ended before its last restart.
    pub last: Option<Box<ContainerEnd>>,
    /// How often it was restarted.
    pub restart_count: i64,
    /// Whether it passed its startup probe.
    pub started: bool,
    /// Whether it passed its readiness probe.
    pub ready: bool,
    pub(crate) restart_policy: RestartPolicy,
    /// What of its spec it was made from (`HashContainer`): of another it is made anew.
    hash: u64,
    /// Under which its failures are remembered (`GetBackoffKey`): of another image, or with other resources,
    /// it has not failed yet.
    backoff_key: u64,
    /// What the variables take that it was started with.
    pub(crate) start_bytes: usize,
    /// How many runs this kubelet did not see end.
    pub(crate) unseen_runs: i64,
    pub(crate) task: Task,
    /// When it was sent its stop signal.
    pub(crate) signalled_at: Option<Time>,
    /// What is asked of it while it is stopped, until it has ended: whether it is ready.
    pub(crate) readiness: Option<Box<Probers>>,
    /// All containers of its pod begin anew, and it has not yet.
    pub(crate) begins_anew: bool,
    pub(crate) restarts: RetryPause,
    pub(crate) pulls: RetryPause,
}

impl KubeContainer {
    /// A container that waits for its turn.
    pub fn new(spec: &Spec, restart_policy: RestartPolicy, waiting_reason: &str) -> KubeContainer {
        KubeContainer {
            state: waiting(waiting_reason, ""),
            last: None,
            restart_count: 0,
            started: false,
            ready: false,
            restart_policy,
            hash: hash(spec),
            backoff_key: backoff_key(spec),
            start_bytes: 0,
            unseen_runs: 0,
            task: Task::Idle,
            signalled_at: None,
            readiness: None,
            begins_anew: false,
            restarts: RetryPause::default(),
            pulls: RetryPause::default(),
        }
    }

    /// Takes up a container that an earlier kubelet left in this state.
    pub fn adopt(&mut self, spec: &Spec, context: &mut SyncContext<'_>) {
        match self.state.clone() {
            KubeContainerState::Waiting { .. } => {}
            KubeContainerState::Running { id, started_at } => {
                let ready = self.ready;
                let started = self.started;
                let mut found =
                    context.surroundings(spec, self.restart_count, started_at).unwrap_or_default();
                if let Some(found) = &mut found {
                    found.unseen_runs = self.unseen_runs;
                }
                self.start_bytes = found.as_ref().map_or(0, |found| found.start_bytes);
                let config = context.config(spec, self.restart_count);
                let status = context.runtime.restore_container(&config, &id, found, started_at);
                let mut running = self.run(spec, (&id, started_at), status, context);
                self.ready = ready;
                running.ready_at = running.ready_at.filter(|_| !ready);
                if let Some(probers) = running.probers.as_mut().filter(|_| started) {
                    probers.forget_startup(ready);
                }
                self.started |= started;
                self.task = Task::Run(running);
            }
            KubeContainerState::Terminated(ended) if self.restarts(context.pod, spec, ended.exit.code) => {
                self.end(spec, *ended, context);
            }
            KubeContainerState::Terminated(_) => self.task = Task::Done,
        }
    }

    /// It ended before this kubelet; it runs again, in its turn, or never.
    pub(crate) fn take_up(&mut self, ended: ContainerEnd, runs_again: bool) {
        self.unseen_runs += 1;
        if runs_again {
            self.last = Some(Box::new(ended));
        } else {
            self.state = KubeContainerState::Terminated(Box::new(ended));
            self.task = Task::Done;
        }
    }

    /// Begins, when it has not yet, and takes all steps that are due. Says when the next one is.
    pub fn advance(&mut self, spec: &Spec, context: &mut SyncContext<'_>) -> Option<Time> {
        let (backoff_key, hash) = (backoff_key(spec), hash(spec));
        if std::mem::replace(&mut self.backoff_key, backoff_key) != backoff_key {
            self.forget_failures(context.now);
        }
        if std::mem::replace(&mut self.hash, hash) != hash {
            self.replace(spec, context);
        }
        if self.task == Task::Idle {
            self.pull(spec, context);
        }
        loop {
            let due = self.due()?;
            if due > context.now {
                return Some(due);
            }
            self.step(spec, due, context);
        }
    }

    /// Sends the stop signal; the process has `grace` to end. Called again with less grace, it has less.
    pub fn stop(&mut self, spec: &Spec, grace: Duration, context: &mut SyncContext<'_>) {
        let killed_at = after(context.now, grace);
        if let Some(running) = self.take_running() {
            context.note(spec, "Normal", "Killing", format!("Stopping container {}", spec.name));
            return self.begin_stop(spec, (grace, running), StopPurpose::End, context);
        }
        match &mut self.task {
            Task::PreStop(hook) => hook.hurry(killed_at),
            Task::Replace { until, exit } | Task::Restart { until, exit } => {
                self.task = Task::Stop { until: (*until).min(killed_at), exit: exit.clone() };
            }
            Task::Stop { until, exit } if *until > killed_at => {
                (*until, *exit) = (killed_at, Exit::killed());
            }
            Task::Stop { .. } => {}
            task => *task = Task::Done,
        }
    }

    /// What runs is stopped and started as its spec says now, whatever its restart policy.
    pub(crate) fn restart_as(&mut self, spec: &Spec, why: &str, context: &mut SyncContext<'_>) {
        if let Some(running) = self.take_running() {
            context.note(spec, "Normal", "Killing", format!("Container {} {why}", spec.name));
            let grace = grace_period(context.pod, None);
            self.begin_stop(spec, (grace, running), StopPurpose::Replace, context);
        }
    }

    /// Its pauses begin anew, and one that it waits for is over.
    fn forget_failures(&mut self, now: Time) {
        self.restarts = RetryPause::default();
        if let Task::CrashLoopBackOff { until } = &mut self.task {
            *until = now;
        }
    }

    /// Started from another image; at once, when it could not be pulled or made.
    fn replace(&mut self, spec: &Spec, context: &mut SyncContext<'_>) {
        match &mut self.task {
            Task::Run(_) => {
                // One that had ended before counts as having failed now (`doBackOff`).
                if let Some(finished_at) = self.last.as_ref().and_then(|ended| ended.finished_at) {
                    self.restarts.next(finished_at, context.now, context.longest_restart);
                }
                self.restart_as(spec, "definition changed, will be restarted", context);
            }
            Task::Pull(_) | Task::StartBackOff { .. } => {
                self.pulls = RetryPause::default();
                self.pull(spec, context);
            }
            _ => {}
        }
    }

    /// How often the probes of its run were asked; nothing where it has none, or does not run.
    pub(crate) fn probe_counts(&self, now: Time) -> Option<Vec<(ProbeKind, ProbeCount)>> {
        Some(self.probers()?.counts(now))
    }

    /// The id of the container whose process runs.
    pub(crate) fn running_id(&self) -> Option<&ContainerId> {
        match &self.state {
            KubeContainerState::Running { id, .. } => Some(id),
            _ => None,
        }
    }

    /// When its process started, if it runs.
    pub(crate) fn started_at(&self) -> Option<Time> {
        match &self.state {
            KubeContainerState::Running { started_at, .. } => Some(*started_at),
            _ => None,
        }
    }

    /// Whether its process runs.
    pub fn is_running(&self) -> bool {
        matches!(self.state, KubeContainerState::Running { .. })
    }

    /// Whether it has ended and will not be started again.
    pub fn is_done(&self) -> bool {
        self.task == Task::Done
    }

    /// Whether it has ended well.
    pub fn has_succeeded(&self) -> bool {
        matches!(&self.state, KubeContainerState::Terminated(ended) if ended.exit.code == 0)
    }

    /// Whether it ever ran.
    pub fn has_run(&self) -> bool {
        !matches!(self.state, KubeContainerState::Waiting { .. }) || self.last.is_some()
    }

    /// Whether it could not be made because of what it names.
    pub(crate) fn waits_for_config(&self) -> bool {
        let is_config =
            matches!(&self.state, KubeContainerState::Waiting { reason, .. } if reason == CONFIG_ERROR);
        is_config && matches!(self.task, Task::StartBackOff { .. })
    }

    /// Tries again at once, when it waits for what it names: its pod has changed.
    pub(crate) fn start_again(&mut self) {
        if self.waits_for_config() {
            self.task = Task::StartBackOff { until: Time::UNIX_EPOCH };
        }
    }

    /// What a rule of its own says of such an end; nothing of one that is stopped for good.
    fn action(&self, pod: &Pod, spec: &Spec, exit_code: i32) -> Option<RestartAction> {
        RestartAction::of(pod, spec, exit_code).filter(|_| self.restart_policy != RestartPolicy::Ended)
    }

    /// Whether it is started again when it ends so: its rules come before its policy
    /// (`ContainerShouldRestart`).
    pub(crate) fn restarts(&self, pod: &Pod, spec: &Spec, exit_code: i32) -> bool {
        self.action(pod, spec, exit_code).is_some() || self.restart_policy.restarts(exit_code)
    }

    fn due(&self) -> Option<Time> {
        let readiness = self.readiness.as_ref().and_then(|probers| probers.due());
        [self.task.due(), readiness].into_iter().flatten().min()
    }

    fn step(&mut self, spec: &Spec, due: Time, context: &mut SyncContext<'_>) {
        if self.task.due().is_none_or(|at| at > due) {
            return self.look_at_readiness(spec, due, context);
        }
        match std::mem::replace(&mut self.task, Task::Done) {
            Task::Idle | Task::Done => {}
            Task::Pull(pull) => self.go_on_pulling(spec, pull, context),
            Task::Create { began, call } => {
                context.called("create_container", began, call.result.is_err());
                match call.result {
                    Ok(id) => self.start(spec, id, context),
                    Err(error) => self.start_failed(spec, &error, context),
                }
            }
            Task::StartBackOff { .. } => self.create(spec, context),
            Task::Run(mut running) => match running.ends.take() {
                Some((at, exit)) if at <= due => self.exit(spec, exit, at, context),
                ends => {
                    running.ends = ends;
                    self.look_at(spec, running, due, context);
                }
            },
            Task::PreStop(hook) => self.end_pre_stop(spec, *hook, due, context),
            Task::Restart { exit, .. } => {
                self.note_stopped(context);
                self.exit(spec, exit, due, context);
            }
            Task::Stop { exit, .. } => {
                self.note_stopped(context);
                self.restart_policy = RestartPolicy::Ended;
                self.exit(spec, exit, due, context);
            }
            Task::Replace { exit, .. } => {
                self.note_stopped(context);
                context.note_exit(spec, &exit);
                self.end_probes();
                self.state = KubeContainerState::Terminated(Box::new(self.ended(exit, due)));
                self.pull(spec, context);
            }
            Task::CrashLoopBackOff { .. } => self.restart(spec, context),
        }
    }

    /// Whether anything was done for it.
    pub(crate) fn has_begun(&self) -> bool {
        self.task != Task::Idle
    }

    /// CRI `CreateContainer`.
    pub(crate) fn create(&mut self, spec: &Spec, context: &mut SyncContext<'_>) {
        let config = context.config(spec, self.restart_count);
        let call = context.runtime.create_container(&config, context.now);
        self.task = Task::Create { began: context.now, call };
    }

    fn start_failed(&mut self, spec: &Spec, error: &RuntimeError, context: &mut SyncContext<'_>) {
        let RuntimeError { reason, message } = error;
        context.note(spec, "Warning", "Failed", format!("Error: {message}"));
        self.remember_end(context);
        self.state = waiting(reason, message);
        self.task = Task::StartBackOff { until: context.now + START_RETRY };
    }

    /// CRI `StartContainer`, among what is mounted now.
    fn start(&mut self, spec: &Spec, id: ContainerId, context: &mut SyncContext<'_>) {
        let restart_count = self.restart_count + i64::from(self.has_run() && !self.begins_anew);
        let refused = context.refuses_user(spec).map_or(Ok(()), |why| Err(why.into()));
        let found = refused.and_then(|()| context.surroundings(spec, restart_count, context.now));
        let mut found = match found {
            Ok(found) => found,
            Err(message) => {
                let error = RuntimeError { reason: CONFIG_ERROR.into(), message: message.into() };
                return self.start_failed(spec, &error, context);
            }
        };
        context.note(spec, "Normal", "Created", "Container created".into());
        self.remember_end(context);
        (self.restart_count, self.begins_anew) = (restart_count, false);
        if let Some(found) = &mut found {
            found.unseen_runs = self.unseen_runs;
        }
        self.start_bytes = found.as_ref().map_or(0, |found| found.start_bytes);
        let config = context.config(spec, restart_count);
        let status = context.runtime.start_container(&config, &id, found, context.now);
        let has_failed = status.ends.as_ref().is_some_and(|(_, exit)| exit.reason == START_ERROR);
        context.called("start_container", context.now, has_failed);
        if !has_failed {
            context.note(spec, "Normal", "Started", "Container started".into());
        }
        self.state = KubeContainerState::Running { id: id.clone(), started_at: context.now };
        self.task = Task::Run(self.run(spec, (&id, context.now), status, context));
    }

    pub(crate) fn ended(&self, exit: Exit, finished_at: Time) -> ContainerEnd {
        let (id, started_at) = match &self.state {
            KubeContainerState::Running { id, started_at } => (id.clone(), Some(*started_at)),
            _ => ("".into(), None),
        };
        ContainerEnd { id, exit, started_at, finished_at: Some(finished_at) }
    }

    /// It has ended: for good, until its back-off is over, or until right now.
    pub(crate) fn end(&mut self, spec: &Spec, ended: ContainerEnd, context: &mut SyncContext<'_>) {
        self.end_probes();
        let exit_code = ended.exit.code;
        let finished_at = ended.finished_at;
        self.state = KubeContainerState::Terminated(Box::new(ended));
        let restarts_all = self.action(context.pod, spec, exit_code) == Some(RestartAction::RestartAll);
        context.restarts_all |= restarts_all;
        if restarts_all || !self.restarts(context.pod, spec, exit_code) {
            self.task = Task::Done;
            return;
        }
        let until = self.restarts.until(finished_at.unwrap_or(context.now), context.longest_restart);
        match until.filter(|until| *until > context.now) {
            Some(until) => self.crash_loop(spec, until, context),
            None => self.restart(spec, context),
        }
    }

    fn crash_loop(&mut self, spec: &Spec, until: Time, context: &mut SyncContext<'_>) {
        let (name, pod) = (&spec.name, context.pod_name());
        let pause = duration::format(self.restarts.current());
        let text = format!("Back-off restarting failed container {name} in pod {pod}");
        self.remember_end(context);
        self.state = waiting(
            "CrashLoopBackOff",
            &format!("back-off {pause} restarting failed container={name} pod={pod}"),
        );
        self.task = Task::CrashLoopBackOff { until };
        context.note(spec, "Warning", "BackOff", text);
    }

    fn restart(&mut self, spec: &Spec, context: &mut SyncContext<'_>) {
        let ended = match &self.state {
            KubeContainerState::Terminated(ended) => Some(ended),
            _ => self.last.as_ref(),
        };
        let finished_at = ended.and_then(|ended| ended.finished_at);
        self.restarts.next(finished_at.unwrap_or(context.now), context.now, context.longest_restart);
        self.pull(spec, context);
    }

    /// What it was becomes its last state; what was its last is removed.
    pub(crate) fn remember_end(&mut self, context: &mut SyncContext<'_>) {
        let KubeContainerState::Terminated(ended) = &self.state else { return };
        let older = self.last.replace(ended.clone());
        if let Some(older) = older.filter(|older| older.id != ended.id) {
            context.runtime.remove_container(&older.id);
            context.called("remove_container", context.now, false);
        }
    }

    /// Nothing of it is left.
    pub(crate) fn remove(&self, runtime: &dyn RuntimeService) {
        self.running_id().into_iter().for_each(|id| runtime.remove_container(id));
        if let KubeContainerState::Terminated(ended) = &self.state {
            runtime.remove_container(&ended.id);
        }
        self.last.iter().for_each(|ended| runtime.remove_container(&ended.id));
    }
}

/// Of what makes a container another one: its image.
fn hash(spec: &Spec) -> u64 {
    let mut hasher = DefaultHasher::new();
    spec.image.hash(&mut hasher);
    hasher.finish()
}

/// Of what makes its failures those of another: its image and its resources.
fn backoff_key(spec: &Spec) -> u64 {
    let mut hasher = DefaultHasher::new();
    spec.image.hash(&mut hasher);
    spec.resources.requests.hash(&mut hasher);
    spec.resources.limits.hash(&mut hasher);
    hasher.finish()
}

/// The pod's grace, or the one that is given for it.
pub(crate) fn grace_period(pod: &Pod, given: Option<i64>) -> Duration {
    let seconds = given.or(pod.spec.termination_grace_period_seconds).unwrap_or(DEFAULT_GRACE_SECONDS);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
