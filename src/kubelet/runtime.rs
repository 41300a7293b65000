//! The simulated container runtime (CRI): a container as a state machine on the clock.
//!
//! A container never waits by itself: it says when its next step is due and takes it when it is asked. Steps
//! that take no time are taken in one go, so that a pod without delays is Pending in one moment and Running
//! and ready in the same.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::backoff::Backoff;
use super::hooks;
use super::pod_workers::grace_period;
use super::running::Running;
use super::world::World;
use crate::container_runtime::invocation;
use crate::container_runtime::stages::{Exit, Failure, Next, Step};
use apimachinery::duration;
use apimachinery::time::Time;
use apis::views::pod::{Container as Spec, Pod};
use clock::after;
use machine::signals;
use machine::surroundings::Surroundings;

/// The reason of a container that waits for what it names.
pub(super) const CONFIG_ERROR: &str = "CreateContainerConfigError";
/// Until a container that could not be started is tried again.
const START_RETRY: Duration = Duration::from_secs(10);

/// What a container does now (`v1.ContainerState`).
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Not running yet, or not again.
    Waiting {
        /// As `ContainerCreating`.
        reason: String,
        /// For people.
        message: String,
    },
    /// Its process runs.
    Running {
        /// As `containerd://...`.
        id: String,
        /// Since when.
        started_at: Time,
    },
    /// Its process has ended.
    Terminated(Box<Terminated>),
}

/// How a container ended (`v1.ContainerStateTerminated`).
#[derive(Clone, Debug, PartialEq)]
pub struct Terminated {
    /// As `containerd://...`; empty when it never was.
    pub id: String,
    /// Its exit code, its reason, its last word.
    pub exit: Exit,
    /// When it started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub finished_at: Option<Time>,
}

/// Whether a container that ended is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    /// However it ended.
    Always,
    /// When it failed.
    OnFailure,
    /// Not.
    Never,
}

/// One container of a pod on this node.
#[derive(Clone, Debug)]
pub struct Container {
    /// What it does now.
    pub state: State,
    /// How it ended before its last restart.
    pub last: Option<Box<Terminated>>,
    /// How often it was restarted.
    pub restart_count: i64,
    /// Whether it passed its startup probe.
    pub started: bool,
    /// Whether it passed its readiness probe.
    pub ready: bool,
    pub(super) restart_policy: RestartPolicy,
    /// What of its spec it was made from (`HashContainer`): of another it is made anew.
    hash: u64,
    /// What its process finds, when that is known; of the run before the last restart, too.
    pub(super) around: Option<Arc<Surroundings>>,
    pub(super) last_around: Option<Arc<Surroundings>>,
    /// How many runs this kubelet did not see end.
    pub(super) unseen_runs: i64,
    pub(super) task: Task,
    restarts: Backoff,
    pub(super) pulls: Backoff,
}

/// What it is busy with, and until when.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Task {
    /// It is not its turn.
    Idle,
    Pull {
        began: Time,
        until: Time,
        next: Next,
    },
    ShowBackOff {
        until: Time,
        failed_at: Time,
    },
    PullBackOff {
        until: Time,
    },
    Start {
        until: Time,
        next: Next,
    },
    StartBackOff {
        until: Time,
    },
    Run(Box<Running>),
    Stop {
        until: Time,
        exit: Exit,
    },
    /// It is stopped to be started from another image.
    Replace {
        until: Time,
        exit: Exit,
    },
    /// It is stopped because a probe failed, and goes on as its restart policy says.
    Restart {
        until: Time,
        exit: Exit,
    },
    CrashLoopBackOff {
        until: Time,
    },
    /// It has ended for good.
    Done,
}

impl RestartPolicy {
    /// Of a container of a pod: an init container that succeeded is not repeated, a sidecar always is.
    pub fn of(pod: &Pod, spec: &Spec, is_init: bool) -> RestartPolicy {
        let policy = spec.restart_policy.as_deref().unwrap_or(&pod.spec.restart_policy);
        match policy {
            "Never" => RestartPolicy::Never,
            "Always" | "" if !is_init || spec.restart_policy.is_some() => RestartPolicy::Always,
            _ => RestartPolicy::OnFailure,
        }
    }

    pub(super) fn restarts(self, exit_code: i32) -> bool {
        match self {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => exit_code != 0,
            RestartPolicy::Never => false,
        }
    }
}

impl Container {
    /// A container that waits for its turn.
    pub fn new(spec: &Spec, restart_policy: RestartPolicy, waiting_reason: &str) -> Container {
        Container {
            state: waiting(waiting_reason, ""),
            last: None,
            restart_count: 0,
            started: false,
            ready: false,
            restart_policy,
            hash: hash(spec),
            around: None,
            last_around: None,
            unseen_runs: 0,
            task: Task::Idle,
            restarts: Backoff::default(),
            pulls: Backoff::default(),
        }
    }

    /// Takes up a container that an earlier kubelet left in this state.
    pub fn adopt(&mut self, spec: &Spec, world: &mut World<'_>) {
        match self.state.clone() {
            State::Waiting { .. } => {}
            State::Running { started_at, .. } => {
                let (ready, started) = (self.ready, self.started);
                self.around = world.surroundings(spec, self.restart_count, started_at).unwrap_or_default();
                self.hand_on_unseen_runs();
                let mut running = self.run(spec, started_at, world);
                self.ready = ready;
                running.ready_at = running.ready_at.filter(|_| !ready);
                if let Some(probers) = running.probers.as_mut().filter(|_| started) {
                    probers.forget_startup(ready);
                }
                self.started |= started;
                self.task = Task::Run(running);
            }
            State::Terminated(ended) if self.restart_policy.restarts(ended.exit.code) => {
                self.end(spec, *ended, world);
            }
            State::Terminated(_) => self.task = Task::Done,
        }
    }

    /// Begins, when it has not yet, and takes all steps that are due. Says when the next one is.
    pub fn advance(&mut self, spec: &Spec, world: &mut World<'_>) -> Option<Time> {
        if std::mem::replace(&mut self.hash, hash(spec)) != hash(spec) {
            self.replace(spec, world);
        }
        if self.task == Task::Idle {
            self.pull(spec, world);
        }
        loop {
            let due = self.due()?;
            if due > world.now {
                return Some(due);
            }
            self.step(spec, due, world);
        }
    }

    /// Sends the stop signal; the process has `grace` to end. Called again with less grace, it has less.
    pub fn stop(&mut self, spec: &Spec, grace: Duration, world: &mut World<'_>) {
        let killed_at = after(world.now, grace);
        match &mut self.task {
            Task::Run { .. } => {
                world.note(spec, "Normal", "Killing", format!("Stopping container {}", spec.name));
                let (until, exit) = self.signal(spec, grace, world);
                (self.ready, self.task) = (false, Task::Stop { until, exit });
            }
            Task::Replace { until, exit } | Task::Restart { until, exit } => {
                self.task = Task::Stop { until: (*until).min(killed_at), exit: exit.clone() };
            }
            Task::Stop { until, exit } if *until > killed_at => {
                (*until, *exit) = (killed_at, Exit { code: 137, ..Exit::default() });
            }
            Task::Stop { .. } => {}
            task => *task = Task::Done,
        }
    }

    /// Started from another image, whatever its restart policy; at once, when it could not be pulled.
    fn replace(&mut self, spec: &Spec, world: &mut World<'_>) {
        match &self.task {
            Task::Run { .. } => {
                let text = format!("Container {} definition changed, will be restarted", spec.name);
                world.note(spec, "Normal", "Killing", text);
                let (until, exit) = self.signal(spec, grace_period(world.pod, None), world);
                (self.ready, self.task) = (false, Task::Replace { until, exit });
            }
            Task::Pull { .. } | Task::ShowBackOff { .. } | Task::PullBackOff { .. } => {
                self.pulls = Backoff::default();
                self.pull(spec, world);
            }
            _ => {}
        }
    }

    /// When and how it ends that is stopped now: after its hook, and the stop signal.
    pub(super) fn signal(&self, spec: &Spec, grace: Duration, world: &mut World<'_>) -> (Time, Exit) {
        let hook = spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.as_ref());
        let hook = hook.map(|hook| hooks::run(hook, self.around.as_deref()));
        if hook.is_some_and(|hook| !hook.is_well) {
            world.note(spec, "Warning", "FailedPreStopHook", "PreStopHook failed".into());
        }
        let took = hook.map_or(Duration::ZERO, |hook| hook.took.min(grace));
        match world.stage(Step::Stop, spec, self.restart_count) {
            (delay, Next::Exit(exit)) if took + delay <= grace => (after(world.now, took + delay), exit),
            (delay, Next::FollowCommand) => self.follow_signal(spec, took + delay, grace, world.now),
            _ => (after(world.now, grace), Exit { code: 137, ..Exit::default() }),
        }
    }

    /// As its command says that is sent its stop signal after `delay`; killed when its grace is over.
    fn follow_signal(&self, spec: &Spec, delay: Duration, grace: Duration, now: Time) -> (Time, Exit) {
        let ran = self.started_at().map(|at| (now - at).to_std().unwrap_or_default()).unwrap_or_default();
        let end = signals::end(&invocation::of(spec), self.around.as_deref(), ran.saturating_add(delay));
        match end.map(|(time, code)| (delay.saturating_add(time), code)) {
            Some((time, code)) if time <= grace => (after(now, time), Exit { code, ..Exit::default() }),
            _ => (after(now, grace), Exit { code: 137, ..Exit::default() }),
        }
    }

    /// When its process started, if it runs.
    pub(super) fn started_at(&self) -> Option<Time> {
        match &self.state {
            State::Running { started_at, .. } => Some(*started_at),
            _ => None,
        }
    }

    /// Whether its process runs.
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Whether it has ended and will not be started again.
    pub fn is_done(&self) -> bool {
        self.task == Task::Done
    }

    /// Whether it has ended well.
    pub fn has_succeeded(&self) -> bool {
        matches!(&self.state, State::Terminated(ended) if ended.exit.code == 0)
    }

    /// Whether it ever ran.
    pub fn has_run(&self) -> bool {
        !matches!(self.state, State::Waiting { .. }) || self.last.is_some()
    }

    /// Whether it could not be made because of what it names.
    pub(super) fn waits_for_config(&self) -> bool {
        let is_config = matches!(&self.state, State::Waiting { reason, .. } if reason == CONFIG_ERROR);
        is_config && matches!(self.task, Task::StartBackOff { .. })
    }

    /// Tries again at once, when it waits for what it names: its pod has changed.
    pub(super) fn start_again(&mut self) {
        if self.waits_for_config() {
            self.task = Task::StartBackOff { until: Time::UNIX_EPOCH };
        }
    }

    fn due(&self) -> Option<Time> {
        match &self.task {
            Task::Idle | Task::Done => None,
            Task::Run(running) => running.due(),
            Task::Pull { until, .. }
            | Task::ShowBackOff { until, .. }
            | Task::PullBackOff { until }
            | Task::Start { until, .. }
            | Task::StartBackOff { until }
            | Task::Stop { until, .. }
            | Task::Replace { until, .. }
            | Task::Restart { until, .. }
            | Task::CrashLoopBackOff { until } => Some(*until),
        }
    }

    fn step(&mut self, spec: &Spec, due: Time, world: &mut World<'_>) {
        match std::mem::replace(&mut self.task, Task::Done) {
            Task::Idle | Task::Done => {}
            Task::Pull { began, next: Next::Fail(failure), .. } => {
                self.pull_failed(spec, began, &failure, world)
            }
            Task::Pull { began, .. } => self.pulled(spec, began, world),
            Task::ShowBackOff { failed_at, .. } => self.show_pull_back_off(spec, failed_at, world),
            Task::PullBackOff { .. } => self.pull(spec, world),
            Task::Start { next: Next::Fail(failure), .. } => self.start_failed(spec, &failure, world),
            Task::Start { .. } => self.start(spec, world),
            Task::StartBackOff { .. } => self.create(spec, world),
            Task::Run(mut running) => match running.ends.take() {
                Some((at, exit)) if at <= due => self.exit(spec, exit, at, world),
                ends => {
                    running.ends = ends;
                    self.look_at(spec, running, due, world);
                }
            },
            Task::Restart { exit, .. } => self.exit(spec, exit, due, world),
            Task::Stop { exit, .. } => {
                self.restart_policy = RestartPolicy::Never;
                self.exit(spec, exit, due, world);
            }
            Task::Replace { exit, .. } => {
                world.note_exit(spec, exit.code);
                (self.started, self.ready) = (false, false);
                self.state = State::Terminated(Box::new(self.ended(exit, due)));
                self.pull(spec, world);
            }
            Task::CrashLoopBackOff { .. } => self.restart(spec, world),
        }
    }

    /// CRI `CreateContainer` and `StartContainer`, as far as they take time.
    pub(super) fn create(&mut self, spec: &Spec, world: &mut World<'_>) {
        let (delay, next) = world.stage(Step::Start, spec, self.restart_count);
        self.task = Task::Start { until: until(world.now, delay, &next), next };
    }

    fn start_failed(&mut self, spec: &Spec, failure: &Failure, world: &mut World<'_>) {
        let message = failure.message_for(&spec.image, &spec.name);
        world.note(spec, "Warning", "Failed", format!("Error: {message}"));
        self.remember_end();
        self.state = waiting(&failure.reason, &message);
        self.task = Task::StartBackOff { until: world.now + START_RETRY };
    }

    fn start(&mut self, spec: &Spec, world: &mut World<'_>) {
        let restart_count = self.restart_count + i64::from(self.has_run());
        let around = match world.surroundings(spec, restart_count, world.now) {
            Ok(around) => around,
            Err(message) => {
                let failure = Failure { reason: CONFIG_ERROR.into(), message };
                return self.start_failed(spec, &failure, world);
            }
        };
        world.note(spec, "Normal", "Created", "Container created".into());
        world.note(spec, "Normal", "Started", "Container started".into());
        self.remember_end();
        self.restart_count = restart_count;
        self.last_around = std::mem::replace(&mut self.around, around);
        self.hand_on_unseen_runs();
        let id = format!("containerd://{}", world.entropy.hex(64));
        self.state = State::Running { id, started_at: world.now };
        self.task = Task::Run(self.run(spec, world.now, world));
    }

    fn hand_on_unseen_runs(&mut self) {
        if let Some(around) = self.around.as_mut().filter(|_| self.unseen_runs > 0) {
            Arc::make_mut(around).unseen_runs = self.unseen_runs;
        }
    }

    pub(super) fn ended(&self, exit: Exit, finished_at: Time) -> Terminated {
        let (id, started_at) = match &self.state {
            State::Running { id, started_at } => (id.clone(), Some(*started_at)),
            _ => (String::new(), None),
        };
        Terminated { id, exit, started_at, finished_at: Some(finished_at) }
    }

    /// It has ended: for good, until its back-off is over, or until right now.
    pub(super) fn end(&mut self, spec: &Spec, ended: Terminated, world: &mut World<'_>) {
        (self.started, self.ready) = (false, false);
        let (restarts, finished_at) = (self.restart_policy.restarts(ended.exit.code), ended.finished_at);
        self.state = State::Terminated(Box::new(ended));
        if !restarts {
            self.task = Task::Done;
            return;
        }
        match self.restarts.until(finished_at.unwrap_or(world.now)).filter(|until| *until > world.now) {
            Some(until) => self.crash_loop(spec, until, world),
            None => self.restart(spec, world),
        }
    }

    fn crash_loop(&mut self, spec: &Spec, until: Time, world: &mut World<'_>) {
        let (name, pod) = (&spec.name, world.pod_name());
        let pause = duration::format(self.restarts.current());
        let text = format!("Back-off restarting failed container {name} in pod {pod}");
        self.remember_end();
        self.state = waiting(
            "CrashLoopBackOff",
            &format!("back-off {pause} restarting failed container={name} pod={pod}"),
        );
        self.task = Task::CrashLoopBackOff { until };
        world.note(spec, "Warning", "BackOff", text);
    }

    fn restart(&mut self, spec: &Spec, world: &mut World<'_>) {
        let ended = match &self.state {
            State::Terminated(ended) => Some(ended),
            _ => self.last.as_ref(),
        };
        let finished_at = ended.and_then(|ended| ended.finished_at);
        self.restarts.next(finished_at.unwrap_or(world.now), world.now);
        self.pull(spec, world);
    }

    /// What it was becomes its last state.
    fn remember_end(&mut self) {
        if let State::Terminated(ended) = &self.state {
            self.last = Some(ended.clone());
        }
    }
}

/// Of what makes a container another one: its image.
fn hash(spec: &Spec) -> u64 {
    let mut hasher = DefaultHasher::new();
    spec.image.hash(&mut hasher);
    hasher.finish()
}

/// When a step ends; one that stays never does.
pub(super) fn until(now: Time, delay: Duration, next: &Next) -> Time {
    if *next == Next::Stay { Time::MAX_UTC } else { after(now, delay) }
}

pub(super) fn waiting(reason: &str, message: &str) -> State {
    State::Waiting { reason: reason.into(), message: message.into() }
}
