//! `Queue`: the deduplicating queue at the bottom (upstream's `workqueue.Type`).

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::QueueKey;
use super::counts::{QueueLook, QueueState, WorkQueueCounts};
use flow::{Flow, Step, StepId};

/// Keys that are waiting for a worker. Cloning shares it.
///
/// Bound: a key is in it once, so it holds as many as there are objects. Nothing is refused but after a
/// shutdown.
#[derive(Clone)]
pub struct Queue<K> {
    shared: Arc<WorkQueueShared<K>>,
}

struct WorkQueueShared<K> {
    name: Arc<str>,
    flow: Flow,
    /// None where nobody counts.
    counts: Option<Arc<WorkQueueCounts>>,
    state: Mutex<WorkQueueState<K>>,
    /// Something was added, or the queue was shut down.
    added: Notify,
    /// A worker is done.
    finished: Notify,
}

/// Invariants: a key is in `queue` if and only if it is in `dirty` and not in `processing`; a key is in
/// `processing` if and only if one worker has it.
struct WorkQueueState<K> {
    queue: VecDeque<K>,
    /// What has to be looked at, with the step that said so.
    dirty: HashMap<K, AskedToLook>,
    /// What a worker looks at now, with the step that said that it should.
    processing: HashMap<K, AskedToLook>,
    is_shut_down: bool,
}

/// That a key is to be looked at.
#[derive(Clone, Copy, Default)]
struct AskedToLook {
    /// The step that said so first.
    step: StepId,
    /// How often it was said once more.
    again: u32,
    /// When it came, or when a worker took it; where that is counted.
    at: Duration,
}

/// What a key was held back for before it came into the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldBack {
    /// How often in a row it has failed.
    pub(super) retries: u32,
    /// For how long.
    pub(super) delay: Duration,
}

/// What [`Queue::try_get`] found.
pub(super) enum NextKey<K> {
    Key(K),
    Empty,
    ShutDown,
}

impl<K: QueueKey> Queue<K> {
    /// An empty queue; `name` is its controller's.
    pub fn new(name: &str, flow: Flow) -> Queue<K> {
        Queue::counted(name, flow, None)
    }

    /// An empty queue of which is counted what it does.
    pub fn counted(name: &str, flow: Flow, counts: Option<Arc<WorkQueueCounts>>) -> Queue<K> {
        let state = WorkQueueState {
            queue: VecDeque::new(),
            dirty: HashMap::new(),
            processing: HashMap::new(),
            is_shut_down: false,
        };
        let added = Notify::new();
        let finished = Notify::new();
        let name = flow.name(name);
        let state = Mutex::new(state);
        Queue { shared: Arc::new(WorkQueueShared { name, flow, counts, state, added, finished }) }
    }

    /// The queue's name.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// Asks for `key` to be looked at.
    pub fn add(&self, key: K) {
        self.add_held_back(key, None, HeldBack::default());
    }

    /// Asks for `key` to be looked at, because of `cause`. While it waits, the first cause stands.
    pub fn add_caused(&self, key: K, cause: StepId) {
        self.add_held_back(key, cause.cause(), HeldBack::default());
    }

    /// Waits for the next key; none when the queue was shut down and is empty. The caller must say
    /// [`Queue::done`].
    pub async fn get(&self) -> Option<K> {
        loop {
            let mut added = pin!(self.shared.added.notified());
            // Registered before looking, so that what is added after the look wakes.
            added.as_mut().enable();
            match self.try_get() {
                NextKey::Key(key) => return Some(key),
                NextKey::ShutDown => return None,
                NextKey::Empty => added.await,
            }
        }
    }

    /// The caller looked at `key`. If it was added meanwhile, it goes to the end of the queue.
    pub fn done(&self, key: &K) {
        let mut state = self.lock();
        let asked = state.processing.remove(key);
        if let (Some(counts), Some(asked)) = (&self.shared.counts, asked) {
            counts.worked().observe(counts.since(asked.at));
        }
        if state.dirty.contains_key(key) {
            state.queue.push_back(key.clone());
            drop(state);
            self.shared.added.notify_one();
        }
        self.shared.finished.notify_waiters();
    }

    /// The step that put `key` into the queue, for the worker that has it.
    pub fn cause_of(&self, key: &K) -> Option<StepId> {
        self.lock().processing.get(key).and_then(|asked| asked.step.cause())
    }

    /// How often `key` was added while it waited already, for the worker that has it.
    pub fn coalesced(&self, key: &K) -> u32 {
        self.lock().processing.get(key).map_or(0, |asked| asked.again)
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

    /// Like [`Queue::shutdown`], and waits until every worker is done and nothing is left
    /// (`ShutDownWithDrain`).
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

    pub(super) fn try_get(&self) -> NextKey<K> {
        let mut state = self.lock();
        let Some(key) = state.queue.pop_front() else {
            return if state.is_shut_down { NextKey::ShutDown } else { NextKey::Empty };
        };
        debug_assert!(state.dirty.contains_key(&key), "a key that waits has to be looked at");
        let mut asked = state.dirty.remove(&key).unwrap_or_default();
        if let Some(counts) = &self.shared.counts {
            counts.waited().observe(counts.since(asked.at));
            asked.at = counts.clock.elapsed();
        }
        let other = state.processing.insert(key.clone(), asked);
        debug_assert!(other.is_none(), "one worker has a key");
        NextKey::Key(key)
    }

    /// What says how it is, for as long as somebody has it.
    pub fn state(&self) -> Weak<dyn QueueState> {
        let shared: Arc<dyn QueueState> = self.shared.clone();
        Arc::downgrade(&shared)
    }

    /// A key is to come again because it failed.
    pub(super) fn note_retry(&self) {
        self.shared.counts.iter().for_each(|counts| counts.retried());
    }

    pub(super) fn added(&self) -> &Notify {
        &self.shared.added
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.shared.flow
    }

    /// Like [`Queue::add_caused`], of a key that waited for its time before.
    pub(super) fn add_held_back(&self, key: K, cause: Option<StepId>, held: HeldBack) {
        let mut state = self.lock();
        if state.is_shut_down {
            return;
        }
        if let Some(asked) = state.dirty.get_mut(&key) {
            asked.again = asked.again.saturating_add(1);
            return;
        }
        let step = self.shared.flow.record_with(cause, || Step::Enqueued {
            queue: self.shared.name.clone(),
            key: key.to_string().into(),
            retries: held.retries,
            delay_milliseconds: u64::try_from(held.delay.as_millis()).unwrap_or(u64::MAX),
        });
        let mut at = Duration::ZERO;
        if let Some(counts) = &self.shared.counts {
            counts.added();
            at = counts.clock.elapsed();
        }
        state.dirty.insert(key.clone(), AskedToLook { step, again: 0, at });
        if state.processing.contains_key(&key) {
            return;
        }
        state.queue.push_back(key);
        drop(state);
        self.shared.added.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, WorkQueueState<K>> {
        self.shared.state.lock()
    }
}

impl<K: QueueKey> QueueState for WorkQueueShared<K> {
    fn look(&self) -> QueueLook {
        let state = self.state.lock();
        let worked = |asked: &AskedToLook| self.counts.as_ref().map(|counts| counts.since(asked.at));
        let worked = || state.processing.values().filter_map(worked);
        QueueLook {
            depth: state.queue.len(),
            unfinished: worked().sum(),
            longest: worked().max().unwrap_or_default(),
        }
    }
}

impl<K> WorkQueueState<K> {
    fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.dirty.is_empty() && self.processing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use chrono::DateTime;

    use super::*;
    use clock::Clock;

    fn queue() -> Queue<String> {
        Queue::new("test", Flow::off())
    }

    fn next(queue: &Queue<String>) -> Option<String> {
        match queue.try_get() {
            NextKey::Key(key) => Some(key),
            NextKey::Empty | NextKey::ShutDown => None,
        }
    }

    #[test]
    fn a_key_waits_once_and_while_a_worker_has_it_for_later() {
        let queue = queue();
        ["a", "b", "a", "c"].into_iter().for_each(|key| queue.add(key.into()));
        assert_eq!((queue.len(), next(&queue).as_deref()), (3, Some("a")));
        queue.add("a".into());
        queue.add("a".into());
        assert_eq!(queue.len(), 2, "a worker has it");
        queue.done(&"a".into());
        let rest: Vec<String> = std::iter::from_fn(|| next(&queue)).collect();
        assert_eq!(rest, ["b", "c", "a"]);
        queue.done(&"a".into());
        queue.done(&"never had".into());
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn after_a_shutdown_workers_get_what_is_left_and_then_nothing() {
        let queue = queue();
        queue.add("a".into());
        queue.shutdown();
        queue.add("b".into());
        assert_eq!(queue.get().await.as_deref(), Some("a"));
        assert_eq!(queue.get().await, None);
        let draining = tokio::spawn({
            let queue = queue.clone();
            async move { queue.shutdown_with_drain().await }
        });
        tokio::task::yield_now().await;
        assert!(!draining.is_finished(), "a worker still has a");
        queue.done(&"a".into());
        draining.await.unwrap();
    }

    #[test]
    fn the_first_cause_stands_until_the_key_is_taken() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        let queue: Queue<String> = Queue::new("test", flow.clone());
        let cause = flow.record(None, Step::VALIDATED);
        queue.add_caused("a".into(), cause);
        queue.add("a".into());
        let key = next(&queue).unwrap();
        assert_eq!(queue.cause_of(&key), Some(StepId(cause.0 + 1)));
        assert_eq!(queue.coalesced(&key), 1);
        queue.add("a".into());
        assert_eq!(queue.cause_of(&key), Some(StepId(cause.0 + 1)), "not that of its next round");
        queue.done(&key);
        assert_eq!(queue.cause_of(&key), None);
    }

    /// What a hammered queue is checked against.
    #[derive(Default)]
    struct Account {
        /// How often each key was asked for, counted before it was added.
        asked: HashMap<String, u64>,
        /// That count when a worker last began to look.
        seen: HashMap<String, u64>,
        held: HashSet<String>,
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn hammered_no_two_workers_have_a_key_and_nothing_is_lost() {
        let (queue, account) = (queue(), Arc::new(Mutex::new(Account::default())));
        let worker = |seed: u64| {
            let (queue, account) = (queue.clone(), account.clone());
            async move {
                let mut random = fastrand::Rng::with_seed(seed);
                while let Some(key) = queue.get().await {
                    {
                        let mut account = account.lock();
                        assert!(account.held.insert(key.clone()), "two workers have {key}");
                        let asked = account.asked[&key];
                        account.seen.insert(key.clone(), asked);
                    }
                    for _ in 0..random.usize(..4) {
                        tokio::task::yield_now().await;
                    }
                    account.lock().held.remove(&key);
                    queue.done(&key);
                }
            }
        };
        let producer = |seed: u64| {
            let (queue, account) = (queue.clone(), account.clone());
            async move {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..3_000 {
                    let key = random.usize(..40).to_string();
                    *account.lock().asked.entry(key.clone()).or_default() += 1;
                    queue.add(key);
                    if random.usize(..8) == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            }
        };
        let workers: Vec<_> = (0..8).map(|seed| tokio::spawn(worker(seed))).collect();
        let producers: Vec<_> = (10..18).map(|seed| tokio::spawn(producer(seed))).collect();
        for producer in producers {
            producer.await.unwrap();
        }
        queue.shutdown_with_drain().await;
        for worker in workers {
            worker.await.unwrap();
        }
        let account = account.lock();
        assert_eq!(account.seen, account.asked);
        assert!(account.held.is_empty());
    }
}
