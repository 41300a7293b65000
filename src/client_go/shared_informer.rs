//! `SharedInformer`: one watch and one cache of a kind for everybody (client-go's `SharedIndexInformer`).
//! Next: src/client_go/workqueue/mod.rs
//!
//! Guarantees, as client-go gives them:
//! - the cache is changed before the handlers hear of it, so what a handler is told of is in the lister, or
//!   something newer is;
//! - a handler hears of the changes to one object in their order, each once, and of none before the object's
//!   add;
//! - a handler that comes late is told of everything that is known, as adds;
//! - what is only told again, in a new list and at the same revision, is not told to handlers;
//! - a watch that was interrupted may have lost what lay between, never the final state
//!   ([`Deleted::FinalStateUnknown`]).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::delta_fifo::{Delta, DeltaFifo, Deltas, Popped};
use super::indexer::{IndexFunc, Indexer};
use super::lister::Lister;
use super::noted_source::NotedSource;
use super::reflector::{ListerWatcher, Reflector};
use apimachinery::object::Object;
use clock::Clock;
use entropy::Entropy;
use flow::{CacheEntry, Callback, DeltaType, Flow, HeldStage, HeldStep, Step, WriteOperation, is_renewal};

pub use super::delta_fifo::Deleted;

/// How many keys are popped from the delta FIFO before the handlers are called.
const BATCH: usize = 256;

/// What is told of the changes to a kind's objects (`cache.ResourceEventHandler`).
///
/// Called in order from the informer's own task, with no lock held. Must not block: put a key into a work
/// queue. A panic is logged as an error, and the next change is told as if nothing had happened.
pub trait ResourceEventHandler: Send + Sync {
    /// An object came; `is_initial_list`: it was there before the informer started.
    fn on_add(&self, new: &Arc<Object>, is_initial_list: bool);
    /// An object changed. `old` is what this informer saw before, which need not be the state just before
    /// `new`.
    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>);
    /// An object went.
    fn on_delete(&self, last: &Deleted);
}

/// Whose informer this is.
#[derive(Clone)]
pub struct InformerOwner {
    /// The component, as flow and logs call it: `kube-controller-manager`, `kubelet/node-1`.
    pub component: Arc<str>,
    /// The cluster's clock.
    pub clock: Clock,
    /// The cluster's random numbers.
    pub entropy: Entropy,
    /// The cluster's causal record.
    pub flow: Flow,
}

/// A cache of a kind's objects that a watch keeps up to date, and the handlers that are told.
pub struct SharedInformer {
    owner: InformerOwner,
    /// As `deployments.apps`.
    resource: Arc<str>,
    indexer: Arc<Indexer>,
    fifo: Arc<DeltaFifo>,
    /// Held while a change goes into the indexer and into the handlers' buffers, so that a handler that comes
    /// at the same time hears of it exactly once. Handlers themselves run without it.
    listeners: Mutex<Vec<Arc<ProcessorListener>>>,
    /// A handler came late.
    late: Notify,
    synced: AtomicBool,
    /// Wakes in the order in which they came, which a `watch` channel would not: a seeded cluster does
    /// everything in the same order each time.
    became_synced: Notify,
}

/// A handler and what it has not been told yet (`cache.processorListener`).
///
/// Bound: the buffer grows to what one batch of the delta FIFO holds, or for a handler that comes late to the
/// size of the indexer. A handler that takes its time holds up its informer and so the watch, which the
/// apiserver then cuts and the reflector resumes: memory does not grow, and nothing is lost.
struct ProcessorListener {
    handler: Box<dyn ResourceEventHandler>,
    pending: Mutex<VecDeque<Notification>>,
    synced: AtomicBool,
}

/// What the record is told of a delta beside its object.
#[derive(Clone, Copy)]
struct ToldDelta {
    type_of: DeltaType,
    /// How many of its key came out of the FIFO with it.
    count: u8,
    /// How many deletions in a row were merged into it.
    merged: u8,
}

#[derive(Clone)]
enum Notification {
    Add { new: Arc<Object>, is_initial_list: bool },
    Update { old: Arc<Object>, new: Arc<Object> },
    Delete(Deleted),
}

/// What [`SharedInformer::add_handler`] returns (`cache.ResourceEventHandlerRegistration`).
#[derive(Clone)]
pub struct HandlerRegistration {
    /// The informer alone keeps it: a handler may hold whoever registered it.
    listener: Weak<ProcessorListener>,
}

impl HandlerRegistration {
    /// Whether the handler was told of everything that was there when it was added.
    pub fn has_synced(&self) -> bool {
        self.listener.upgrade().is_some_and(|listener| listener.synced.load(Ordering::Acquire))
    }
}

impl SharedInformer {
    /// An informer that has not begun; `resource` as in errors: `deployments.apps`.
    pub fn new(owner: InformerOwner, resource: &str) -> SharedInformer {
        let indexer = Arc::new(Indexer::new());
        SharedInformer {
            resource: owner.flow.name(resource),
            owner,
            fifo: Arc::new(DeltaFifo::new(indexer.clone())),
            indexer,
            listeners: Mutex::default(),
            late: Notify::new(),
            synced: AtomicBool::new(false),
            became_synced: Notify::new(),
        }
    }

    /// Adds a handler, before or after the informer began.
    pub fn add_handler(&self, handler: impl ResourceEventHandler + 'static) -> HandlerRegistration {
        let pending = Mutex::default();
        let handler: Box<dyn ResourceEventHandler> = Box::new(handler);
        let listener = Arc::new(ProcessorListener { handler, pending, synced: AtomicBool::new(false) });
        let mut listeners = self.listeners();
        for new in self.indexer.list() {
            listener.push(Notification::Add { new, is_initial_list: true });
        }
        listeners.push(listener.clone());
        drop(listeners);
        self.late.notify_one();
        HandlerRegistration { listener: Arc::downgrade(&listener) }
    }

    /// Tells a handler nothing more (`RemoveEventHandler`); what it is being told just now it hears to its
    /// end.
    pub fn remove_handler(&self, registration: &HandlerRegistration) {
        let Some(removed) = registration.listener.upgrade() else { return };
        self.listeners().retain(|listener| !Arc::ptr_eq(listener, &removed));
        // Without the lock: what goes with a handler, or with what it was not told yet, may be anything.
        drop(removed.take());
    }

    /// Adds an index, before or after the informer began.
    pub fn add_index(&self, name: &str, values_of: IndexFunc) {
        self.indexer.add_index(name, values_of);
    }

    /// Whether the first list is in the cache and the handlers were told.
    pub fn has_synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    /// Waits until [`SharedInformer::has_synced`].
    pub async fn wait_for_sync(&self) {
        // Asked for before looking, so that a change in between is not missed.
        let became_synced = self.became_synced.notified();
        if !self.has_synced() {
            became_synced.await;
        }
    }

    /// Reads the cache.
    pub fn lister(&self) -> Lister {
        Lister::new(self.indexer.clone())
    }

    /// The cache.
    pub fn indexer(&self) -> &Arc<Indexer> {
        &self.indexer
    }

    /// Tells every handler of every object once more, as an update from itself. Nobody needs this to be
    /// correct; it is for handlers that look after something outside the cluster.
    pub fn resync(&self) {
        self.fifo.resync();
    }

    /// Lists and watches until it is dropped. Reflector and handlers share one task: they take turns, so that
    /// the delta FIFO between them stays short.
    pub async fn run(&self, source: impl ListerWatcher) {
        let InformerOwner { clock, entropy, component, flow } = self.owner.clone();
        let (resource, has_listed) = (self.resource.clone(), AtomicBool::new(false));
        let indexer = self.indexer.clone();
        let source = NotedSource { source, component, flow, resource, has_listed, indexer };
        let reflector = Reflector::new(source, self.fifo.clone(), clock, entropy);
        tokio::join!(reflector.run(), self.process());
    }

    async fn process(&self) {
        loop {
            tokio::select! {
                biased;
                () = self.take_in() => {}
                () = self.late.notified() => {}
            }
            self.dispatch();
            tokio::task::coop::consume_budget().await;
        }
    }

    /// What is in the delta FIFO, when there is something. Dropped before, it has taken in nothing.
    async fn take_in(&self) {
        self.fifo.wait().await;
        let at_most = if self.hold().await { 1 } else { BATCH };
        self.fifo.pop_ready(at_most, |key, deltas, popped| self.handle(key, deltas, popped));
    }

    /// Waits in front of an event, while somebody steps the cluster; says whether somebody does. What was
    /// there before, what nobody asked for, and renewals of leases are no steps.
    async fn hold(&self) -> bool {
        let InformerOwner { flow, component, .. } = &self.owner;
        if !flow.is_stepped() {
            return false;
        }
        let seen = self.fifo.next().filter(|_| self.has_synced());
        let written = |object: &Object| flow.stored(object.metadata.resource_version);
        let step = seen.map(|(key, object)| (key, written(&object)));
        if let Some((key, cause)) = step.filter(|(_, cause)| flow.is_of_request(*cause)) {
            let step = HeldStep::new(HeldStage::Watch, component.clone(), self.resource.clone(), key);
            flow.gate(|| step.caused_by(cause)).await;
        }
        true
    }

    /// Brings the cache up to date and notes what the handlers are to be told (`processDeltas`).
    fn handle(&self, key: &Arc<str>, deltas: Deltas, popped: Popped) {
        let listeners = self.listeners();
        let count = u8::try_from(deltas.len()).unwrap_or(u8::MAX);
        for delta in deltas {
            let type_of = delta.type_of();
            let Some(notification) = self.apply(key, delta, popped.is_initial) else { continue };
            let merged = if type_of == DeltaType::Deleted { popped.merged } else { 0 };
            self.record(key, &notification, ToldDelta { type_of, count, merged }, listeners.len());
            for listener in listeners.iter() {
                listener.push(notification.clone());
            }
        }
    }

    /// None when there is nothing to tell.
    fn apply(&self, key: &Arc<str>, delta: Delta, is_initial_list: bool) -> Option<Notification> {
        let is_resync = matches!(delta, Delta::Sync(_));
        match delta {
            Delta::Deleted(deleted) => {
                self.indexer.delete(key);
                Some(Notification::Delete(deleted))
            }
            Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new) => {
                let Some(old) = self.indexer.update(new.clone()) else {
                    return Some(Notification::Add { new, is_initial_list });
                };
                let is_news = old.metadata.resource_version != new.metadata.resource_version;
                (is_news || is_resync).then_some(Notification::Update { old, new })
            }
        }
    }

    /// What was there before the informer began is mentioned only while the write that made it is remembered:
    /// a component that starts into a full cluster would push everything else out of the record. So would
    /// leases that are renewed, of which no write is remembered.
    fn record(&self, key: &Arc<str>, notification: &Notification, delta: ToldDelta, handlers: usize) {
        let flow = &self.owner.flow;
        let (object, callback, is_old) = match notification {
            Notification::Add { new, is_initial_list } => (new, Callback::OnAdd, *is_initial_list),
            Notification::Update { new, .. } => (new, Callback::OnUpdate, false),
            Notification::Delete(deleted) => {
                let is_unseen = matches!(deleted, Deleted::FinalStateUnknown { .. });
                (deleted.last(), Callback::OnDelete, is_unseen)
            }
        };
        let revision = object.metadata.resource_version;
        let is_untold = is_old || is_renewal(&self.resource, WriteOperation::Update);
        if is_untold && flow.stored(revision).is_none() {
            return;
        }
        flow.record_with(None, || Step::InformerUpdated {
            component: self.owner.component.clone(),
            resource: self.resource.clone(),
            key: key.clone(),
            revision,
            delta: Some(delta.type_of),
            callback: Some(callback),
            handlers: u16::try_from(handlers).unwrap_or(u16::MAX),
            deltas: delta.count,
            merged: delta.merged,
            entry: flow.tells_cache_entry().then(|| Box::new(self.entry(notification))),
        });
    }

    /// What the cache held of an object, and where it is found in it now.
    fn entry(&self, notification: &Notification) -> CacheEntry {
        let (before, now) = match notification {
            Notification::Add { new, .. } => (None, Some(new)),
            Notification::Update { old, new } => (Some(old), Some(new)),
            Notification::Delete(deleted) => (Some(deleted.last()), None),
        };
        let found = now.map(|object| self.indexer.places_of(object)).unwrap_or_default();
        let name = |name: &str| self.owner.flow.name(name);
        CacheEntry {
            before: before.map(|object| object.metadata.resource_version),
            indices: found.into_iter().map(|(index, values)| (name(&index), values.into())).collect(),
        }
    }

    fn dispatch(&self) {
        // Read before the handlers run: what came in until now is in their buffers.
        let has_synced = self.fifo.has_synced();
        let listeners = self.listeners().clone();
        for listener in &listeners {
            listener.run();
            if has_synced {
                listener.synced.store(true, Ordering::Release);
            }
        }
        if has_synced && !self.has_synced() {
            self.indexer.pack();
            self.synced.store(true, Ordering::Release);
            self.became_synced.notify_waiters();
        }
    }

    /// Lets go of the handlers: they know who reads this informer's cache, so that neither could ever go.
    pub(super) fn forget_handlers(&self) {
        let forgotten = std::mem::take(&mut *self.listeners());
        // Without the lock: what goes with a handler may be anything.
        drop(forgotten);
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Arc<ProcessorListener>>> {
        self.listeners.lock()
    }
}

impl ProcessorListener {
    fn push(&self, notification: Notification) {
        self.pending.lock().push_back(notification);
    }

    fn take(&self) -> VecDeque<Notification> {
        std::mem::take(&mut *self.pending.lock())
    }

    fn run(&self) {
        for notification in self.take() {
            let told = catch_unwind(AssertUnwindSafe(|| self.tell(&notification)));
            if let Err(panic) = told {
                tracing::error!(panic = super::tasks::panic_text(&*panic), "an event handler panicked");
            }
        }
    }

    fn tell(&self, notification: &Notification) {
        match notification {
            Notification::Add { new, is_initial_list } => self.handler.on_add(new, *is_initial_list),
            Notification::Update { old, new } => self.handler.on_update(old, new),
            Notification::Delete(last) => self.handler.on_delete(last),
        }
    }
}

#[cfg(test)]
mod tests;
