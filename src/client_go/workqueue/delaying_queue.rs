//! `DelayingQueue`: a queue that can be asked for a key to be looked at later (upstream's
//! `DelayingInterface`).

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::QueueKey;
use super::queue::{HeldBack, Next, Queue};
use clock::Clock;
use flow::StepId;
use sync::{Mutex, MutexGuard};

/// A [`Queue`], and keys that go into it when their time has come. Cloning shares it.
///
/// Upstream a task of its own moves keys from the one to the other. Here the workers that wait do it, which
/// leaves nothing to start or stop: a key whose time has come while no worker waits could not be handed out
/// anyway.
#[derive(Clone)]
pub struct DelayingQueue<K> {
    queue: Queue<K>,
    shared: Arc<DelayingQueueShared<K>>,
}

struct DelayingQueueShared<K> {
    clock: Clock,
    waiting: Mutex<DelayedKeys<K>>,
}

/// Bound: a key waits once, at the earliest of the times that were asked for.
/// Invariant: a key is in `by_key` with a time if and only if it is in `by_time` under that time.
struct DelayedKeys<K> {
    by_key: HashMap<K, (Duration, u64)>,
    /// By time, then by order of asking, so that equal times come out in that order.
    by_time: BTreeMap<(Duration, u64), Delayed<K>>,
    next_number: u64,
}

/// A key that waits for its time.
struct Delayed<K> {
    key: K,
    cause: Option<StepId>,
    held: HeldBack,
}

impl<K: QueueKey> DelayingQueue<K> {
    /// Delays by `clock`.
    pub fn new(queue: Queue<K>, clock: Clock) -> DelayingQueue<K> {
        let waiting = DelayedKeys { by_key: HashMap::new(), by_time: BTreeMap::new(), next_number: 0 };
        DelayingQueue { queue, shared: Arc::new(DelayingQueueShared { clock, waiting: Mutex::new(waiting) }) }
    }

    /// Asks for `key` to be looked at after `delay`. If it waits already, the earlier time stands.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_after_caused(key, delay, None);
    }

    /// Like [`DelayingQueue::add_after`], because of `cause`.
    pub fn add_after_caused(&self, key: K, delay: Duration, cause: Option<StepId>) {
        self.hold_back(key, cause, HeldBack { retries: 0, delay });
    }

    /// Like [`DelayingQueue::add_after_caused`], of a key that failed before.
    pub(super) fn hold_back(&self, key: K, cause: Option<StepId>, held: HeldBack) {
        if self.queue.is_shutting_down() {
            return;
        }
        if held.delay.is_zero() {
            return self.queue.add_held_back(key, cause, held);
        }
        let ready_at = self.shared.clock.elapsed() + held.delay;
        self.lock().put(Delayed { key, cause, held }, ready_at);
        // A worker that sleeps until a later time has to look again.
        self.queue.added().notify_one();
    }

    /// Waits for the next key, as [`Queue::get`] does, and for the time of those that wait.
    pub async fn get(&self) -> Option<K> {
        loop {
            let mut added = pin!(self.queue.added().notified());
            added.as_mut().enable();
            let next_at = self.move_ready();
            match self.queue.try_get() {
                Next::Key(key) => return Some(key),
                Next::ShutDown => return None,
                Next::Empty => {}
            }
            match next_at {
                None => added.await,
                Some(at) => tokio::select! {
                    biased;
                    () = added => {}
                    () = self.shared.clock.sleep_until(at) => {}
                },
            }
        }
    }

    /// How many keys wait for their time.
    pub fn waiting_len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// The clock that it delays by.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Adds the keys whose time has come; returns the time of the next one.
    fn move_ready(&self) -> Option<Duration> {
        let now = self.shared.clock.elapsed();
        loop {
            let mut waiting = self.lock();
            let entry = waiting.by_time.first_entry()?;
            if entry.key().0 > now {
                return Some(entry.key().0);
            }
            let Delayed { key, cause, held } = entry.remove();
            waiting.by_key.remove(&key);
            drop(waiting);
            self.queue.add_held_back(key, cause, held);
        }
    }

    fn lock(&self) -> MutexGuard<'_, DelayedKeys<K>> {
        self.shared.waiting.lock()
    }
}

impl<K> Deref for DelayingQueue<K> {
    type Target = Queue<K>;

    fn deref(&self) -> &Queue<K> {
        &self.queue
    }
}

impl<K: QueueKey> DelayedKeys<K> {
    fn put(&mut self, delayed: Delayed<K>, ready_at: Duration) {
        if let Some(place) = self.by_key.get(&delayed.key).copied() {
            if place.0 <= ready_at {
                return;
            }
            self.by_time.remove(&place);
        }
        let place = (ready_at, self.next_number);
        self.next_number += 1;
        self.by_key.insert(delayed.key.clone(), place);
        self.by_time.insert(place, delayed);
        debug_assert_eq!(self.by_key.len(), self.by_time.len(), "a key waits once");
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use flow::Flow;

    const SECOND: Duration = Duration::from_secs(1);

    fn queue() -> (DelayingQueue<String>, Clock) {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        (DelayingQueue::new(Queue::new("test", Flow::off()), clock.clone()), clock)
    }

    #[tokio::test]
    async fn keys_come_when_their_time_has_come_the_earlier_of_two_standing() {
        let (queue, clock) = queue();
        queue.add_after("b".into(), 2 * SECOND);
        queue.add_after("a".into(), 9 * SECOND);
        queue.add_after("a".into(), SECOND);
        queue.add_after("a".into(), 5 * SECOND);
        queue.add_after("now".into(), Duration::ZERO);
        assert_eq!(queue.get().await.as_deref(), Some("now"));
        assert_eq!((queue.waiting_len(), queue.len()), (2, 0));
        let worker = tokio::spawn({
            let (queue, clock) = (queue.clone(), clock.clone());
            async move {
                let first = (queue.get().await.unwrap(), clock.elapsed());
                [first, (queue.get().await.unwrap(), clock.elapsed())]
            }
        });
        tokio::task::yield_now().await;
        while !worker.is_finished() {
            clock.advance(clock.next_wake().unwrap_or(SECOND));
            tokio::task::yield_now().await;
        }
        assert_eq!(worker.await.unwrap(), [("a".to_owned(), SECOND), ("b".to_owned(), 2 * SECOND)]);
        assert_eq!(queue.waiting_len(), 0);
    }

    #[tokio::test]
    async fn a_worker_that_sleeps_hears_of_an_earlier_time_and_of_a_shutdown() {
        let (queue, clock) = queue();
        queue.add_after("late".into(), 60 * SECOND);
        let worker = tokio::spawn({
            let queue = queue.clone();
            async move { (queue.get().await, queue.get().await) }
        });
        tokio::task::yield_now().await;
        assert_eq!(clock.next_wake(), Some(60 * SECOND));
        queue.add_after("early".into(), SECOND);
        tokio::task::yield_now().await;
        assert_eq!(clock.next_wake(), Some(SECOND));
        clock.advance(SECOND);
        tokio::task::yield_now().await;
        queue.shutdown();
        queue.add_after("too late".into(), SECOND);
        assert_eq!(worker.await.unwrap(), (Some("early".to_owned()), None));
    }
}
