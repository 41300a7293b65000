//! `Queue`: the deduplicating queue at the bottom (upstream's `workqueue.Type`).

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use super::QueueKey;
use crate::flow::{Flow, Step, StepId};

/// Keys that are waiting for a worker. Cloning shares it.
///
/// Bound: a key is in it once, so it holds as many as there are objects. Nothing is refused but after a shutdown.
#[derive(Clone)]
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    name: Arc<str>,
    flow: Flow,
    state: Mutex<State<K>>,
    /// Something was added, or the queue was shut down.
    added: Notify,
    /// A worker is done.
    finished: Notify,
}

/// Invariants: a key is in `queue` if and only if it is in `dirty` and not in `processing`; a key is in `processing`
/// if and only if one worker has it.
struct State<K> {
    queue: VecDeque<K>,
    /// What has to be looked at, with the step that said so.
    dirty: HashMap<K, StepId>,
    /// What a worker looks at now, with the step that said that it should.
    processing: HashMap<K, StepId>,
    is_shut_down: bool,
}

/// What [`Queue::try_get`] found.
pub(super) enum Next<K> {
    Key(K),
    Empty,
    ShutDown,
}

impl<K: QueueKey> Queue<K> {
    /// An empty queue; `name` is its controller's.
    pub fn new(name: &str, flow: Flow) -> Queue<K> {
        let state = State {
            queue: VecDeque::new(),
            dirty: HashMap::new(),
            processing: HashMap::new(),
            is_shut_down: false,
        };
        let (added, finished) = (Notify::new(), Notify::new());
        let name = flow.name(name);
        Queue { shared: Arc::new(Shared { name, flow, state: Mutex::new(state), added, finished }) }
    }

    /// The queue's name.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// Asks for `key` to be looked at.
    pub fn add(&self, key: K) {
        self.add_with_cause(key, None);
    }

    /// Asks for `key` to be looked at, because of `cause`. While it waits, the first cause stands.
    pub fn add_caused(&self, key: K, cause: StepId) {
        self.add_with_cause(key, cause.cause());
    }

    /// Waits for the next key; none when the queue was shut down and is empty. The caller must say [`Queue::done`].
    pub async fn get(&self) -> Option<K> {
        loop {
            let mut added = pin!(self.shared.added.notified());
            // Registered before looking, so that what is added after the look wakes.
            added.as_mut().enable();
            match self.try_get() {
                Next::Key(key) => return Some(key),
                Next::ShutDown => return None,
                Next::Empty => added.await,
            }
        }
    }

    /// The caller looked at `key`. If it was added meanwhile, it goes to the end of the queue.
    pub fn done(&self, key: &K) {
        let mut state = self.lock();
        state.processing.remove(key);
        if state.dirty.contains_key(key) {
            state.queue.push_back(key.clone());
            drop(state);
            self.shared.added.notify_one();
        }
        self.shared.finished.notify_waiters();
    }

    /// The step that put `key` into the queue, for the worker that has it.
    pub fn cause_of(&self, key: &K) -> Option<StepId> {
        self.lock().processing.get(key).copied().and_then(StepId::cause)
    }

    /// How many keys wait.
    pub fn len(&self) -> usize {
        self.lock().queue.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Accepts nothing any more. Workers get what is left, and then none.
    pub fn shutdown(&self) {
        self.lock().is_shut_down = true;
        self.shared.added.notify_waiters();
    }

    /// Like [`Queue::shutdown`], and waits until every worker is done and nothing is left (`ShutDownWithDrain`).
    pub async fn shutdown_with_drain(&self) {
        self.shutdown();
        loop {
            let mut finished = pin!(self.shared.finished.notified());
            finished.as_mut().enable();
            if self.lock().is_drained() {
                return;
            }
            finished.await;
        }
    }

    /// Whether it was shut down.
    pub fn is_shutting_down(&self) -> bool {
        self.lock().is_shut_down
    }

    pub(super) fn try_get(&self) -> Next<K> {
        let mut state = self.lock();
        let Some(key) = state.queue.pop_front() else {
            return if state.is_shut_down { Next::ShutDown } else { Next::Empty };
        };
        let cause = state.dirty.remove(&key).unwrap_or_default();
        state.processing.insert(key.clone(), cause);
        Next::Key(key)
    }

    pub(super) fn added(&self) -> &Notify {
        &self.shared.added
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.shared.flow
    }

    fn add_with_cause(&self, key: K, cause: Option<StepId>) {
        let mut state = self.lock();
        if state.is_shut_down || state.dirty.contains_key(&key) {
            return;
        }
        let step = self.shared.flow.record_with(cause, || Step::Enqueued {
            queue: self.shared.name.clone(),
            key: key.to_string().into(),
        });
        state.dirty.insert(key.clone(), step);
        if state.processing.contains_key(&key) {
            return;
        }
        state.queue.push_back(key);
        drop(state);
        self.shared.added.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.shared.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<K> State<K> {
    fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.dirty.is_empty() && self.processing.is_empty()
    }
}
