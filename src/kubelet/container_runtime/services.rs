//! The seam between a kubelet and what runs its containers: the verbs of CRI (`RuntimeService` and
//! `ImageManagerService` of `k8s.io/cri-api/pkg/apis/services.go`).
//!
//! Everything above speaks to [`RuntimeService`] alone: the sync loop, pod workers, status, probes and
//! lifecycle hooks. Whoever wants sandboxes on a network, containers that use something, or processes that
//! are real, implements or wraps this trait, and touches nothing above it.
//!
//! Three things differ from CRI, because a pod worker here is a value and not a goroutine:
//!
//! - **No verb waits.** One that takes time gives back a [`Call`] at once: when it returns, and with what.
//!   The worker comes back at that time. So a pod that waits costs its bytes and nothing else, and on a
//!   clock that a test steps everything happens in the same order.
//! - **Time is told, never read.** Every verb that depends on it is given `now`.
//! - **What will happen is known.** A [`RuntimeContainerStatus`] says when the process will end by itself,
//!   and [`RuntimeService::probe_forecast`] what a probe will be answered from when on, so that neither is
//!   asked for again and again. It holds until a verb changes it ([`RuntimeService::update_container`],
//!   [`RuntimeService::exec`]).
//!
//! Verbs of one pod are never called at the same time, except those that only read a container that is
//! there ([`RuntimeService::container_log`]); verbs of different pods are. Scripts are played within verbs:
//! an implementation holds no lock of its own meanwhile.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Deserialize;
use tokio::io::DuplexStream;
use tokio::sync::watch;

pub use super::forecasts::{ExecSyncForecast, ProbeAnswer, ProbeForecast};
pub use super::process_exit::ProcessExit;
pub use super::sandbox_status::PodSandboxStatus;
use super::stats::StatsService;
pub use super::unused_images::{RemovedImages, UnusedImages};
use apimachinery::object::ObjectMeta;
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};
use apis::views::probe::Probe;
use clock::Clock;
use machine::exec::Executed;
use machine::file_system::{Left, MountedVolume, Tree};
use machine::interpreter::transcript::Transcript;
use machine::logs::LogLine;
use machine::questions::{Answered, Question};
use machine::standard_input::TerminalSize;
use machine::surroundings::Surroundings;
use machine::terminals::{AtTerminal, Sitting};

/// The id of a container as it stands in its status: `containerd://...`.
pub type ContainerId = Arc<str>;

/// A call that takes time, as its caller sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<T> {
    /// When it returns; nothing when it never does.
    pub returns_at: Option<Time>,
    /// What it returns then. Nobody looks before.
    pub result: Result<T, RuntimeError>,
}

/// What a runtime says of a call that failed; the kubelet tries again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeError {
    /// The reason of the waiting container, as `ErrImagePull`.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// A sandbox that is to be run (`runtimeapi.PodSandboxConfig`).
#[derive(Clone, Copy)]
pub struct PodSandboxConfig<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Its metadata.
    pub metadata: &'a ObjectMeta,
    /// How many sandboxes of this pod could not be run before (`PodSandboxMetadata.attempt`).
    pub attempt: u32,
}

/// Which container of which pod is meant, and what it is made of (`runtimeapi.ContainerConfig`).
#[derive(Clone, Copy)]
pub struct ContainerConfig<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Its metadata.
    pub metadata: &'a ObjectMeta,
    /// One of the pod's containers: no copy, it is compared with them by its place.
    pub container: &'a Container,
    /// How often it was restarted (`ContainerMetadata.attempt`).
    pub attempt: i64,
}

/// An image that is there (`runtimeapi.Image`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its full name.
    pub reference: String,
    /// Its size in bytes.
    pub size: u64,
}

/// How a process ended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// Its exit code.
    pub code: i32,
    /// `Completed` or `Error`, by the code, when it is not given.
    #[serde(default)]
    pub reason: String,
    /// What it left as its termination message.
    #[serde(default)]
    pub message: String,
}

/// A container whose process runs (`runtimeapi.ContainerStatus`).
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeContainerStatus {
    /// From when on it serves; nothing when it never will. Whether it is asked by probes is not the
    /// runtime's business.
    pub ready_at: Option<Time>,
    /// When its process ends by itself and how, as far as is known by now.
    pub ends: Option<(Time, Exit)>,
    /// When it asks the network something; it goes on with the answer ([`RuntimeService::hear`]).
    pub asks_at: Option<Time>,
}

/// A question that a process waits with for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingQuestion {
    /// What it asks.
    pub question: Question,
    /// How many answers it has heard before.
    pub answers: usize,
}

/// What a container left behind that has ended.
#[derive(Clone, Debug, Default)]
pub struct ExitedContainer {
    /// Its last word (`ContainerStatus.message`).
    pub message: String,
    /// Why it was stopped, when it went over a bound of the machine.
    pub fault: Option<String>,
    /// What it wrote into volumes.
    pub left: Vec<Left>,
    /// Whether what it did is known.
    pub is_known: bool,
}

/// A command that somebody runs in a container (`runtimeapi.ExecRequest`).
#[derive(Clone, Debug, Default)]
pub struct ExecCommand {
    /// The container.
    pub container: String,
    /// The command line.
    pub words: Vec<String>,
    /// The window of its terminal, where it has one.
    pub terminal: Option<TerminalSize>,
    /// What was said to it so far, where somebody says something to it.
    pub sitting: Option<Box<Sitting>>,
    /// What the network has answered it so far.
    pub answers: Arc<Vec<Answered>>,
}

/// What the process of a container hears of whoever is attached to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachInput {
    /// Somebody is attached from now on.
    Begins,
    /// This is said.
    Bytes(Vec<u8>),
    /// The window of its terminal has this size now.
    Resized(TerminalSize),
    /// Nobody says anything any more.
    End,
    /// It is only looked at.
    Nothing,
}

/// What a process has said, for whoever is attached to it.
#[derive(Clone, Debug, Default)]
pub struct AttachResponse {
    /// All of it, as far as it is kept.
    pub transcript: Transcript,
    /// How long it has run.
    pub ran: Duration,
    /// How much of what it has said is not for somebody who is attached from now on.
    pub seen: usize,
    /// When it says more by itself.
    pub next: Option<Time>,
}

/// What became of a command that somebody ran.
#[derive(Clone, Debug, Default)]
pub struct ExecResponse {
    /// What it said and when it ended; nothing when the command is not known.
    pub executed: Option<Executed>,
    /// What it has done so far at whose terminal somebody sits.
    pub sat: Option<AtTerminal>,
    /// What it wrote into volumes.
    pub left: Vec<Left>,
    /// So long from now, and so, the container's own process ends, because it was sent a signal.
    pub ends: Option<(Duration, Exit)>,
    /// Nobody knew before what the container finds.
    pub is_first_sight: bool,
}

/// A container that is probed.
#[derive(Clone, Copy)]
pub struct ProbedContainer<'a> {
    /// Which one.
    pub config: ContainerConfig<'a>,
    /// Its id.
    pub id: &'a ContainerId,
    /// The address of its pod.
    pub pod_ip: &'a str,
    /// When it started.
    pub started_at: Time,
}

/// A container of a sandbox whose process runs.
#[derive(Clone, Copy)]
pub struct RunningContainer<'a> {
    /// The container.
    pub container: &'a Container,
    /// Its id.
    pub id: &'a ContainerId,
    /// When it started.
    pub started_at: Time,
}

/// Serves one connection until its end: the connection, who asks, and the time.
pub type Serve = Arc<dyn Fn(DuplexStream, String, Clock) -> BoxFuture<'static, ()> + Send + Sync>;

/// Plays a script, to see whether it listens by a time.
pub type ListensBy = Arc<dyn Fn(Time) -> bool + Send + Sync>;

/// Who takes connections at a port of a sandbox.
#[derive(Clone)]
pub struct PortListener {
    /// The container that listens.
    pub container: String,
    /// Its run: with its end connections end.
    pub started_at: Time,
    /// Serves a connection.
    pub serve: Serve,
    /// Whether its process is to end.
    pub exit: Arc<ProcessExit>,
    /// Whether it listens by then, where that takes a script to be played; nothing where it does.
    pub listens: Option<ListensBy>,
}

/// A datagram that reaches a sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The UDP port that it reaches.
    pub port: u16,
    /// The address and the port of who sent it.
    pub from: &'a str,
    /// What it says.
    pub bytes: &'a [u8],
}

/// What runs the containers of one node.
pub trait RuntimeService: StatsService {
    /// `RunPodSandbox`: makes what the containers of a pod share, its address first of all. The address is
    /// the pod's from the call on, and stays its until [`RuntimeService::stop_pod_sandbox`].
    fn run_pod_sandbox(&self, config: &PodSandboxConfig<'_>, now: Time) -> Call<PodSandboxStatus>;

    /// Takes up a sandbox that an earlier kubelet of this node left with these addresses. No verb of CRI: a
    /// real runtime outlives its kubelet, the simulated one begins with it.
    fn restore_pod_sandbox(&self, config: &PodSandboxConfig<'_>, status: &PodSandboxStatus);

    /// `PodSandboxStatus`: nothing when the pod has none. One whose call has not returned yet is there.
    fn pod_sandbox_status(&self, pod_uid: &str) -> Option<PodSandboxStatus>;

    /// The uids of the pods that have an address: one, or where it is the node's own all that use the node's
    /// network, in no order. No verb of CRI: a network plugin knows it.
    fn pods_at(&self, ip: &str) -> Vec<Arc<str>>;

    /// `StopPodSandbox` and `RemovePodSandbox`: gives its address back, where it is there.
    fn stop_pod_sandbox(&self, pod_uid: &str);

    /// `ImageStatus`: nothing when the image is not there yet at `now`.
    fn image_status(&self, image: &str, now: Time) -> Option<Image>;

    /// Whether the image of a container is there that nobody is to pull. No verb of CRI: a real runtime has
    /// the images that it was given, and a simulated one is given none.
    fn is_brought(&self, config: &ContainerConfig<'_>, now: Time) -> bool {
        self.image_status(&config.container.image, now).is_some()
    }

    /// `PullImage`: the image is there when the call returns well.
    fn pull_image(&self, config: &ContainerConfig<'_>, now: Time) -> Call<Image>;

    /// `ListImages`, the biggest first, at most `limit` of them; with how many there are.
    fn list_images(&self, limit: usize, now: Time) -> (Vec<Image>, usize);

    /// `RemoveImage`, for those that have been unused longest, until enough is free. Who has images of its
    /// own keeps them.
    fn remove_images(&self, _unused: &UnusedImages<'_>, _now: Time) -> RemovedImages {
        RemovedImages::default()
    }

    /// Whether the runtime knows what the process of a container does. Of one that it does not know it
    /// never asks for the surroundings.
    fn knows_process(&self, container: &Container) -> bool;

    /// Whether the process of a container looks at what has to be fetched for it: volumes that every pod
    /// has, variables of services. A runtime of real processes says so of all.
    fn looks_around(&self, container: &Container) -> bool;

    /// `CreateContainer`. What the container finds is handed over when it is started: files of volumes are
    /// values here, and it sees them as they are at its start.
    fn create_container(&self, config: &ContainerConfig<'_>, now: Time) -> Call<ContainerId>;

    /// `StartContainer`: its process runs from `now` on, among what it finds; without that nobody knows what
    /// it does.
    fn start_container(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        found: Option<Surroundings>,
        now: Time,
    ) -> RuntimeContainerStatus;

    /// Takes up a container that an earlier kubelet of this node left running: see
    /// [`RuntimeService::restore_pod_sandbox`].
    fn restore_container(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        found: Option<Surroundings>,
        started_at: Time,
    ) -> RuntimeContainerStatus;

    /// What a process asks the network next.
    fn question(&self, id: &ContainerId) -> Option<PendingQuestion>;

    /// What the network answers a process: it goes on, and its [`RuntimeContainerStatus`] is another one. An
    /// answer to another question than the one that it asks is lost.
    fn hear(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        asked: &PendingQuestion,
        answered: Answered,
    );

    /// `ContainerStatus` of one whose process runs; nothing of one that is not known.
    fn container_status(&self, id: &ContainerId) -> Option<RuntimeContainerStatus>;

    /// `ListContainers`: the ids of all that were started and not removed.
    fn list_containers(&self) -> Vec<ContainerId>;

    /// Shows a running container what its volumes hold at `now`, and what others wrote into it: `shown` is
    /// told where those are. Says whether that is new (`UpdateContainerResources` is the nearest of CRI).
    fn update_container(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        shown: &dyn Fn(&[MountedVolume]) -> Tree,
        now: Time,
    ) -> bool;

    /// What a running container has written into its volumes by `now`.
    fn written_files(&self, config: &ContainerConfig<'_>, id: &ContainerId, now: Time) -> Vec<Left>;

    /// `StopContainer`: sends the stop signal at `now`, and SIGKILL `timeout` later; how its process ends.
    fn stop_container(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        timeout: Duration,
        now: Time,
    ) -> Call<Exit>;

    /// What a process left that has ended so at `finished_at` (`ContainerStatus` of one that has exited).
    fn exited_container(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        exit: &Exit,
        finished_at: Time,
    ) -> ExitedContainer;

    /// `RemoveContainer`: its log is gone, too. One that is not there is none the less gone.
    fn remove_container(&self, id: &ContainerId);

    /// `ExecSync`, for hooks: among what the container found when it started. What it writes is not kept.
    fn exec_sync(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        command: &[String],
    ) -> ExecSyncForecast;

    /// `Exec`, for people: among what the container finds at `now`, and what it wrote by then. What the
    /// command writes stays in the container; the container and later commands see it when
    /// [`RuntimeService::update_container`] is called next, which follows. `found` is asked when nobody has
    /// asked before what the container finds. Nothing when that is not known, nor the container.
    fn exec(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        command: &ExecCommand,
        found: &dyn Fn() -> Option<Surroundings>,
        now: Time,
    ) -> Option<ExecResponse>;

    /// `Attach`: what the process of a container hears, and what it has said by `now`. That may be its end:
    /// [`RuntimeService::container_status`] says so then. `found` is as for [`RuntimeService::exec`]. Also of
    /// one that has ended and is not removed. Nothing when the container is not known.
    fn attach(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        heard: &AttachInput,
        found: &dyn Fn() -> Option<Surroundings>,
        now: Time,
    ) -> Option<AttachResponse>;

    /// `PortForward`: who takes connections at a port of a sandbox, whose running containers are `running`.
    ///
    /// # Errors
    /// Why nobody does.
    fn port_forward(
        &self,
        config: &PodSandboxConfig<'_>,
        running: &[RunningContainer<'_>],
        port: u16,
    ) -> Result<PortListener, RuntimeError>;

    /// What comes back when a datagram reaches a UDP port of a sandbox; nothing where nobody answers.
    ///
    /// # Errors
    /// That nobody listens there.
    fn datagram(
        &self,
        config: &PodSandboxConfig<'_>,
        running: &[RunningContainer<'_>],
        asked: &Datagram<'_>,
    ) -> Result<Option<Vec<u8>>, RuntimeError>;

    /// What is wrong with what a pod says of its own listeners, each in a sentence.
    fn listener_problems(&self, pod: &Pod) -> Vec<String>;

    /// What is known ahead of what a probe is answered (`pkg/probe`), through `ExecSync` or over the network.
    fn probe_forecast(&self, probed: &ProbedContainer<'_>, probe: &Probe) -> ProbeForecast;

    /// Told of each line that a server writes into its log because somebody asked it. No verb of CRI.
    fn log_grows(&self, id: &ContainerId) -> watch::Receiver<()>;

    /// What a run of a container has said between its start and `until` (`ReadLogs`).
    fn container_log(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        started_at: Time,
        until: Time,
    ) -> Vec<LogLine>;
}

impl<T> Call<T> {
    /// One that returns well and at once.
    pub fn at_once(value: T, now: Time) -> Call<T> {
        Call { returns_at: Some(now), result: Ok(value) }
    }

    /// What it has returned by `now`; the call itself when it has not.
    ///
    /// # Errors
    /// The call.
    pub fn returned(self, now: Time) -> Result<Result<T, RuntimeError>, Call<T>> {
        if self.returns_at.is_some_and(|at| at <= now) { Ok(self.result) } else { Err(self) }
    }
}

impl Exit {
    /// The end of a process that was killed.
    pub fn killed() -> Exit {
        Exit { code: 137, ..Exit::default() }
    }

    /// Its reason, or the one that its code has.
    pub fn reason(&self) -> &str {
        match (self.reason.as_str(), self.code) {
            ("", 0) => "Completed",
            ("", _) => "Error",
            (reason, _) => reason,
        }
    }
}
