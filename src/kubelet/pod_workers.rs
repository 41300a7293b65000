//! Pod workers: each pod of the node as a state machine (`syncPod`, `syncTerminatingPod`,
//! `syncTerminatedPod`).
//!
//! Upstream gives each pod a goroutine. Here a worker is a value that is asked to sync when its pod changes
//! or when something that it waits for is due; between that it costs its bytes and nothing else.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::admission::Rejection;
use super::mounting::Mounting;
use super::runtime::{Container, RestartPolicy, State};
use super::world::{Happening, PodEvent, World};
use crate::container_runtime::image_store::ImageStore;
use crate::container_runtime::pod_addresses::PodAddresses;
use crate::container_runtime::stages::{Next, StageSet, Step};
use crate::volume_manager::host_files::HostFiles;
use crate::volume_manager::sources::Sources;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::meta::Condition;
use apis::views::pod::{Container as Spec, Pod};
use clock::after;
use entropy::Entropy;
use machine::bounds::MAX_POD_START_BYTES;

/// Until a sandbox that could not be made is tried again.
const SANDBOX_RETRY: Duration = Duration::from_secs(15);
/// The grace of a pod that does not say.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// What the workers of one node share.
pub struct NodeRuntime {
    /// What happens to containers.
    pub stages: StageSet,
    /// Which images are there.
    pub images: ImageStore,
    /// Which addresses are taken.
    pub addresses: PodAddresses,
    /// The node's own address.
    pub host_ip: String,
    /// What it has for pods.
    pub allocatable: BTreeMap<String, String>,
    /// For ids and jitter.
    pub entropy: Entropy,
    /// What its pods share of its files.
    pub host_files: HostFiles,
}

/// Where a pod is on its way through the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// It is brought up and kept up.
    Sync,
    /// Its containers are being stopped.
    Terminating,
    /// Nothing of it runs any more.
    Terminated,
}

/// The pod's sandbox: what its containers share.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sandbox {
    None,
    Creating { until: Time, next: Next },
    Ready { address: String },
    Stopped { address: String },
}

/// The worker of one pod.
pub struct PodWorker {
    /// The pod as it was seen last.
    pub object: Arc<Object>,
    /// Its fields.
    pub pod: Arc<Pod>,
    /// When it next wants to be synced without being told to.
    pub due: Option<Time>,
    pub(super) state: WorkerState,
    pub(super) sandbox: Sandbox,
    pub(super) init_containers: Vec<Container>,
    pub(super) ephemeral_containers: Vec<Container>,
    pub(super) containers: Vec<Container>,
    pub(super) start_time: Time,
    /// Reason and message when the kubelet itself ended the pod.
    pub(super) failure: Option<(&'static str, &'static str)>,
    /// The conditions as they were written last: what tells when one changed.
    pub(super) conditions: Vec<Condition>,
    /// Why the node does not run it.
    pub(super) rejection: Option<Box<Rejection>>,
    /// What its containers find, when any of them looks or names what must be there.
    pub(super) mounting: Option<Box<Mounting>>,
}

impl WorkerState {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            WorkerState::Sync => "sync",
            WorkerState::Terminating => "terminating",
            WorkerState::Terminated => "terminated",
        }
    }
}

fn ephemeral(spec: &Spec) -> Container {
    Container::new(spec, RestartPolicy::Never, "ContainerCreating")
}

impl PodWorker {
    /// Takes up a pod. One that was running before this kubelet started goes on as its status says, so that a
    /// restart of the kubelet is not one of its pods.
    pub fn new(object: Arc<Object>, node: &NodeRuntime, now: Time) -> PodWorker {
        let pod = object.view::<Pod>();
        let reason =
            if pod.spec.init_containers.is_empty() { "ContainerCreating" } else { "PodInitializing" };
        let container =
            |spec: &Spec, is_init| Container::new(spec, RestartPolicy::of(&pod, spec, is_init), reason);
        let mut worker = PodWorker {
            due: None,
            state: WorkerState::Sync,
            sandbox: Sandbox::None,
            init_containers: pod.spec.init_containers.iter().map(|spec| container(spec, true)).collect(),
            ephemeral_containers: pod.spec.ephemeral_containers.iter().map(ephemeral).collect(),
            containers: pod.spec.containers.iter().map(|spec| container(spec, false)).collect(),
            start_time: pod.status.start_time.unwrap_or(now),
            failure: None,
            conditions: pod.status.conditions.clone(),
            rejection: None,
            mounting: Mounting::of(&pod, &object),
            pod,
            object,
        };
        if worker.pod.status.start_time.is_some() {
            super::adopt::adopt(&mut worker, node, now);
        }
        worker
    }

    /// The node does not run it: it has failed before it began.
    pub(super) fn reject(&mut self, rejection: Rejection) {
        (self.rejection, self.mounting) = (Some(Box::new(rejection)), None);
    }

    /// The pod has changed.
    pub fn update(&mut self, object: Arc<Object>) {
        if self.may_have_config(&object) {
            let init = self.init_containers.iter_mut().chain(&mut self.ephemeral_containers);
            init.chain(&mut self.containers).for_each(Container::start_again);
        }
        self.pod = object.view::<Pod>();
        self.object = object;
    }

    /// Whether `new` differs from the pod as it was seen last in what a sync looks at.
    pub fn needs_sync(&self, object: &Object) -> bool {
        let (old, new) = (&self.object.metadata, &object.metadata);
        old.generation != new.generation
            || new.generation == 0
            || old.deletion_timestamp != new.deletion_timestamp
            || old.deletion_grace_period_seconds != new.deletion_grace_period_seconds
            || !self.pod.spec.readiness_gates.is_empty()
            || self.may_have_config(object)
    }

    /// Whether a container lacks something that may have come with a change of the pod's metadata.
    fn may_have_config(&self, new: &Object) -> bool {
        let differs = || {
            self.object.metadata.labels != new.metadata.labels
                || self.pod.metadata.annotations != new.view::<Pod>().metadata.annotations
        };
        self.all_containers().any(|(_, container)| container.waits_for_config()) && differs()
    }

    /// Where it is.
    pub fn state(&self) -> WorkerState {
        self.state
    }

    /// Does all that can be done at `now`; notes what happened and when it wants to be asked again.
    pub fn sync(&mut self, node: &NodeRuntime, now: Time, happenings: &mut Vec<Happening>) {
        let (pod, object) = (self.pod.clone(), self.object.clone());
        let (detail, sources) = self.mounted();
        let nothing = Sources::new();
        let NodeRuntime { stages, images, addresses, host_ip, allocatable, entropy, .. } = node;
        let mut world = World {
            now,
            pod: &pod,
            metadata: &object.metadata,
            stages,
            images,
            entropy,
            happenings,
            detail: detail.as_deref(),
            sources: sources.as_deref().unwrap_or(&nothing),
            written: self.written_until(node, now),
            start_bytes_left: Cell::new(MAX_POD_START_BYTES.saturating_sub(self.start_bytes())),
            pod_ip: String::new(),
            host_ip,
            allocatable,
        };
        if let Some(Rejection { reason, message }) = self.rejection.as_deref() {
            if self.state == WorkerState::Sync {
                let warning = PodEvent::warning(reason, message.clone());
                world.happenings.push(Happening::Event(warning));
            }
            (self.state, self.due) = (WorkerState::Terminated, None);
            return;
        }
        if self.state == WorkerState::Sync && !object.is_deleting() {
            let take_address =
                || if pod.spec.host_network { Some(host_ip.clone()) } else { addresses.allocate() };
            self.due = match self.mount(&mut world) {
                Ok(refresh) => earliest([refresh, self.sync_pod(&mut world, take_address)]),
                Err(retry) => retry,
            };
        } else if self.state == WorkerState::Sync {
            self.state = WorkerState::Terminating;
        }
        if self.state == WorkerState::Terminating {
            self.due = self.sync_terminating_pod(&mut world);
        }
        let World { written, .. } = world;
        self.keep(written);
        if self.state == WorkerState::Terminating && self.is_stopped() {
            self.state = WorkerState::Terminated;
            self.due = None;
            if self.stop_sandbox(addresses) {
                happenings.push(Happening::SandboxStopped);
            }
        }
    }

    /// The pod is gone from the apiserver: whatever runs of it is killed. Says whether its sandbox was still
    /// there.
    pub fn kill(&mut self, node: &NodeRuntime) -> bool {
        self.state = WorkerState::Terminated;
        self.stop_sandbox(&node.addresses)
    }

    /// Init containers first, one after the other; then all others.
    fn sync_pod(&mut self, world: &mut World<'_>, address: impl FnOnce() -> Option<String>) -> Option<Time> {
        let deadline = self.deadline(world.pod);
        if deadline.is_some_and(|deadline| deadline <= world.now) {
            self.failure =
                Some(("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"));
            self.state = WorkerState::Terminating;
            return None;
        }
        let sandbox = self.ensure_sandbox(world, address);
        let Sandbox::Ready { address } = &self.sandbox else { return earliest([deadline, sandbox]) };
        world.pod_ip.clone_from(address);
        let (is_initialized, init) = self.advance_init_containers(world);
        let mut due = earliest([deadline, init, self.advance_ephemeral_containers(world)]);
        if is_initialized {
            for (container, spec) in self.containers.iter_mut().zip(&world.pod.spec.containers) {
                due = earliest([due, container.advance(spec, world)]);
            }
        }
        if self.is_finished() {
            self.state = WorkerState::Terminating;
        }
        due
    }

    /// They come when they like, wait for nobody, and are never started again.
    fn advance_ephemeral_containers(&mut self, world: &mut World<'_>) -> Option<Time> {
        let specs = &world.pod.spec.ephemeral_containers;
        let new = specs.iter().skip(self.ephemeral_containers.len()).map(ephemeral);
        self.ephemeral_containers.extend(new);
        let mut due = None;
        for (container, spec) in self.ephemeral_containers.iter_mut().zip(specs) {
            due = earliest([due, container.advance(spec, world)]);
        }
        due
    }

    /// Sidecars are stopped when the others have ended.
    fn sync_terminating_pod(&mut self, world: &mut World<'_>) -> Option<Time> {
        let given = self.object.metadata.deletion_grace_period_seconds;
        let grace = grace_period(world.pod, given);
        let specs = &world.pod.spec;
        let sidecar = |spec: &Spec| spec.restart_policy.is_some();
        let mut due = None;
        for (container, spec) in self.containers.iter_mut().zip(&specs.containers) {
            container.stop(spec, grace, world);
            due = earliest([due, container.advance(spec, world)]);
        }
        for (container, spec) in self.ephemeral_containers.iter_mut().zip(&specs.ephemeral_containers) {
            container.stop(spec, grace, world);
            due = earliest([due, container.advance(spec, world)]);
        }
        let rest_is_done = self.containers.iter().all(Container::is_done);
        for (container, spec) in self.init_containers.iter_mut().zip(&specs.init_containers) {
            if rest_is_done || !sidecar(spec) {
                container.stop(spec, grace, world);
                due = earliest([due, container.advance(spec, world)]);
            }
        }
        due
    }

    fn ensure_sandbox(
        &mut self,
        world: &mut World<'_>,
        address: impl FnOnce() -> Option<String>,
    ) -> Option<Time> {
        let first = world.pod.spec.init_containers.first().or(world.pod.spec.containers.first())?;
        if self.sandbox == Sandbox::None {
            let (delay, next) = world.stage(Step::Sandbox, first, 0);
            self.sandbox = Sandbox::Creating { until: after(world.now, delay), next };
        }
        let Sandbox::Creating { until, next } = &self.sandbox else { return None };
        if *until > world.now || *next == Next::Stay {
            return Some(*until).filter(|_| *next != Next::Stay);
        }
        let failure = match next {
            Next::Fail(failure) => Some(failure.message_for(&first.image, &first.name)),
            _ => None,
        };
        let failure = failure.map_or_else(|| address().ok_or_else(no_address), Err);
        match failure {
            Ok(address) => {
                world.happenings.push(Happening::SandboxCreated(address.clone()));
                self.sandbox = Sandbox::Ready { address };
            }
            Err(message) => {
                let warning = PodEvent::warning("FailedCreatePodSandBox", message);
                world.happenings.push(Happening::Event(warning));
                let until = world.now + SANDBOX_RETRY;
                self.sandbox = Sandbox::Creating { until, next: Next::Succeed };
                return Some(until);
            }
        }
        None
    }

    /// Whether the others may start, and when something is due.
    fn advance_init_containers(&mut self, world: &mut World<'_>) -> (bool, Option<Time>) {
        let mut due = None;
        for (container, spec) in self.init_containers.iter_mut().zip(&world.pod.spec.init_containers) {
            due = earliest([due, container.advance(spec, world)]);
            let is_sidecar = spec.restart_policy.is_some();
            let passed =
                if is_sidecar { container.started || container.has_run() } else { container.has_succeeded() };
            if !passed {
                return (false, due);
            }
        }
        (true, due)
    }

    /// Whether nothing of it will run again: all containers have ended, or an init container has failed for
    /// good.
    fn is_finished(&self) -> bool {
        let failed = |container: &Container| container.is_done() && !container.has_succeeded();
        self.init_containers.iter().any(failed) || self.containers.iter().all(Container::is_done)
    }

    fn is_stopped(&self) -> bool {
        let all = self.containers.iter().chain(&self.init_containers).chain(&self.ephemeral_containers);
        all.into_iter().all(Container::is_done)
    }

    /// Says whether there was one.
    fn stop_sandbox(&mut self, addresses: &PodAddresses) -> bool {
        let is_there = matches!(self.sandbox, Sandbox::Ready { .. });
        self.sandbox = match std::mem::replace(&mut self.sandbox, Sandbox::None) {
            Sandbox::Ready { address } => {
                if !self.pod.spec.host_network {
                    addresses.release(&address);
                }
                Sandbox::Stopped { address }
            }
            other => other,
        };
        is_there
    }

    fn deadline(&self, pod: &Pod) -> Option<Time> {
        let seconds = pod.spec.active_deadline_seconds?;
        self.start_time.checked_add_signed(chrono::TimeDelta::try_seconds(seconds)?)
    }

    /// A container of the pod by its name, with its spec.
    pub fn container(&self, name: &str) -> Option<(&Spec, &Container)> {
        self.all_containers().find(|(spec, _)| spec.name == name)
    }

    pub(super) fn all_containers(&self) -> impl Iterator<Item = (&Spec, &Container)> {
        let spec = &self.pod.spec;
        let init = spec.init_containers.iter().zip(&self.init_containers);
        let ephemeral = spec.ephemeral_containers.iter().zip(&self.ephemeral_containers);
        init.chain(spec.containers.iter().zip(&self.containers)).chain(ephemeral)
    }

    /// What the variables take that its containers run with.
    fn start_bytes(&self) -> usize {
        let running = self.all_containers().filter(|(_, container)| container.is_running());
        running.filter_map(|(_, container)| container.around.as_ref()).map(|around| around.start_bytes).sum()
    }

    /// The pod's address; empty before it has one.
    pub(super) fn address(&self) -> &str {
        match &self.sandbox {
            Sandbox::Ready { address } | Sandbox::Stopped { address } => address,
            _ => "",
        }
    }

    /// Whether a container runs.
    pub fn is_running(&self) -> bool {
        self.containers.iter().any(|container| matches!(container.state, State::Running { .. }))
    }
}

fn no_address() -> String {
    "Failed to create pod sandbox: plugin type=\"bridge\" failed (add): no IP addresses available in range"
        .into()
}

/// The pod's grace, or the one that is given for it.
pub(super) fn grace_period(pod: &Pod, given: Option<i64>) -> Duration {
    let seconds = given.or(pod.spec.termination_grace_period_seconds).unwrap_or(DEFAULT_GRACE_SECONDS);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

pub(super) fn earliest<const COUNT: usize>(times: [Option<Time>; COUNT]) -> Option<Time> {
    times.into_iter().flatten().min()
}
