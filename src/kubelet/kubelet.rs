//! The kubelet's sync loop (`syncLoop`, `syncLoopIteration`): what its pods should be, and what is due.
//! Next: src/kubelet/pod_workers.rs
//!
//! One task per node does everything: it hears of its pods from a watch, syncs those that changed or have
//! something due, and keeps a few status writes under way. Pods that only run cost nothing. A worker whose
//! scripts are to be played is lent out for that, and the task goes on with the others.

use std::sync::Arc;
use std::time::Duration;

use super::admission::{self, Rejection};
use super::allocation::ResizeVerdict;
use super::container_gc::ContainerGarbage;
use super::container_runtime::simulated::SimulatedRuntime;
use super::counted::{KubeletCounts, TurnKind};
use super::credential_provider::ImageAccess;
use super::dependencies::{Dependencies, NodeRuntime};
use super::device_plugins::DevicePlugins;
use super::device_slices;
use super::kuberuntime::context::Happening;
use super::node_config::NodeConfig;
use super::node_refusal::NodeRefusal;
use super::node_state::{NodeState, SaidCondition};
use super::node_status;
use super::options::KubeletOptions;
use super::played::PlayedPods;
use super::players::Players;
use super::pod_importance;
use super::pod_manager::config::PodConfig;
use super::pod_manager::pods::{Entry, Loan, PodManager, PodManagerState, set_timer};
use super::pod_manager::turns::Turn;
use super::pod_workers::{PodWorker, WorkerState};
use super::status_manager::{StatusWrite, fingerprint};
use super::volume_manager::fetch::Fetch;
use super::volume_manager::host_files::HostFiles;
use super::volume_manager::in_use::VolumesInUse;
use super::volume_manager::sources::Sources;
use apimachinery::fields::FieldSelector;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::core::pod::PODS;
use apis::views::pod::Pod;
use client_go::component::ComponentContext;
use client_go::shared_informer::SharedInformer;
use component_base::slis::HealthSlis;
use flow::StepId;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use network::Network;

/// Until a pod whose status could not be written is synced again.
const SYNC_RETRY: Duration = Duration::from_secs(10);
/// The longest sleep: clocks that are set back do no harm for longer.
const HOUSEKEEPING_PERIOD: Duration = Duration::from_secs(60);

/// The kubelet of one simulated node. Cloning shares it.
#[derive(Clone)]
pub struct Kubelet {
    pub(crate) shared: Arc<Dependencies>,
    pub(crate) pods: Arc<PodManager>,
}

impl Kubelet {
    /// A kubelet that has not begun. The context is its own: its client asks as `system:node:NAME`, its
    /// recorder's host is the node. An unusable pod CIDR is refused.
    pub fn new(
        context: ComponentContext,
        config: NodeConfig,
        players: Players,
        network: Network,
    ) -> Result<Kubelet, NodeRefusal> {
        let addresses = Arc::new(config.pod_addresses()?);
        let played = PlayedPods::new(addresses.clone());
        let (stages, entropy) = (config.stages.clone(), context.entropy.clone());
        let runtime = SimulatedRuntime::new(stages, addresses, &config.addresses, entropy);
        let runtime = runtime.with_images(&config.images, config.are_images_listed, context.clock.now());
        let runtime = runtime.with_listeners(config.listeners.clone()).on_network(network.clone());
        let (measures, loads) = (config.measures.clone(), config.loads.clone());
        let runtime = runtime.with_measures(measures, loads, config.seen());
        let simulated = Arc::new(runtime);
        let state = NodeState::default();
        let counted = KubeletCounts::since(context.clock.now());
        let node = NodeRuntime {
            runtime: config.runtime.of(&config.name, simulated),
            host_ips: config.addresses.clone(),
            cluster_dns: config.cluster_dns.clone(),
            allocatable: config.allocatable(),
            memory_capacity: config.memory_capacity(),
            host_files: HostFiles::of_node(&config.name, &config.addresses),
            claimed_files: config.claimed_files.clone(),
            volumes: VolumesInUse::telling(state.changed.clone()),
            boots: config.boots,
            network,
            images: ImageAccess::new(&config.options.private_registries, &config.images),
            longest_restart: config.options.max_container_restart_period,
            devices: DevicePlugins::of(&config.capacity),
        };
        let garbage = ContainerGarbage::new(context.clock.now());
        let slis = HealthSlis::default();
        let addresses = config.addresses.iter().filter_map(|address| address.parse().ok()).collect();
        let own =
            Dependencies { context, config, addresses, node, state, players, played, counted, slis, garbage };
        Ok(Kubelet { shared: Arc::new(own), pods: Arc::default() })
    }

    /// The name of its node.
    pub fn node_name(&self) -> &str {
        &self.shared.config.name
    }

    /// What it was told.
    pub fn options(&self) -> &KubeletOptions {
        &self.shared.config.options
    }

    /// How long streams stay on which nobody says anything; zero is for ever.
    pub fn stream_idle_timeout(&self) -> Duration {
        self.shared.config.options.streaming_connection_idle_timeout
    }

    /// Its node has this condition until it recovers, or this kubelet ends.
    ///
    /// # Errors
    /// A status that a condition cannot have; no type; too many conditions.
    pub fn say(&self, condition: SaidCondition) -> Result<(), NodeRefusal> {
        self.shared.state.say(condition)
    }

    /// Its node has a condition as it would have it by itself; without a type, all.
    pub fn recover_node(&self, condition_type: Option<&str>) {
        self.shared.state.recover(condition_type);
    }

    /// The address of a pod that stages play: `current` if it can have that, else a free one until the pod is
    /// gone; nothing when all are in use.
    pub fn address_for(&self, uid: &str, current: &str) -> Option<String> {
        self.shared.played.give(uid, current)
    }

    pub(crate) fn tell_of_node(&self, event_type: &str, reason: &str, message: &str) {
        node_status::tell_as(&self.shared, event_type, reason, message);
    }

    /// Starts everything as tasks of its context: node status, lease, the watch of its pods, the sync loop.
    pub fn start(&self) {
        let context = &self.shared.context;
        let informer = self.pod_informer();
        informer.add_handler(PodConfig { pods: self.pods.clone(), shared: self.shared.clone() });
        context.informers.start(&context.tasks);
        let name = |part: &str| format!("kubelet/{}: {part}", self.node_name());
        let kubelet = self.clone();
        context.tasks.supervise(&name("eviction manager"), move || kubelet.clone().evict_under_pressure());
        if self.options().maximum_dead_containers >= 0 {
            let kubelet = self.clone();
            context.tasks.supervise(&name("container gc"), move || kubelet.clone().collect_containers());
        }
        if !self.options().image_maximum_gc_age.is_zero() {
            let kubelet = self.clone();
            context.tasks.supervise(&name("image gc"), move || kubelet.clone().collect_old_images());
        }
        if self.has_static_pods() {
            let kubelet = self.clone();
            context.tasks.supervise(&name("static pods"), move || kubelet.clone().keep_static_pods());
        }
        let shared = self.shared.clone();
        context.tasks.supervise(&name("node status"), move || node_status::run(shared.clone()));
        device_slices::start(&self.shared);
        let kubelet = self.clone();
        context.tasks.supervise(&name("sync loop"), move || kubelet.clone().sync_loop());
    }

    /// Of the pods that are bound to its node.
    pub(crate) fn pod_informer(&self) -> Arc<SharedInformer> {
        let own = FieldSelector::equal("spec.nodeName", self.node_name());
        self.shared.context.informers.informer_for(&PODS, "", own)
    }

    /// Nothing is done before all pods are known that are there already: an address that one of them has is
    /// none for a new one (`sourcesReady`).
    async fn sync_loop(self) {
        self.pod_informer().wait_for_sync().await;
        self.recover();
        let mut writes = FuturesUnordered::new();
        let mut fetches = FuturesUnordered::new();
        let mut turns = FuturesUnordered::new();
        let mut changes = self.shared.network().changes();
        let mut usages = self.shared.config.measures.changes();
        loop {
            let wait = self.sync_loop_iteration(&mut turns);
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
                Some(turn) = turns.next(), if !turns.is_empty() => self.end_turn(turn),
                Some((sources, uid)) = fetches.next(), if !fetches.is_empty() => self.give(&uid, sources),
                () = self.pods.changed.notified() => {}
                Ok(()) = changes.changed() => self.pods.wake_all(),
                Ok(()) = usages.changed() => self.pods.wake_all(),
                () = self.shared.context.clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
                () = self.keep_house() => {}
            }
        }
    }

    /// A loop that is restarted after a panic does not know what became of the writes that were under way.
    fn recover(&self) {
        let (mut state, now) = (self.pods.state(), self.shared.context.clock.now());
        let PodManagerState { workers, timers, statuses, .. } = &mut *state;
        statuses.reset();
        for (uid, entry) in workers {
            (entry.written, entry.is_deleted) = (None, false);
            set_timer(entry, timers, uid, Some(now));
        }
    }

    /// Syncs all pods that changed or have something due; those that take longer elsewhere. Says how long
    /// nothing else is; none when nothing will be.
    fn sync_loop_iteration(
        &self,
        turns: &mut FuturesUnordered<BoxFuture<'static, Turn>>,
    ) -> Option<Duration> {
        let now = self.shared.context.clock.now();
        while let Some(turn) = self.next_turn(now) {
            if self.shared.context.client.flow().is_stepped() {
                turns.push(turn.take_when_let(self.shared.clone()));
            } else if self.shared.players.are_at_hand() || turn.is_light() {
                self.end_turn(turn.take(&self.shared));
            } else {
                turns.push(turn.take_elsewhere(self.shared.clone()));
            }
        }
        let state = self.pods.state();
        state.timers.first().map(|(due, _)| (*due - now).to_std().unwrap_or_default())
    }

    /// Until it is looked again whose time has come; no clock is set back that is stepped.
    async fn keep_house(&self) {
        let clock = &self.shared.context.clock;
        clock.idle_until(clock.elapsed() + HOUSEKEEPING_PERIOD).await;
    }

    /// Whose turn it is: who changed, who was given something, whose time has come.
    fn next_turn(&self, now: Time) -> Option<Turn> {
        let mut state = self.pods.state();
        if let Some((uid, (object, rejection))) = state.placed.pop_first() {
            return Some(self.add_pod(&mut state, &uid, object, rejection, now));
        }
        while let Some((uid, object)) = state.pending.pop_first() {
            let turn = match object {
                Some(object) => self.update_pod(&mut state, &uid, object, now),
                None => {
                    self.remove_pod(&mut state, &uid);
                    None
                }
            };
            if turn.is_some() {
                return turn;
            }
        }
        loop {
            let due = state.timers.first().filter(|(due, _)| *due <= now).map(|(_, uid)| uid.clone());
            let uid = state.ready.pop_first().or(due)?;
            if let Some(turn) = self.turn(&mut state, &uid, now) {
                return Some(turn);
            }
        }
    }

    /// Lends a worker for its turn; one that is lent out has it when it is back.
    fn turn(&self, state: &mut PodManagerState, uid: &Arc<str>, now: Time) -> Option<Turn> {
        let PodManagerState { workers, timers, ready, .. } = state;
        ready.remove(uid);
        let entry = workers.get_mut(uid)?;
        set_timer(entry, timers, uid, None);
        entry.wants_turn = entry.worker.is_none();
        let worker = entry.take_worker()?;
        let sources = entry.sources.take();
        let loan = Loan::new(self.pods.clone(), uid.clone(), Some(worker));
        Some(Turn { sources, ..Turn::new(loan, now) })
    }

    /// `UpdatePod`: what is told again, and what the kubelet wrote itself, needs no sync.
    fn update_pod(
        &self,
        state: &mut PodManagerState,
        uid: &Arc<str>,
        object: Arc<Object>,
        now: Time,
    ) -> Option<Turn> {
        let verdict = self.verdict(state, uid, &object);
        let is_written = state.statuses.has_written(uid);
        let Some(entry) = state.workers.get_mut(uid) else {
            if admission::asks_of_node(&object.view::<Pod>()) {
                self.look_up_node(state, uid, object);
                return None;
            }
            return Some(self.add_pod(state, uid, object, None, now));
        };
        self.shared.counted.look_at_start(&mut entry.startup, &object, now);
        if entry.worker.is_none() {
            entry.news = Some(object);
            return None;
        }
        let is_resized = verdict == Some(ResizeVerdict::Fits);
        let written_at = entry.written_at;
        let needs_sync = entry.work(|worker| {
            verdict.into_iter().for_each(|verdict| worker.resize(&object, verdict));
            let needs_sync = worker.needs_sync(&object);
            worker.update(object);
            self.note_usage(&worker.pod);
            needs_sync || (is_written && worker.needs_reconcile(written_at))
        })?;
        if needs_sync {
            let object = &entry.seen.object;
            let event = if object.is_deleting() { "DELETE" } else { "UPDATE" };
            tracing::info!(node = self.node_name(), pod = %object.shared_key(), "SyncLoop {event}");
        }
        if is_resized {
            self.retry_resizes(state);
        }
        let turn = needs_sync.then(|| self.turn(state, uid, now)).flatten();
        turn.map(|turn| Turn { kind: TurnKind::Update, ..turn })
    }

    /// The worker of a new pod is made in its first turn.
    fn add_pod(
        &self,
        state: &mut PodManagerState,
        uid: &Arc<str>,
        object: Arc<Object>,
        misplaced: Option<Rejection>,
        now: Time,
    ) -> Turn {
        tracing::info!(node = self.node_name(), pod = %object.shared_key(), "SyncLoop ADD");
        let pod = object.view::<Pod>();
        self.note_usage(&pod);
        let sysctls = &self.options().allowed_unsafe_sysctls;
        let refuse = || sysctls.refusal(&object).or_else(|| self.rejection(state, &pod, misplaced));
        let rejection = if pod.status.start_time.is_none() { refuse() } else { None };
        state.workers.insert(uid.clone(), Entry::new(object.clone()));
        let loan = Loan::new(self.pods.clone(), uid.clone(), None);
        Turn { new: Some((object, rejection)), kind: TurnKind::Create, ..Turn::new(loan, now) }
    }

    /// Why a new pod is not taken up: the first handler that is against it says (`canAdmitPod`).
    fn rejection(
        &self,
        state: &mut PodManagerState,
        pod: &Pod,
        misplaced: Option<Rejection>,
    ) -> Option<Rejection> {
        let (shared, allocatable) = (&self.shared, &self.shared.node.allocatable);
        if let Some(refusal) = pod_importance::refusal(&shared.state, pod) {
            return Some(refusal);
        }
        let others = state.workers.values().filter(|entry| !entry.is_terminated);
        let others: Vec<Arc<Pod>> = others.map(Entry::pod).collect();
        let mut rejection = admission::rejection(pod, others.iter().map(|other| &**other), allocatable);
        let is_short = rejection.as_ref().is_some_and(admission::is_shortage) && misplaced.is_none();
        if is_short && self.make_room(state, pod, rejection.as_ref()) {
            rejection = None;
        }
        rejection.or(misplaced).or_else(|| admission::wrong_system(pod, &shared.config.info.operating_system))
    }

    /// Tells what happened in a turn, and takes the worker back.
    fn end_turn(&self, turn: Turn) {
        let Turn { mut loan, now, happenings, state: before, kind, due, .. } = turn;
        self.shared.note_sync(kind, due);
        let cause = self.shared.record_sync(&loan, before);
        tracing::debug!(node = self.node_name(), pod = %loan.object.shared_key(), state = before.name(), "SyncPod");
        for happening in &happenings {
            self.shared.counted.note_of(&loan.object, happening, now);
            match happening {
                Happening::Asks(container) => self.begin_asking(&loan, container),
                Happening::Probes(container, kind) => self.begin_probe(&loan, container, *kind),
                Happening::Hooks(container, hook) => self.begin_hook(&loan, container, *hook),
                happening => self.shared.tell(&loan, happening, cause),
            }
        }
        let mut state = self.pods.state();
        let PodManagerState { workers, timers, statuses, fetches, .. } = &mut *state;
        let Some(entry) = workers.get_mut(&loan.uid) else { return };
        entry.note_startup(&happenings, now);
        entry.tell_of_turn();
        let due = loan.due;
        set_timer(entry, timers, &loan.uid, due);
        if let Some(fetch) = loan.take_fetch(now) {
            fetches.push(fetch);
            self.pods.changed.notify_one();
        }
        let uid = loan.uid.clone();
        if statuses.has_written(&uid) && loan.needs_reconcile(entry.written_at) {
            // It is put back as it was.
            entry.written = None;
        }
        if let Some(write) = self.write(entry, &mut loan, &uid, now, cause) {
            statuses.add(write);
        }
        let has_ended = loan.state() == WorkerState::Terminated && before != WorkerState::Terminated;
        drop(state);
        drop(loan);
        self.note_resize(&mut self.pods.state(), &uid, has_ended);
    }

    /// What is to be written of a pod, if anything.
    fn write(
        &self,
        entry: &mut Entry,
        worker: &mut PodWorker,
        uid: &Arc<str>,
        now: Time,
        cause: StepId,
    ) -> Option<StatusWrite> {
        if worker.is_waiting_for_sources() && !worker.object.is_deleting() {
            return None;
        }
        let status = worker.status(&self.shared.node.host_ips, now);
        if !entry.has_run && status["phase"] == "Running" {
            entry.has_run = true;
            self.shared.counted.pod_runs((now - worker.start_time).to_std().unwrap_or_default());
        }
        let fingerprint = fingerprint(&status);
        let is_new = entry.written.replace(fingerprint) != Some(fingerprint);
        let patch = is_new.then(|| worker.patch(status));
        let is_over = worker.state() == WorkerState::Terminated && worker.object.is_deleting();
        let delete = is_over && !std::mem::replace(&mut entry.is_deleted, is_over);
        let metadata = &worker.object.metadata;
        (delete || patch.is_some()).then(|| StatusWrite {
            client: self.shared.context.client.caused_by(cause),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: uid.clone(),
            patch,
            delete,
        })
    }

    /// Hands over what was fetched for a pod: it has a turn with that.
    fn give(&self, uid: &Arc<str>, sources: Sources) {
        let mut state = self.pods.state();
        let Some(entry) = state.workers.get_mut(uid) else { return };
        entry.sources = Some(sources);
        state.ready.insert(uid.clone());
    }

    /// One that is lent out is removed when it is back.
    fn remove_pod(&self, state: &mut PodManagerState, uid: &Arc<str>) {
        state.statuses.forget(uid);
        state.looked_up.remove(uid);
        state.placed.remove(uid);
        state.deferred.remove(uid);
        let Some(entry) = state.workers.get_mut(uid) else {
            // The address that was kept for it is free.
            return self.shared.node.runtime.stop_pod_sandbox(uid);
        };
        entry.is_gone = true;
        let Some(mut worker) = entry.take_worker() else { return };
        self.shared.kill(&mut worker);
        entry.returned.notify_one();
        if let Some(timer) = entry.timer {
            state.timers.remove(&(timer, uid.clone()));
        }
        state.ready.remove(uid);
        state.workers.remove(uid);
        self.retry_resizes(state);
    }

    fn take_fetches(&self) -> Vec<Fetch> {
        std::mem::take(&mut self.pods.state().fetches)
    }

    fn take_write(&self) -> Option<StatusWrite> {
        self.pods.state().statuses.take()
    }

    fn finish_write(&self, uid: &Arc<str>, result: Result<u64, Status>) {
        let mut state = self.pods.state();
        state.statuses.finish(uid);
        let status = match result {
            Ok(revision) => return state.finish_write(uid, revision),
            Err(status) => status,
        };
        let (node, status) = (self.node_name(), &status.message);
        tracing::warn!(node, %uid, %status, "failed to update status for pod");
        let due = self.shared.context.clock.now() + SYNC_RETRY;
        let PodManagerState { workers, timers, .. } = &mut *state;
        let Some(entry) = workers.get_mut(uid) else { return };
        (entry.written, entry.is_deleted) = (None, false);
        set_timer(entry, timers, uid, Some(entry.timer.map_or(due, |timer| timer.min(due))));
    }
}
