//! The loop that all controllers share: what they watch fills a work queue, workers reconcile what is in it.
//! Next: src/controllers/deployment/mod.rs
//!
//! Informers put keys into the queue; a worker takes a key, reconciles it, and puts it back with a growing
//! delay when that failed. A controller says what it watches and what to do about a key. A key says where to
//! look, never what happened.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use sync::{Mutex, MutexGuard};

use super::queue_names;
use apimachinery::object::{Object, object_key};
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apis::kind::{Builtin, Kind};
use client_go::shared_informer::{HandlerRegistration, SharedInformer};
use client_go::{Client, ComponentContext, Deleted, EventRecorder, ResourceEventHandler, WorkQueue};
use clock::Clock;
use entropy::Entropy;
use flow::{ComparedCount, Flow, HeldStage, HeldStep, Step, StepId};

pub use client_go::Key;

/// How long status-like changes of dependents are gathered when their owner was reconciled just now: a
/// thousand pods that become ready one by one would otherwise each cost a sync and a status write.
const BATCH_PERIOD: Duration = Duration::from_millis(20);
/// Above so many remembered starts those older than [`BATCH_PERIOD`] are dropped.
const REMEMBERED_STARTS: usize = 4096;

/// One controller.
pub trait Controller: Send + Sync + 'static {
    /// As `deployment`: the name of its queue, and of its steps in the flow record.
    const NAME: &'static str;
    /// The `source.component` of its events.
    const EVENT_SOURCE: &'static str;
    /// In whose name it asks: a service account of `kube-system`, which the ClusterRole
    /// `system:controller:NAME` is for (`--use-service-account-credentials`); empty for the few that ask as
    /// the controller manager itself, as all informers do.
    const SERVICE_ACCOUNT: &'static str;
    /// How many keys are reconciled at once; a single key never is. Upstream's `--concurrent-*-syncs`.
    const WORKERS: usize = 5;

    /// Whose changes put which keys into the queue.
    fn watches(&self) -> Watches;

    /// Brings what is behind `key` nearer to what it should be. Level-based and idempotent. An error puts the
    /// key back with a delay that doubles.
    fn reconcile(&self, ctx: &Reconcile, key: &Key) -> impl Future<Output = Result<Action, Status>> + Send;
}

/// What to do with a key that was reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing, until something changes.
    Done,
    /// Look again after this time.
    RequeueAfter(Duration),
    /// Look again after this time, to go on with what had to wait until then: what led to this round leads to
    /// that one, too.
    ResumeAfter(Duration),
    /// Look again after this time; nothing new is found there unless something has changed.
    LookAfter(Duration),
}

/// What a reconcile works with.
pub struct Reconcile {
    /// Asks the apiserver on behalf of this reconcile.
    pub client: Client,
    /// Tells people.
    pub recorder: EventRecorder,
    /// The time of the cluster.
    pub clock: Clock,
    /// The chance of the cluster.
    pub entropy: Entropy,
    /// Puts keys into this controller's own queue.
    pub enqueue: Enqueue,
    compared: Mutex<Option<(&'static str, i64, i64)>>,
}

impl Reconcile {
    /// Says how many there should be and how many there are, as of `pods`: what the record tells people of
    /// this reconcile. The last word counts.
    pub fn compares(&self, of: &'static str, wanted: i64, found: i64) {
        *self.compared.lock() = Some((of, wanted, found));
    }

    /// An Event about `object`; `event_type` is `Normal` or `Warning`.
    pub fn event(
        &self,
        kind: &Kind,
        object: &Object,
        event_type: &str,
        reason: &str,
        message: impl Into<String>,
    ) {
        self.recorder.event((kind, object), event_type, reason, message);
    }
}

/// A change of a watched object.
pub enum Change<'a> {
    /// It is there; also true of each object when the informer starts.
    Added(&'a Arc<Object>),
    /// It was replaced by its next state.
    Updated {
        /// The object before the change.
        old: &'a Arc<Object>,
        /// The object after the change.
        new: &'a Arc<Object>,
    },
    /// It is gone; this is the last that was seen of it.
    Deleted(&'a Arc<Object>),
}

impl Change<'_> {
    /// The object, in its latest state.
    pub fn object(&self) -> &Arc<Object> {
        match self {
            Change::Added(object) | Change::Updated { new: object, .. } | Change::Deleted(object) => object,
        }
    }

    /// The state before, of an update.
    pub fn old(&self) -> Option<&Arc<Object>> {
        match self {
            Change::Updated { old, .. } => Some(old),
            Change::Added(_) | Change::Deleted(_) => None,
        }
    }

    /// Whether it is gone, or began to go with this change.
    pub fn is_removal(&self) -> bool {
        match self {
            Change::Added(object) => object.is_deleting(),
            Change::Updated { old, new } => !old.is_deleting() && new.is_deleting(),
            Change::Deleted(_) => true,
        }
    }
}

/// What maps a change to keys.
pub type Mapping = Box<dyn Fn(&Change<'_>, &Enqueue) + Send + Sync>;

/// Whose changes a controller looks at, and the keys they stand for.
pub struct Watches {
    watches: Vec<(Arc<Kind>, Mapping)>,
    at_start: Option<Key>,
}

impl Watches {
    /// The objects of `kind`, by their own keys.
    pub fn of(kind: &Arc<Kind>) -> Watches {
        Watches::none().maps(kind, |change, enqueue| enqueue.now(change.object().key()))
    }

    /// Nothing yet.
    pub fn none() -> Watches {
        Watches { watches: vec![], at_start: None }
    }

    /// `key` once at the start: for a controller that looks at everything from time to time.
    pub fn at_start(mut self, key: &str) -> Watches {
        self.at_start = Some(key.into());
        self
    }

    /// The objects of `kind`, by a mapping of their own.
    pub fn maps(
        mut self,
        kind: &Arc<Kind>,
        mapping: impl Fn(&Change<'_>, &Enqueue) + Send + Sync + 'static,
    ) -> Watches {
        self.watches.push((Arc::clone(kind), Box::new(mapping)));
        self
    }

    /// The objects of `kind` that an object of `owner` controls, by the owner's key; and orphans that could
    /// be adopted, by the keys that `adopters` gives.
    pub fn owns(
        self,
        kind: &Arc<Kind>,
        owner: &'static Builtin,
        adopters: impl Fn(&Object) -> Vec<Key> + Send + Sync + 'static,
    ) -> Watches {
        self.maps(kind, move |change, enqueue| {
            owner_keys(change, owner, &adopters).into_iter().for_each(|key| enqueue.now(key));
        })
    }
}

/// The keys of the `owner`s that a change of a dependent concerns: its controller, the one it had before, and
/// for an orphan whoever may adopt it.
pub fn owner_keys(change: &Change<'_>, owner: &Kind, adopters: impl Fn(&Object) -> Vec<Key>) -> Vec<Key> {
    let object = change.object();
    let mut keys: Vec<Key> = controller_key(object, owner).into_iter().collect();
    let old = change.old();
    let controller_changed = old.is_some_and(|old| old.controller() != object.controller());
    if let Some(old) = old.filter(|_| controller_changed) {
        keys.extend(controller_key(old, owner));
    }
    if object.controller().is_none() && !change.is_removal() {
        let labels_changed = old.is_none_or(|old| old.metadata.labels != object.metadata.labels);
        if labels_changed || controller_changed {
            keys.extend(adopters(object));
        }
    }
    keys
}

/// The key of the `owner` that controls `object`, if one does.
pub fn controller_key(object: &Object, owner: &Kind) -> Option<Key> {
    let reference = object.controller()?;
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    let is_owner = *reference.kind == *owner.kind && *group == *owner.group_version.group;
    is_owner.then(|| object_key(&object.metadata.namespace, &reference.name))
}

/// Puts keys into a controller's queue, because of a change.
pub struct Enqueue {
    shared: Arc<EnqueueShared>,
    /// The object that changed, by its revision: the cause of what is put in.
    cause: Option<StepId>,
}

struct EnqueueShared {
    queue: WorkQueue<Key>,
    clock: Clock,
    flow: Flow,
    component: Arc<str>,
    /// When each key was last taken out. Bound: [`REMEMBERED_STARTS`], and the keys of one [`BATCH_PERIOD`].
    started: Mutex<HashMap<Key, Duration>>,
}

impl Enqueue {
    /// At once.
    pub fn now(&self, key: Key) {
        self.shared.queue.add_caused(key, self.cause.unwrap_or_default());
    }

    /// After a time.
    pub fn after(&self, key: Key, delay: Duration) {
        self.shared.queue.add_after_caused(key, delay, self.cause);
    }

    /// At once; or, when the key was reconciled just now, a little later with what else changes until then.
    pub fn batched(&self, key: Key) {
        let started = self.shared.started().get(&key).copied();
        let due = started.map(|started| (started + BATCH_PERIOD).saturating_sub(self.shared.clock.elapsed()));
        match due.filter(|due| !due.is_zero()) {
            None => self.now(key),
            Some(due) => self.after(key, due),
        }
    }
}

impl EnqueueShared {
    fn because_of(self: &Arc<EnqueueShared>, object: &Object) -> Enqueue {
        self.caused_by(self.flow.informed(&self.component, object.metadata.resource_version))
    }

    fn caused_by(self: &Arc<EnqueueShared>, cause: Option<StepId>) -> Enqueue {
        Enqueue { shared: self.clone(), cause }
    }

    fn note_start(&self, key: &Key) {
        let now = self.clock.elapsed();
        let mut started = self.started();
        if started.len() >= REMEMBERED_STARTS {
            started.retain(|_, at| *at + BATCH_PERIOD > now);
        }
        started.insert(key.clone(), now);
    }

    fn started(&self) -> MutexGuard<'_, HashMap<Key, Duration>> {
        self.started.lock()
    }
}

/// A controller that was started.
#[derive(Clone)]
pub struct ControllerRun {
    ctx: ComponentContext,
    shared: Arc<EnqueueShared>,
}

impl ControllerRun {
    /// Watches another kind, one that came up later: from when the registration has synced.
    pub fn watch(
        &self,
        kind: &Arc<Kind>,
        mapping: impl Fn(&Change<'_>, &Enqueue) + Send + Sync + 'static,
    ) -> HandlerRegistration {
        let mapped = Mapped { mapping: Box::new(mapping), shared: self.shared.clone() };
        let registration = self.ctx.handle(kind, mapped);
        self.ctx.start_informers();
        registration
    }

    /// Puts keys into its queue, because of a change of `object`.
    pub fn because_of(&self, object: &Object) -> Enqueue {
        self.shared.because_of(object)
    }
}

/// Starts a controller: its informers, then its workers when the caches are filled.
pub fn spawn<C: Controller>(ctx: &ComponentContext, controller: C) -> ControllerRun {
    spawn_workers(ctx, controller, C::WORKERS)
}

/// Starts a controller with as many workers as somebody wants.
pub fn spawn_workers<C: Controller>(ctx: &ComponentContext, controller: C, workers: usize) -> ControllerRun {
    let flow = ctx.client.flow().clone();
    let (component, clock) = (ctx.component.clone(), ctx.clock.clone());
    let queue = ctx.work_queue_counted_as(C::NAME, queue_names::of(C::NAME));
    let shared = Arc::new(EnqueueShared { queue, clock, flow, component, started: Mutex::default() });
    let Watches { watches, at_start } = controller.watches();
    for (kind, mapping) in watches {
        ctx.handle(&kind, Mapped { mapping, shared: shared.clone() });
    }
    ctx.start_informers();
    // Those that it has asked for are among them. Others may come later, and are not waited for.
    let informers: Arc<[Arc<SharedInformer>]> = ctx.informers.started().into();
    at_start.into_iter().for_each(|key| shared.queue.add(key));
    let recorder = ctx.recorder.named(C::EVENT_SOURCE);
    let client = match C::SERVICE_ACCOUNT {
        "" => ctx.client.clone(),
        account => ctx.client.acting_as(UserInfo::service_account("kube-system", account)),
    };
    let mut ctx = ctx.clone();
    ctx.client = client;
    let worker = Arc::new(Worker { name: C::NAME.into(), controller, shared, recorder, ctx: ctx.clone() });
    for _ in 0..workers {
        let (worker, informers) = (worker.clone(), informers.clone());
        let run = move || {
            let (worker, informers) = (worker.clone(), informers.clone());
            async move {
                for informer in informers.iter() {
                    informer.wait_for_sync().await;
                }
                worker.run().await;
            }
        };
        ctx.tasks.supervise(&format!("{} controller", C::NAME), run);
    }
    ControllerRun { ctx, shared: worker.shared.clone() }
}

/// Tells a mapping what an informer tells.
struct Mapped {
    mapping: Mapping,
    shared: Arc<EnqueueShared>,
}

impl Mapped {
    fn map(&self, change: &Change<'_>) {
        (self.mapping)(change, &self.shared.because_of(change.object()));
    }
}

impl ResourceEventHandler for Mapped {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.map(&Change::Added(new));
    }

    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        if old.metadata.resource_version != new.metadata.resource_version {
            self.map(&Change::Updated { old, new });
        }
    }

    fn on_delete(&self, last: &Deleted) {
        let (Deleted::Object(last) | Deleted::FinalStateUnknown { last, .. }) = last;
        self.map(&Change::Deleted(last));
    }
}

struct Worker<C> {
    name: Arc<str>,
    controller: C,
    shared: Arc<EnqueueShared>,
    recorder: EventRecorder,
    ctx: ComponentContext,
}

impl<C: Controller> Worker<C> {
    async fn run(&self) {
        let queue = &self.shared.queue;
        while let Some(key) = queue.get().await {
            self.hold(&key).await;
            self.shared.note_start(&key);
            let start = self.shared.clock.elapsed();
            // In a box for as long as it goes on: there are hundreds of workers, and most of them wait.
            let result = Box::pin(self.reconcile(&key)).await;
            self.log(&key, &result, self.shared.clock.elapsed().saturating_sub(start));
            match result {
                Ok(action) => {
                    queue.forget(&key);
                    match action {
                        Action::Done => {}
                        Action::RequeueAfter(delay) => queue.add_after(key.clone(), delay),
                        Action::ResumeAfter(delay) => {
                            queue.add_after_caused(key.clone(), delay, queue.cause_of(&key));
                        }
                        Action::LookAfter(delay) => queue.look_after(key.clone(), delay),
                    }
                }
                Err(_) => queue.add_rate_limited(key.clone()),
            }
            queue.done(&key);
            // An apiserver in the same process answers at once: with tens of thousands of keys in the queue,
            // nothing else would get this thread.
            self.shared.clock.yield_now().await;
        }
    }

    /// Waits in front of a reconcile, while somebody steps the cluster: nobody else takes the key meanwhile.
    async fn hold(&self, key: &Key) {
        let EnqueueShared { flow, component, .. } = &*self.shared;
        let step = || {
            let held = HeldStep::new(
                HeldStage::Reconcile,
                component.clone(),
                self.name.clone(),
                key.as_str().into(),
            );
            held.caused_by(self.shared.queue.cause_of(key))
        };
        flow.gate(step).await;
    }

    /// `retries` is how often in a row it had failed before.
    fn log(&self, key: &Key, result: &Result<Action, Status>, duration: Duration) {
        let retries = || self.shared.queue.num_requeues(key);
        match result {
            Ok(_) => tracing::debug!(
                controller = C::NAME,
                %key,
                result = %shown(result),
                retries = retries(),
                ?duration,
                "Finished syncing"
            ),
            Err(error) => tracing::info!(
                controller = C::NAME,
                %key,
                %error,
                retries = retries(),
                ?duration,
                "Error syncing, will be retried"
            ),
        }
    }

    /// A panic is an error that is logged as one; other keys are not held up by it.
    async fn reconcile(&self, key: &Key) -> Result<Action, Status> {
        let flow = &self.shared.flow;
        let started = flow.record_with(self.shared.queue.cause_of(key), || Step::ReconcileStarted {
            controller: self.name.clone(),
            key: key.as_str().into(),
            coalesced: self.shared.queue.coalesced(key),
        });
        let ctx = Reconcile {
            client: self.ctx.client.caused_by(started),
            recorder: self.recorder.caused_by(started),
            clock: self.ctx.clock.clone(),
            entropy: self.ctx.entropy.clone(),
            enqueue: self.shared.caused_by(started.cause()),
            compared: Mutex::default(),
        };
        let outcome = AssertUnwindSafe(self.controller.reconcile(&ctx, key)).catch_unwind().await;
        let result = outcome.unwrap_or_else(|_| {
            tracing::error!(controller = C::NAME, %key, "observed a panic, trying again");
            Err(Status::internal("the reconcile panicked"))
        });
        flow.record_with(started.cause(), || {
            let compared = ctx.compared.lock().take();
            let compared =
                compared.map(|(of, wanted, found)| ComparedCount { of: flow.name(of), wanted, found });
            Step::ReconcileEnded { result: shown(&result), compared }
        });
        result
    }
}

fn shown(result: &Result<Action, Status>) -> Arc<str> {
    match result {
        Ok(Action::Done) => "done".into(),
        Ok(Action::RequeueAfter(delay) | Action::ResumeAfter(delay) | Action::LookAfter(delay)) => {
            format!("requeue after {delay:?}").into()
        }
        Err(error) => error.to_string().into(),
    }
}
