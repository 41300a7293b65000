//! Pod workers: each pod of the node as a state machine (`syncPod`, `syncTerminatingPod`,
//! `syncTerminatedPod`).
//!
//! Upstream gives each pod a goroutine. Here a worker is a value that is asked to sync when its pod changes
//! or when something that it waits for is due; between that it costs its bytes and nothing else.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::admission::Rejection;
use super::allocation::PodResize;
use super::container_runtime::services::{ContainerConfig, PodSandboxStatus, RuntimeService};
use super::container_runtime::{declared, used};
use super::dependencies::NodeRuntime;
use super::device_plugins::GivenDevices;
use super::kuberuntime::container::{KubeContainer, grace_period};
use super::kuberuntime::context::{Happening, PodEvent, SyncContext};
use super::kuberuntime::image_volumes::ImageVolumes;
use super::kuberuntime::security::PodUsers;
use super::kuberuntime::state::{KubeContainerState, RestartPolicy, is_sidecar};
use super::pod_ending::PodEnding;
use super::sandbox_state::Sandbox;
use super::volume_manager::mounting::Mounting;
use super::volume_manager::sources::Sources;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::meta::Condition;
use apis::views::pod::{self, Container as Spec, Pod};
use apis::views::pod_detail::PodDetail;
use machine::bounds::MAX_POD_START_BYTES;

/// A sidecar has so long to end however long those before it took (`minimumGracePeriodInSeconds`).
const MIN_SIDECAR_GRACE: Duration = Duration::from_secs(2);

/// Why a pod ends that has been active for too long (`pkg/kubelet/active_deadline.go`).
const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
const PAST_DEADLINE: &str = "Pod was active on the node longer than the specified deadline";

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

/// The worker of one pod.
pub struct PodWorker {
    /// The pod as it was seen last.
    pub object: Arc<Object>,
    /// Its fields.
    pub pod: Arc<Pod>,
    /// When it next wants to be synced without being told to.
    pub due: Option<Time>,
    pub(crate) state: WorkerState,
    pub(crate) sandbox: Sandbox,
    pub(crate) init_containers: Vec<KubeContainer>,
    pub(crate) ephemeral_containers: Vec<KubeContainer>,
    pub(crate) containers: Vec<KubeContainer>,
    pub(crate) start_time: Time,
    /// When the kubelet itself ended the pod.
    pub(crate) failure: Option<Box<PodEnding>>,
    /// How many seconds the kubelet gives it at most, once it ends.
    most_grace: Option<i64>,
    /// Since when its containers are being stopped.
    terminating_since: Option<Time>,
    /// The sandbox that its status tells of is gone.
    pub(crate) has_lost_sandbox: bool,
    /// The conditions as they were written last, which tell when one changed; nothing where the pod, as it
    /// was seen last, has them so.
    pub(crate) own_conditions: Option<Box<[Condition]>>,
    /// Why the node does not run it.
    pub(crate) rejection: Option<Box<Rejection>>,
    /// As whom its containers run, when it says so.
    pub(crate) users: Option<Arc<PodUsers>>,
    /// What its containers find, when any of them looks or names what must be there.
    pub(crate) mounting: Option<Box<Mounting>>,
    /// What the pod says of its listeners has changed, and nobody has been told what is wrong with it.
    pub(crate) has_new_listeners: bool,
    /// How often the network had changed when its probes looked at it last.
    pub(crate) network_changes: u64,
    /// How often it had been said otherwise what pods use when it was looked at last.
    pub(crate) usage_changes: u64,
    /// The images that it has as volumes.
    pub(crate) image_volumes: ImageVolumes,
    /// What plugins have given its containers.
    pub(crate) plugin_devices: Option<Box<[GivenDevices]>>,
    /// All its containers are being ended to begin anew.
    pub(crate) restarts_all: bool,
    /// Its resources were changed while it ran.
    pub(crate) resize: Option<Box<PodResize>>,
    /// The phase in which somebody else has ended it.
    pub(crate) foreign_phase: Option<&'static str>,
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

fn ephemeral(spec: &Spec) -> KubeContainer {
    KubeContainer::new(spec, RestartPolicy::Never, "ContainerCreating")
}

impl PodWorker {
    /// Takes up a pod: one that ran before this kubelet started goes on as its status says, unharmed.
    pub fn new(object: Arc<Object>, node: &NodeRuntime, now: Time) -> PodWorker {
        let pod = object.view::<Pod>();
        let reason =
            if pod.spec.init_containers.is_empty() { "ContainerCreating" } else { "PodInitializing" };
        let container =
            |spec: &Spec, is_init| KubeContainer::new(spec, RestartPolicy::of(&pod, spec, is_init), reason);
        let mut worker = PodWorker {
            due: None,
            state: WorkerState::Sync,
            sandbox: Sandbox::None,
            init_containers: pod.spec.init_containers.iter().map(|spec| container(spec, true)).collect(),
            ephemeral_containers: pod.spec.ephemeral_containers.iter().map(ephemeral).collect(),
            containers: pod.spec.containers.iter().map(|spec| container(spec, false)).collect(),
            start_time: pod.status.start_time.unwrap_or(now),
            failure: None,
            most_grace: None,
            terminating_since: None,
            has_lost_sandbox: false,
            own_conditions: None,
            rejection: None,
            users: PodUsers::of(&object),
            mounting: mounting(&pod, &object, &*node.runtime),
            has_new_listeners: false,
            network_changes: node.network.count_changes(),
            usage_changes: node.runtime.count_usage_changes(),
            image_volumes: ImageVolumes::of(&object.view::<PodDetail>()),
            plugin_devices: None,
            restarts_all: false,
            resize: None,
            foreign_phase: None,
            pod,
            object,
        };
        if worker.pod.status.start_time.is_some() {
            worker.resize = PodResize::of_status(&worker.pod, &worker.object);
            worker.keep_allocated();
            worker.adopt(node, now);
        }
        worker
    }

    /// The node does not run it: it has failed before it began.
    pub(crate) fn reject(&mut self, rejection: Rejection) {
        (self.rejection, self.mounting) = (Some(Box::new(rejection)), None);
    }

    /// The kubelet ends it; one that is ending goes on ending, if need be in less time.
    pub(crate) fn end(&mut self, ending: PodEnding) {
        self.most_grace = [self.most_grace, ending.grace_seconds].into_iter().flatten().min();
        if self.state == WorkerState::Sync && !self.object.is_deleting() {
            self.failure = Some(Box::new(ending));
            self.state = WorkerState::Terminating;
        }
    }

    /// The pod has changed.
    pub fn update(&mut self, object: Arc<Object>) {
        if self.may_have_config(&object) {
            let init = self.init_containers.iter_mut().chain(&mut self.ephemeral_containers);
            init.chain(&mut self.containers).for_each(KubeContainer::start_again);
        }
        let says_else = self.says_else_of_listeners(&object);
        self.has_new_listeners |= says_else;
        let pod = object.view::<Pod>();
        self.keep_conditions(&pod.status.conditions);
        self.pod = pod;
        // They stand in its spec, and most changes are of its status.
        if object.metadata.generation != self.object.metadata.generation {
            self.users = PodUsers::of(&object);
        }
        self.object = object;
        self.keep_allocated();
        if says_else {
            self.follow_answers();
        }
        self.take_answers();
        self.note_foreign_end();
    }

    /// It is run with what it has been given.
    fn keep_allocated(&mut self) {
        let allocated = self.resize.as_ref().and_then(|resize| resize.allocated(&self.object));
        if let Some(allocated) = allocated {
            self.pod = allocated;
        }
    }

    /// Somebody else says that it has ended: it ends (`podWorkers.UpdatePod`).
    fn note_foreign_end(&mut self) {
        if self.state == WorkerState::Sync && self.pod.is_terminal() {
            self.foreign_phase = Some(if self.pod.status.phase == "Failed" { "Failed" } else { "Succeeded" });
            self.state = WorkerState::Terminating;
        }
    }

    /// Whether annotations have changed that say what listens, or what memory is used.
    fn says_else_of_listeners(&self, new: &Object) -> bool {
        let (old, new) = (self.object.view::<Pod>(), new.view::<Pod>());
        let (old, new) = (&old.metadata.annotations, &new.metadata.annotations);
        old != new && (declared::differ(old, new) || used::differ(old, new))
    }

    /// Whether `new` differs from the pod as it was seen last in what a sync looks at.
    pub fn needs_sync(&self, object: &Object) -> bool {
        let (old, new) = (&self.object.metadata, &object.metadata);
        old.generation != new.generation
            || new.generation == 0
            || old.deletion_timestamp != new.deletion_timestamp
            || old.deletion_grace_period_seconds != new.deletion_grace_period_seconds
            || !self.pod.spec.readiness_gates.is_empty()
            || (self.state == WorkerState::Sync && pod::is_terminal(object))
            || self.may_have_config(object)
            || self.says_else_of_listeners(object)
    }

    /// Whether a container lacks something that may have come with a change of the pod's metadata.
    fn may_have_config(&self, new: &Object) -> bool {
        let differs = || {
            self.object.metadata.labels != new.metadata.labels
                || self.object.view::<Pod>().metadata.annotations != new.view::<Pod>().metadata.annotations
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
        let own = object.view::<Pod>();
        let users = self.users.clone();
        self.mount_for_debugging(now);
        let (detail, sources) = self.mounted();
        let nothing = Sources::new();
        let NodeRuntime { runtime, host_ips, cluster_dns, allocatable, network, images, .. } = node;
        let memory_capacity = node.memory_capacity;
        let mut context = SyncContext {
            now,
            pod: &pod,
            annotations: &own.metadata.annotations,
            metadata: &object.metadata,
            runtime: &**runtime,
            happenings,
            users: users.as_deref(),
            detail: detail.as_deref(),
            sources: sources.as_deref().unwrap_or(&nothing),
            written: self.written_until(node, now),
            start_bytes_left: Cell::new(MAX_POD_START_BYTES.saturating_sub(self.start_bytes())),
            pod_ips: PodSandboxStatus::default(),
            host_ips,
            cluster_dns,
            allocatable,
            memory_capacity,
            network,
            images,
            longest_restart: node.longest_restart,
            restarts_all: false,
        };
        if let Some(Rejection { reason, message }) = self.rejection.as_deref() {
            if self.state == WorkerState::Sync {
                let warning = PodEvent::warning(reason, message.clone());
                context.happenings.push(Happening::Event(warning));
            }
            (self.state, self.due) = (WorkerState::Terminated, None);
            return;
        }
        self.note_what_listens(&mut context);
        if self.state == WorkerState::Sync && !object.is_deleting() {
            self.due = match self.mount(node, &mut context) {
                Ok(refresh) => earliest([refresh, self.sync_pod(&mut context)]),
                Err(retry) => retry,
            };
        } else if self.state == WorkerState::Sync {
            self.state = WorkerState::Terminating;
        }
        if self.state == WorkerState::Terminating {
            self.due = self.sync_terminating_pod(&mut context);
        }
        let SyncContext { written, .. } = context;
        self.keep(written);
        if self.state == WorkerState::Terminating && self.is_stopped() {
            (self.state, self.due) = (WorkerState::Terminated, None);
            self.unmount(node);
            if self.stop_sandbox(&**runtime) {
                happenings.push(Happening::SandboxStopped);
            }
        }
    }

    /// The pod is gone from the apiserver: whatever runs of it is killed. Says whether its sandbox was still
    /// there.
    pub fn kill(&mut self, node: &NodeRuntime) -> bool {
        self.state = WorkerState::Terminated;
        self.all_containers().for_each(|(_, container)| container.remove(&*node.runtime));
        self.unmount(node);
        self.stop_sandbox(&*node.runtime)
    }

    /// Init containers first, one after the other; then all others.
    fn sync_pod(&mut self, context: &mut SyncContext<'_>) -> Option<Time> {
        let deadline = self.deadline(context.pod);
        if deadline.is_some_and(|deadline| deadline <= context.now) {
            let (reason, message) = (DEADLINE_EXCEEDED, PAST_DEADLINE.to_owned());
            let told = PodEvent { event_type: "Normal", ..PodEvent::warning(reason, message.clone()) };
            context.happenings.push(Happening::Event(told));
            self.end(PodEnding { reason, message, grace_seconds: None, is_disruption: false });
            return None;
        }
        let sandbox = self.ensure_sandbox(context);
        let Sandbox::Ready(status) = &self.sandbox else { return earliest([deadline, sandbox]) };
        context.pod_ips.clone_from(status);
        if self.restarts_all {
            return earliest([deadline, self.restart_all(context)]);
        }
        self.begin_resize(context);
        let images = self.image_volumes.advance(context);
        let (is_initialized, init) = self.advance_init_containers(context);
        let mut due = earliest([deadline, images, init, self.advance_ephemeral_containers(context)]);
        if is_initialized {
            for (container, spec) in self.containers.iter_mut().zip(&context.pod.spec.containers) {
                if self.image_volumes.let_start(container, spec, context) {
                    due = earliest([due, container.advance(spec, context)]);
                }
            }
        }
        due = earliest([due, self.evict_for_storage(context), self.end_resize(context)]);
        if context.restarts_all {
            self.restarts_all = true;
            return earliest([deadline, self.restart_all(context)]);
        }
        if self.is_finished() {
            self.state = WorkerState::Terminating;
        }
        due
    }

    /// They come when they like, wait for nobody, and are never started again.
    fn advance_ephemeral_containers(&mut self, context: &mut SyncContext<'_>) -> Option<Time> {
        let specs = &context.pod.spec.ephemeral_containers;
        let new = specs.iter().skip(self.ephemeral_containers.len()).map(ephemeral);
        self.ephemeral_containers.extend(new);
        let mut due = None;
        for (container, spec) in self.ephemeral_containers.iter_mut().zip(specs) {
            if self.image_volumes.let_start(container, spec, context) {
                due = earliest([due, container.advance(spec, context)]);
            }
        }
        due
    }

    /// Sidecars are stopped when the others have ended, each when those that started after it have.
    fn sync_terminating_pod(&mut self, context: &mut SyncContext<'_>) -> Option<Time> {
        let grace = self.grace(context);
        let specs = &context.pod.spec;
        let mut due = None;
        for (container, spec) in self.containers.iter_mut().zip(&specs.containers) {
            container.stop(spec, grace, context);
            due = earliest([due, container.advance(spec, context)]);
        }
        for (container, spec) in self.ephemeral_containers.iter_mut().zip(&specs.ephemeral_containers) {
            container.stop(spec, grace, context);
            due = earliest([due, container.advance(spec, context)]);
        }
        let mut may_stop = self.containers.iter().all(KubeContainer::is_done);
        let waited = self.terminating_since.and_then(|since| (context.now - since).to_std().ok());
        let left = grace.saturating_sub(waited.unwrap_or_default()).max(MIN_SIDECAR_GRACE.min(grace));
        for (container, spec) in self.init_containers.iter_mut().zip(&specs.init_containers).rev() {
            if may_stop || !is_sidecar(spec) {
                container.stop(spec, if is_sidecar(spec) { left } else { grace }, context);
                due = earliest([due, container.advance(spec, context)]);
            }
            may_stop &= container.is_done();
        }
        due
    }

    /// How long its containers have to end; it begins when it is first asked.
    fn grace(&mut self, context: &SyncContext<'_>) -> Duration {
        self.terminating_since.get_or_insert(context.now);
        let given = self.object.metadata.deletion_grace_period_seconds;
        let grace = grace_period(context.pod, given);
        self.most_grace.map_or(grace, |most| grace.min(Duration::from_secs(u64::try_from(most).unwrap_or(0))))
    }

    /// Whether the others may start, and when something is due.
    fn advance_init_containers(&mut self, context: &mut SyncContext<'_>) -> (bool, Option<Time>) {
        let mut due = None;
        // Whoever has let the others begin keeps nobody waiting when it starts again.
        let have_others_begun = self.containers.iter().any(KubeContainer::has_begun);
        let last_begun = self.init_containers.iter().rposition(KubeContainer::has_begun);
        let specs = &context.pod.spec.init_containers;
        for (place, (container, spec)) in self.init_containers.iter_mut().zip(specs).enumerate() {
            if self.image_volumes.let_start(container, spec, context) {
                due = earliest([due, container.advance(spec, context)]);
            }
            let passed = if is_sidecar(spec) {
                container.started || have_others_begun || last_begun.is_some_and(|last| last > place)
            } else {
                container.has_succeeded()
            };
            if !passed {
                return (false, due);
            }
        }
        (true, due)
    }

    /// Whether nothing of it will run again: all containers have ended, or an init container has failed for
    /// good.
    fn is_finished(&self) -> bool {
        let failed = |container: &KubeContainer| container.is_done() && !container.has_succeeded();
        self.init_containers.iter().any(failed) || self.containers.iter().all(KubeContainer::is_done)
    }

    fn is_stopped(&self) -> bool {
        self.kube_containers().all(KubeContainer::is_done)
    }

    fn deadline(&self, pod: &Pod) -> Option<Time> {
        let seconds = pod.spec.active_deadline_seconds?;
        self.start_time.checked_add_signed(chrono::TimeDelta::try_seconds(seconds)?)
    }

    /// A container of the pod by its name, with its spec.
    pub fn container(&self, name: &str) -> Option<(&Spec, &KubeContainer)> {
        self.all_containers().find(|(spec, _)| spec.name == name)
    }

    pub(crate) fn all_containers(&self) -> impl Iterator<Item = (&Spec, &KubeContainer)> {
        let spec = &self.pod.spec;
        let init = spec.init_containers.iter().zip(&self.init_containers);
        let ephemeral = spec.ephemeral_containers.iter().zip(&self.ephemeral_containers);
        init.chain(spec.containers.iter().zip(&self.containers)).chain(ephemeral)
    }

    /// All its containers, without their specs.
    pub(crate) fn kube_containers(&self) -> impl Iterator<Item = &KubeContainer> {
        self.init_containers.iter().chain(&self.containers).chain(&self.ephemeral_containers)
    }

    /// What the variables take that its containers run with.
    fn start_bytes(&self) -> usize {
        let running = self.all_containers().filter(|(_, container)| container.is_running());
        running.map(|(_, container)| container.start_bytes).sum()
    }

    /// A container of the pod, as the runtime is told of it.
    pub(crate) fn config<'a>(&'a self, spec: &'a Spec, container: &KubeContainer) -> ContainerConfig<'a> {
        let (pod, metadata) = (&*self.pod, &self.object.metadata);
        ContainerConfig { pod, metadata, container: spec, attempt: container.restart_count }
    }

    /// Whether a container runs.
    pub fn is_running(&self) -> bool {
        self.containers.iter().any(|container| matches!(container.state, KubeContainerState::Running { .. }))
    }
}

/// What its containers find; nothing for a pod of which nobody needs to know more.
fn mounting(pod: &Pod, object: &Object, runtime: &dyn RuntimeService) -> Option<Box<Mounting>> {
    let mut specs = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let looks_around = specs.clone().any(|spec| runtime.looks_around(spec));
    let mounting = Mounting::new(object, looks_around);
    // A path may turn out to be none, whatever the container runs.
    let has_paths = |spec: &Spec| spec.volume_mounts.iter().any(|it| !it.sub_path_expr.is_empty());
    let is_needed = !mounting.wanted.is_empty()
        || mounting.detail.spec.volumes.iter().any(|volume| volume.host_path.is_some())
        || specs.any(|spec| runtime.knows_process(spec) || has_paths(spec));
    is_needed.then(|| Box::new(mounting))
}

pub(crate) fn earliest<const COUNT: usize>(times: [Option<Time>; COUNT]) -> Option<Time> {
    times.into_iter().flatten().min()
}
