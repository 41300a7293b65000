//! The simulated runtime: no process runs. Stages say how the steps of a container go, and the machine what
//! its process does, as far as its words tell.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::answers::{self, ListenersHeard};
use super::chaos;
use super::declared;
use super::image_store::ImageStore;
use super::invocation;
use super::listeners;
use super::own_listeners::OwnListeners;
use super::played::{self, Outlook, ToldOfPod};
use super::pod_addresses::{NO_ADDRESS, PodAddresses};
use super::ports::SandboxPorts;
use super::selector::StageSubject;
use super::services::{
    AttachInput, AttachResponse, Call, ContainerConfig, ContainerId, Datagram, ExecCommand, ExecResponse,
    ExecSyncForecast, Exit, ExitedContainer, Image, PendingQuestion, PodSandboxConfig, PodSandboxStatus,
    PortListener, ProbeForecast, ProbedContainer, RemovedImages, RunningContainer, RuntimeContainerStatus,
    RuntimeError, RuntimeService, UnusedImages,
};
use super::simulated_container::SimulatedContainer;
use super::stages::{LifeStep, StageSet, StepEnd};
use super::used::{self, UsageSources};
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};
use apis::views::probe::Probe;
use clock::after;
use entropy::Entropy;
use machine::file_system::{Left, MountedVolume, Tree};
use machine::logs::{self, LogLine};
use machine::program;
use machine::questions::Answered;
use machine::surroundings::Surroundings;
use sync::{Mutex, MutexGuard};
use tokio::sync::watch;

/// What is simulated of one node.
pub struct SimulatedRuntime {
    stages: StageSet,
    images: ImageStore,
    addresses: Arc<PodAddresses>,
    /// The node's own addresses: those of pods of its network.
    host_ips: Vec<String>,
    /// For ids and jitter.
    entropy: Entropy,
    /// By the uids of their pods. Bound: one for each pod of the node.
    sandboxes: Mutex<HashMap<Arc<str>, PodSandboxStatus>>,
    /// Bound: two for each container of the node's pods, what it is and what it was before its restart.
    containers: Mutex<HashMap<ContainerId, SimulatedContainer>>,
    pub(super) ports: SandboxPorts,
    pub(super) usage_sources: UsageSources,
}

impl SimulatedRuntime {
    /// Of a node with these addresses of its own, whose pods have those. Nothing runs on it yet.
    pub fn new(
        stages: StageSet,
        addresses: impl Into<Arc<PodAddresses>>,
        host_ips: &[String],
        entropy: Entropy,
    ) -> SimulatedRuntime {
        SimulatedRuntime {
            stages,
            images: ImageStore::default(),
            addresses: addresses.into(),
            host_ips: host_ips.to_vec(),
            entropy,
            sandboxes: Mutex::default(),
            containers: Mutex::default(),
            ports: SandboxPorts::new(OwnListeners::default()),
            usage_sources: UsageSources::default(),
        }
    }

    /// With images that are there from the beginning. `are_all` is that others have to be pulled.
    #[must_use]
    pub fn with_images(self, images: &[String], are_all: bool, now: Time) -> SimulatedRuntime {
        SimulatedRuntime { images: ImageStore::with(images, are_all, now), ..self }
    }

    /// How long a step takes and how it ends.
    fn stage(&self, step: LifeStep, config: &ContainerConfig<'_>) -> (Duration, StepEnd) {
        if let Some(said) = chaos::step(step, config, &self.entropy) {
            return said;
        }
        let ContainerConfig { pod, metadata, container, attempt } = *config;
        let subject = StageSubject::of(pod, metadata, container, attempt);
        let stage = self.stages.stage(step, &subject);
        (stage.delay.draw(&self.entropy), stage.next.clone())
    }

    /// A step that ends well with what `made` makes.
    fn call<T>(
        &self,
        step: LifeStep,
        config: &ContainerConfig<'_>,
        now: Time,
        made: impl FnOnce(Time) -> Result<T, RuntimeError>,
    ) -> Call<T> {
        let (delay, next) = self.stage(step, config);
        let at = after(now, delay);
        let returns_at = Some(at).filter(|_| next != StepEnd::Stay);
        let result = match next {
            StepEnd::Fail(failure) => Err(failure.error_for(&config.container.image, &config.container.name)),
            StepEnd::Stay => Err(RuntimeError::default()),
            _ => made(at),
        };
        Call { returns_at, result }
    }

    fn take_address(&self, config: &PodSandboxConfig<'_>) -> Result<PodSandboxStatus, RuntimeError> {
        let (is_of_node, uid) = (config.pod.spec.host_network, Arc::from(config.metadata.uid.as_str()));
        let status = if is_of_node {
            PodSandboxStatus::of(self.host_ips.iter().cloned())
        } else {
            self.addresses.allocate(&uid)
        };
        let none = || RuntimeError { reason: String::new(), message: NO_ADDRESS.into() };
        let status = status.ok_or_else(none)?;
        self.sandboxes().insert(uid, status.clone());
        Ok(status)
    }

    fn is_of_node(&self, ip: &str) -> bool {
        self.host_ips.iter().any(|own| own == ip)
    }

    /// The process from its start on.
    fn run(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        found: Option<Surroundings>,
        started_at: Time,
    ) -> RuntimeContainerStatus {
        let around = found.map(|around| Arc::new(played::listening(config.container, around)));
        let ready_at = match self.stage(LifeStep::Ready, config) {
            (delay, StepEnd::Succeed) => Some(after(started_at, delay)),
            _ => None,
        };
        let (delay, next) = self.stage(LifeStep::Run, config);
        let follows_command = next == StepEnd::FollowCommand;
        let outlook = match next {
            StepEnd::Exit(exit) => {
                Outlook { ends: Some(Box::new((after(started_at, delay), exit))), asks: None }
            }
            StepEnd::FollowCommand => played::outlook(config.container, around.as_deref(), started_at, delay),
            _ => Outlook::default(),
        };
        let mut container = SimulatedContainer {
            started_at,
            around,
            ready_at,
            plain: Outlook::default(),
            outlook: Outlook::default(),
            follows_command,
        };
        container.expect(outlook, used::killed(config, started_at, &self.usage_sources));
        let status = container.status();
        self.containers().insert(id.clone(), container);
        status
    }

    pub(super) fn container(&self, id: &ContainerId) -> Option<SimulatedContainer> {
        self.containers().get(id).cloned()
    }

    fn around(&self, id: &ContainerId) -> Option<Arc<Surroundings>> {
        self.containers().get(id)?.around.clone()
    }

    fn sandboxes(&self) -> MutexGuard<'_, HashMap<Arc<str>, PodSandboxStatus>> {
        self.sandboxes.lock()
    }

    /// Never held while a script is played.
    pub(super) fn containers(&self) -> MutexGuard<'_, HashMap<ContainerId, SimulatedContainer>> {
        self.containers.lock()
    }
}

impl RuntimeService for SimulatedRuntime {
    /// Only the first attempt is a stage's; its subject is the pod's first container.
    fn run_pod_sandbox(&self, config: &PodSandboxConfig<'_>, now: Time) -> Call<PodSandboxStatus> {
        let PodSandboxConfig { pod, metadata, attempt } = *config;
        let first = pod.spec.init_containers.first().or(pod.spec.containers.first());
        let Some(container) = first.filter(|_| attempt == 0) else {
            return Call { returns_at: Some(now), result: self.take_address(config) };
        };
        let subject = ContainerConfig { pod, metadata, container, attempt: 0 };
        self.call(LifeStep::Sandbox, &subject, now, |_| self.take_address(config))
    }

    fn restore_pod_sandbox(&self, config: &PodSandboxConfig<'_>, status: &PodSandboxStatus) {
        let uid = Arc::from(config.metadata.uid.as_str());
        status.ips().for_each(|ip| self.addresses.reserve(ip, &uid));
        self.sandboxes().insert(uid, status.clone());
    }

    fn pod_sandbox_status(&self, pod_uid: &str) -> Option<PodSandboxStatus> {
        self.sandboxes().get(pod_uid).cloned()
    }

    fn pods_at(&self, ip: &str) -> Vec<Arc<str>> {
        if !self.is_of_node(ip) {
            return self.addresses.owner(ip).into_iter().collect();
        }
        let of_node = |(uid, status): (&Arc<str>, &PodSandboxStatus)| {
            status.ips().any(|own| own == ip).then(|| uid.clone())
        };
        self.sandboxes().iter().filter_map(of_node).collect()
    }

    fn stop_pod_sandbox(&self, pod_uid: &str) {
        self.ports.forget_pod(pod_uid);
        let stopped = self.sandboxes().remove(pod_uid).unwrap_or_default();
        stopped.ips().filter(|ip| !self.is_of_node(ip)).for_each(|ip| self.addresses.release(ip));
    }

    fn image_status(&self, image: &str, now: Time) -> Option<Image> {
        self.images.get(image, now)
    }

    /// Where nobody says which images there are, all are brought that could be pulled.
    fn is_brought(&self, config: &ContainerConfig<'_>, now: Time) -> bool {
        let can_be =
            || !self.images.are_listed && !matches!(self.stage(LifeStep::Pull, config).1, StepEnd::Fail(_));
        self.image_status(&config.container.image, now).is_some() || can_be()
    }

    fn pull_image(&self, config: &ContainerConfig<'_>, now: Time) -> Call<Image> {
        self.call(LifeStep::Pull, config, now, |at| Ok(self.images.add(&config.container.image, at)))
    }

    fn list_images(&self, limit: usize, now: Time) -> (Vec<Image>, usize) {
        self.images.list(limit, now)
    }

    fn remove_images(&self, unused: &UnusedImages<'_>, now: Time) -> RemovedImages {
        self.images.remove(unused, now)
    }

    fn knows_process(&self, container: &Container) -> bool {
        program::is_known(&invocation::of(container)) || listeners::serves_volumes(container)
    }

    fn looks_around(&self, container: &Container) -> bool {
        program::looks_around(&invocation::of(container))
    }

    fn create_container(&self, config: &ContainerConfig<'_>, now: Time) -> Call<ContainerId> {
        let made = |_| Ok(format!("containerd://{}", self.entropy.hex(64)).into());
        self.call(LifeStep::Start, config, now, made)
    }

    fn start_container(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        found: Option<Surroundings>,
        now: Time,
    ) -> RuntimeContainerStatus {
        self.run(config, id, found, now)
    }

    fn restore_container(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        found: Option<Surroundings>,
        started_at: Time,
    ) -> RuntimeContainerStatus {
        self.images.add(&config.container.image, started_at);
        self.run(config, id, found, started_at)
    }

    fn container_status(&self, id: &ContainerId) -> Option<RuntimeContainerStatus> {
        self.containers().get(id).map(SimulatedContainer::status)
    }

    fn question(&self, id: &ContainerId) -> Option<PendingQuestion> {
        self.containers().get(id)?.pending()
    }

    fn hear(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        asked: &PendingQuestion,
        answered: Answered,
    ) {
        let Some(mut container) = self.container(id) else { return };
        if container.pending().as_ref() != Some(asked) {
            return;
        }
        let Some(around) = &mut container.around else { return };
        Arc::make_mut(&mut Arc::make_mut(around).answers).push(answered);
        container.replay(config, &self.usage_sources);
        self.containers().insert(id.clone(), container);
    }

    fn list_containers(&self) -> Vec<ContainerId> {
        self.containers().keys().cloned().collect()
    }

    fn update_container(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        shown: &dyn Fn(&[MountedVolume]) -> Tree,
        now: Time,
    ) -> bool {
        let Some(mut container) = self.container(id) else { return false };
        let Some(around) = &mut container.around else { return false };
        let tree = shown(&around.mounts);
        if !Arc::make_mut(around).show(tree, now) {
            return false;
        }
        if container.follows_command {
            container.replay(config, &self.usage_sources);
        }
        self.containers().insert(id.clone(), container);
        true
    }

    fn written_files(&self, config: &ContainerConfig<'_>, id: &ContainerId, now: Time) -> Vec<Left> {
        match self.around(id) {
            Some(around) if around.mounts.iter().any(|mount| mount.is_kept) => {
                played::written(config.container, &around, now)
            }
            _ => vec![],
        }
    }

    fn stop_container(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        timeout: Duration,
        now: Time,
    ) -> Call<Exit> {
        let (delay, next) = self.stage(LifeStep::Stop, config);
        let ended = match next {
            StepEnd::Exit(exit) => Some((delay, exit)),
            StepEnd::FollowCommand => self.container(id).and_then(|mut container| {
                let (end, differs) = container.hear_stop(&invocation::of(config.container), delay, now);
                let _ = differs.then(|| self.containers().insert(id.clone(), container));
                let (time, code) = end?;
                Some((delay.saturating_add(time), Exit { code, ..Exit::default() }))
            }),
            _ => None,
        };
        let ended = ended.filter(|(took, _)| *took <= timeout);
        let (took, exit) = ended.unwrap_or_else(|| (timeout, Exit::killed()));
        Call::at_once(exit, after(now, took))
    }

    fn exited_container(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        exit: &Exit,
        finished_at: Time,
    ) -> ExitedContainer {
        match self.around(id) {
            Some(around) => played::exited(config.container, &around, exit, finished_at),
            None => ExitedContainer::default(),
        }
    }

    fn remove_container(&self, id: &ContainerId) {
        self.ports.forget_container(id);
        self.containers().remove(id);
    }

    fn exec_sync(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        command: &[String],
    ) -> ExecSyncForecast {
        played::exec_sync(config, self.around(id).as_deref(), command)
    }

    fn exec(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        command: &ExecCommand,
        found: &dyn Fn() -> Option<Surroundings>,
        now: Time,
    ) -> Option<ExecResponse> {
        let container = self.container(id)?;
        if let Some(executed) = declared::executed(&config.pod.metadata.annotations, &command.words) {
            return Some(ExecResponse { executed: Some(executed), ..ExecResponse::default() });
        }
        let is_first_sight = container.around.is_none();
        let mut around = match container.around {
            Some(around) => played::completed(around, found),
            None => Arc::new(played::listening(config.container, found()?)),
        };
        let command = (command, ToldOfPod::of(config.pod));
        let response = played::exec(config.container, Arc::make_mut(&mut around), command, now);
        self.ports.note_files(config.container, &around);
        self.containers().entry(id.clone()).and_modify(|container| container.around = Some(around));
        Some(ExecResponse { is_first_sight, ..response })
    }

    fn attach(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        heard: &AttachInput,
        found: &dyn Fn() -> Option<Surroundings>,
        now: Time,
    ) -> Option<AttachResponse> {
        let mut container = self.container(id)?;
        let started_at = container.started_at;
        let log = || self.container_log(config, id, started_at, now);
        if *heard == AttachInput::Nothing || !config.container.stdin {
            let around = container.around.as_deref();
            return Some(played::said(config.container, around, started_at, now, &log));
        }
        let mut around = match container.around.take() {
            Some(around) => around,
            None => Arc::new(played::listening(config.container, found()?)),
        };
        let is_first = played::hear(Arc::make_mut(&mut around), heard, container.ran(now));
        let mut response = played::said(config.container, Some(&around), started_at, now, &log);
        if is_first {
            response.seen = 0;
        }
        container.around = Some(around);
        if container.follows_command {
            container.replay(config, &self.usage_sources);
        }
        self.containers().insert(id.clone(), container);
        Some(response)
    }

    fn port_forward(
        &self,
        config: &PodSandboxConfig<'_>,
        running: &[RunningContainer<'_>],
        port: u16,
    ) -> Result<PortListener, RuntimeError> {
        let sandbox = self.pod_sandbox_status(&config.metadata.uid);
        let around = |id: &ContainerId| self.around(id);
        self.ports.listener(config, &sandbox.unwrap_or_default().ip, running, port, &around)
    }

    fn datagram(
        &self,
        config: &PodSandboxConfig<'_>,
        running: &[RunningContainer<'_>],
        asked: &Datagram<'_>,
    ) -> Result<Option<Vec<u8>>, RuntimeError> {
        self.ports.datagram(config, running, asked)
    }

    fn listener_problems(&self, pod: &Pod) -> Vec<String> {
        self.ports.problems(pod)
    }

    fn probe_forecast(&self, probed: &ProbedContainer<'_>, probe: &Probe) -> ProbeForecast {
        if let Some(said) = chaos::forecast(probed, probe) {
            return said;
        }
        let is_given = |port| self.ports.is_given(probed.config.metadata, port);
        let heard = ListenersHeard { is_given: &is_given, is_told: self.ports.is_told(probed.id) };
        answers::forecast(probe, probed, self.around(probed.id).as_deref(), &heard)
    }

    fn log_grows(&self, id: &ContainerId) -> watch::Receiver<()> {
        self.ports.log_grows(id)
    }

    fn container_log(
        &self,
        config: &ContainerConfig<'_>,
        id: &ContainerId,
        started_at: Time,
        until: Time,
    ) -> Vec<LogLine> {
        let invocation = invocation::of(config.container);
        let around = self.around(id);
        let (name, around) = (config.container.name.as_str(), around.as_deref());
        let given = declared::said(&config.pod.metadata.annotations, name);
        let mut said: Vec<LogLine> = match given {
            Some(lines) => lines.map(|text| LogLine { at: started_at, text: text.to_owned() }).collect(),
            None => logs::lines(&logs::Run { name, invocation: &invocation, around, started_at, until }),
        };
        self.ports.add_requests(id, &mut said, until);
        said
    }
}
