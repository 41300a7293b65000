//! The kubelet's sync loop (`syncLoop`, `syncLoopIteration`): what its pods should be, and what is due.
//! Next: kubelet/pod_workers.rs
//!
//! One task per node does everything: it hears of its pods from a watch, syncs those that changed or have
//! something due, and keeps a few status writes under way. Pods that only run cost nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::Notify;

use super::admission;
use super::images::ImageStore;
use super::node_config::NodeConfig;
use super::node_status;
use super::pod_addresses::PodAddresses;
use super::pod_workers::{NodeRuntime, PodWorker, WorkerState};
use super::sources::{Fetch, Sources};
use super::status_manager::{StatusManager, Write, fingerprint};
use super::world::Happening;
use crate::apimachinery::fields::FieldSelector;
use crate::apimachinery::object::Object;
use crate::apimachinery::status::Status;
use crate::apimachinery::time::Time;
use crate::apis::core::pod::PODS;
use crate::client_go::component::ComponentContext;
use crate::client_go::reference::ObjectReference;
use crate::client_go::shared_informer::{Deleted, ResourceEventHandler};
use crate::flow::{Step, StepId};

/// Until a pod whose status could not be written is synced again.
const SYNC_RETRY: Duration = Duration::from_secs(10);
/// The longest sleep: clocks that are set back do no harm for longer.
const HOUSEKEEPING_PERIOD: Duration = Duration::from_secs(60);

/// The kubelet of one simulated node. Cloning shares it.
#[derive(Clone)]
pub struct Kubelet {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) context: ComponentContext,
    pub(super) config: NodeConfig,
    state: Mutex<KubeletState>,
    /// Something is in `pending`.
    changed: Notify,
}

/// What the sync loop works on.
pub(super) struct KubeletState {
    pub(super) node: NodeRuntime,
    /// By uid. Bound: the pods that are bound to this node.
    pub(super) workers: HashMap<Arc<str>, Entry>,
    /// The pods that want to be synced at a time: a uid is in here if and only if its entry has a timer.
    timers: BTreeSet<(Time, Arc<str>)>,
    /// What was heard of pods and not looked at yet, the newest of each. Bound: one for each pod of this
    /// node.
    pending: BTreeMap<Arc<str>, Option<Arc<Object>>>,
    statuses: StatusManager,
    /// What is to be fetched for pods. Bound: one for each pod.
    fetches: Vec<Fetch>,
}

pub(super) struct Entry {
    pub(super) worker: PodWorker,
    timer: Option<Time>,
    /// Of the status that was written last.
    written: Option<u64>,
    /// Whether the last delete is on its way.
    is_deleted: bool,
}

impl Kubelet {
    /// A kubelet that has not begun. The context is its own: its client asks as `system:node:NAME`, its
    /// recorder's host is the node. An unusable pod CIDR is refused.
    pub fn new(context: ComponentContext, config: NodeConfig) -> Result<Kubelet, String> {
        let cidr = &config.pod_cidr;
        let addresses = PodAddresses::new(cidr).ok_or_else(|| format!("invalid pod CIDR {cidr:?}"))?;
        let node = NodeRuntime {
            stages: config.stages.clone(),
            images: ImageStore::default(),
            addresses,
            host_ip: config.address.clone(),
            allocatable: node_status::allocatable(&config),
            entropy: context.entropy.clone(),
        };
        let state = KubeletState {
            node,
            workers: HashMap::new(),
            timers: BTreeSet::new(),
            pending: BTreeMap::new(),
            statuses: StatusManager::default(),
            fetches: Vec::new(),
        };
        let shared = Shared { context, config, state: Mutex::new(state), changed: Notify::new() };
        Ok(Kubelet { shared: Arc::new(shared) })
    }

    /// The name of its node.
    pub fn node_name(&self) -> &str {
        &self.shared.config.name
    }

    /// Starts everything as tasks of its context: node status, lease, the watch of its pods, the sync loop.
    pub fn start(&self) {
        let context = &self.shared.context;
        let own = FieldSelector::equal("spec.nodeName", self.node_name());
        let informer = context.informers.informer_for(&PODS, "", own);
        informer.add_handler(PodConfig { shared: self.shared.clone() });
        context.informers.start(&context.tasks);
        let name = |part: &str| format!("kubelet/{}: {part}", self.node_name());
        let kubelet = self.clone();
        context.tasks.supervise(&name("node status"), move || node_status::run(kubelet.clone()));
        let kubelet = self.clone();
        context.tasks.supervise(&name("sync loop"), move || kubelet.clone().sync_loop());
    }

    pub(super) fn state(&self) -> MutexGuard<'_, KubeletState> {
        self.shared.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    async fn sync_loop(self) {
        self.recover();
        let (mut writes, mut fetches) = (FuturesUnordered::new(), FuturesUnordered::new());
        loop {
            let wait = self.sync_loop_iteration();
            while let Some(write) = self.take_write() {
                writes.push(async move { (write.perform().await, write.uid) });
            }
            for fetch in self.take_fetches() {
                let client = &self.shared.context.client;
                fetches.push(async move { (fetch.perform(client).await, fetch.uid) });
            }
            tokio::select! {
                biased;
                Some((result, uid)) = writes.next(), if !writes.is_empty() => self.finish_write(&uid, result),
                Some((sources, uid)) = fetches.next(), if !fetches.is_empty() => self.provide(&uid, sources),
                () = self.shared.changed.notified() => {}
                () = self.shared.context.clock.sleep(wait) => {}
            }
        }
    }

    /// A loop that is restarted after a panic does not know what became of the writes that were under way.
    fn recover(&self) {
        let (mut state, now) = (self.state(), self.shared.context.clock.now());
        let KubeletState { workers, timers, statuses, .. } = &mut *state;
        statuses.reset();
        for (uid, entry) in workers {
            (entry.written, entry.is_deleted) = (None, false);
            set_timer(entry, timers, uid, Some(now));
        }
    }

    /// Syncs all pods that changed or have something due. Says how long nothing else is.
    fn sync_loop_iteration(&self) -> Duration {
        let now = self.shared.context.clock.now();
        let mut state = self.state();
        for (uid, object) in std::mem::take(&mut state.pending) {
            match object {
                Some(object) => self.update_pod(&mut state, uid, object, now),
                None => remove_pod(&mut state, &uid),
            }
        }
        while let Some((_, uid)) = state.timers.first().filter(|(due, _)| *due <= now).cloned() {
            self.sync_pod(&mut state, &uid, now);
        }
        let wait = state.timers.first().map(|(due, _)| (*due - now).to_std().unwrap_or_default());
        wait.unwrap_or(HOUSEKEEPING_PERIOD).min(HOUSEKEEPING_PERIOD)
    }

    /// `UpdatePod`: what is told again, and what the kubelet wrote itself, needs no sync.
    fn update_pod(&self, state: &mut KubeletState, uid: Arc<str>, object: Arc<Object>, now: Time) {
        let KubeletState { workers, node, .. } = state;
        if let Some(entry) = workers.get_mut(&uid) {
            let needs_sync = entry.worker.needs_sync(&object);
            entry.worker.update(object);
            if !needs_sync {
                return;
            }
        } else {
            let mut worker = PodWorker::new(object, node, now);
            if worker.pod.status.start_time.is_none() {
                let others = workers.values().map(|entry| &entry.worker);
                let rejection = admission::rejection(&worker.pod, others, &node.allocatable);
                rejection.into_iter().for_each(|rejection| worker.reject(rejection));
            }
            workers.insert(uid.clone(), Entry { worker, timer: None, written: None, is_deleted: false });
        }
        self.sync_pod(state, &uid, now);
    }

    fn sync_pod(&self, state: &mut KubeletState, uid: &Arc<str>, now: Time) {
        let KubeletState { node, workers, timers, statuses, fetches, .. } = state;
        let Some(entry) = workers.get_mut(uid) else { return };
        let cause = self.record_sync(&entry.worker);
        let mut happenings = Vec::new();
        entry.worker.sync(node, now, &mut happenings);
        for happening in &happenings {
            self.tell(&entry.worker, happening, cause);
        }
        let due = entry.worker.due;
        set_timer(entry, timers, uid, due);
        if let Some(fetch) = entry.worker.take_fetch() {
            fetches.push(fetch);
            self.shared.changed.notify_one();
        }
        if let Some(write) = self.write(entry, uid, &node.host_ip, now, cause) {
            statuses.add(write);
        }
    }

    /// What is to be written of a pod, if anything.
    fn write(
        &self,
        entry: &mut Entry,
        uid: &Arc<str>,
        host_ip: &str,
        now: Time,
        cause: StepId,
    ) -> Option<Write> {
        let worker = &mut entry.worker;
        if worker.is_waiting_for_sources() && !worker.object.is_deleting() {
            return None;
        }
        let status = worker.status(host_ip, now);
        let fingerprint = fingerprint(&status);
        let is_new = entry.written.replace(fingerprint) != Some(fingerprint);
        let patch = is_new.then(|| worker.patch(status));
        let is_over = worker.state() == WorkerState::Terminated && worker.object.is_deleting();
        let delete = is_over && !std::mem::replace(&mut entry.is_deleted, is_over);
        let metadata = &worker.object.metadata;
        (delete || patch.is_some()).then(|| Write {
            client: self.shared.context.client.caused_by(cause),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: uid.clone(),
            patch,
            delete,
        })
    }

    /// Hands over what was fetched for a pod.
    pub(super) fn provide(&self, uid: &Arc<str>, sources: Sources) {
        let now = self.shared.context.clock.now();
        let mut state = self.state();
        let KubeletState { node, workers, .. } = &mut *state;
        if let Some(entry) = workers.get_mut(uid) {
            entry.worker.provide(sources, node, now);
            self.sync_pod(&mut state, uid, now);
        }
    }

    fn take_fetches(&self) -> Vec<Fetch> {
        std::mem::take(&mut self.state().fetches)
    }

    fn take_write(&self) -> Option<Write> {
        self.state().statuses.take()
    }

    fn finish_write(&self, uid: &Arc<str>, result: Result<(), Status>) {
        let mut state = self.state();
        state.statuses.finish(uid);
        let Err(status) = result else { return };
        let (node, status) = (self.node_name(), &status.message);
        tracing::warn!(node, %uid, %status, "failed to update status for pod");
        let due = self.shared.context.clock.now() + SYNC_RETRY;
        let KubeletState { workers, timers, .. } = &mut *state;
        let Some(entry) = workers.get_mut(uid) else { return };
        (entry.written, entry.is_deleted) = (None, false);
        set_timer(entry, timers, uid, Some(entry.timer.map_or(due, |timer| timer.min(due))));
    }

    fn record_sync(&self, worker: &PodWorker) -> StepId {
        let (flow, object) = (self.shared.context.client.flow(), &worker.object);
        let cause = flow.informed(&self.shared.context.component, object.metadata.resource_version);
        flow.record_with(cause, || Step::PodWorkerSync {
            node: flow.name(self.node_name()),
            pod: object.shared_key().clone(),
            state: flow.name(worker.state().name()),
        })
    }

    /// As an Event, and as a step of the flow.
    fn tell(&self, worker: &PodWorker, happening: &Happening, cause: StepId) {
        let Happening { event_type, reason, message, .. } = happening;
        let step = self.record(worker, happening, cause);
        let about = ObjectReference::of(&PODS, &worker.object).part(happening.field_path());
        self.shared.context.recorder.caused_by(step).event(about, event_type, reason, message.as_str());
    }

    fn record(&self, worker: &PodWorker, happening: &Happening, cause: StepId) -> StepId {
        let flow = self.shared.context.client.flow();
        if !flow.is_on() {
            return cause;
        }
        let (node, pod) = (flow.name(self.node_name()), worker.object.shared_key().clone());
        let container = Arc::<str>::from(happening.container.as_str());
        let image = || worker.container(&container).map_or("", |(spec, _)| spec.image.as_str()).into();
        let step = match happening.reason {
            "Pulled" => Step::ImagePulled { node, pod, image: image() },
            "Created" => Step::ContainerCreated { node, pod, container },
            "Started" => Step::ContainerStarted { node, pod, container },
            _ => return cause,
        };
        flow.record(cause.cause(), step)
    }
}

fn set_timer(entry: &mut Entry, timers: &mut BTreeSet<(Time, Arc<str>)>, uid: &Arc<str>, due: Option<Time>) {
    if entry.timer != due {
        if let Some(timer) = entry.timer {
            timers.remove(&(timer, uid.clone()));
        }
        entry.timer = due;
        timers.extend(due.map(|due| (due, uid.clone())));
    }
}

fn remove_pod(state: &mut KubeletState, uid: &Arc<str>) {
    state.statuses.forget(uid);
    let Some(mut entry) = state.workers.remove(uid) else { return };
    entry.worker.kill(&mut state.node);
    if let Some(timer) = entry.timer {
        state.timers.remove(&(timer, uid.clone()));
    }
}

/// The kubelet's only source of pods (`pkg/kubelet/config`, apiserver): the newest of each is kept for the
/// loop.
struct PodConfig {
    shared: Arc<Shared>,
}

impl PodConfig {
    fn put(&self, object: &Object, news: Option<Arc<Object>>) {
        let mut state = self.shared.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        state.pending.insert(object.metadata.uid.as_str().into(), news);
        drop(state);
        self.shared.changed.notify_one();
    }
}

impl ResourceEventHandler for PodConfig {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.put(new, Some(new.clone()));
    }

    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        if old.metadata.uid != new.metadata.uid {
            self.put(old, None);
        }
        self.put(new, Some(new.clone()));
    }

    fn on_delete(&self, last: &Deleted) {
        self.put(last.last(), None);
    }
}
