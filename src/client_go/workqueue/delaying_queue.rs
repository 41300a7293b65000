//! `DelayingQueue`: a queue that can be asked for a key to be looked at later (upstream's
//! `DelayingInterface`).

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::QueueKey;
use super::queue::{HeldBack, NextKey, Queue};
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
/// Invariant: a key is in `by_key` with a time if and only if it is in one of the others under that time.
struct DelayedKeys<K> {
    by_key: HashMap<K, (Duration, u64)>,
    /// By time, then by order of asking, so that equal times come out in that order.
    by_time: BTreeMap<(Duration, u64), Delayed<K>>,
    /// Those that are only looked at again, in that order, too.
    looks: BTreeMap<(Duration, u64), Delayed<K>>,
    next_number: u64,
}

/// The times of the first keys that wait.
#[derive(Clone, Copy)]
struct NextTimes {
    at: Option<Duration>,
    look: Option<Duration>,
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
        let waiting = Mutex::new(DelayedKeys::default());
        DelayingQueue { queue, shared: Arc::new(DelayingQueueShared { clock, waiting }) }
    }

    /// Asks for `key` to be looked at after `delay`. If it waits already, the earlier time stands.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_after_caused(key, delay, None);
    }

    /// Like [`DelayingQueue::add_after`], because of `cause`.
    pub fn add_after_caused(&self, key: K, delay: Duration, cause: Option<StepId>) {
        self.hold_back(key, cause, HeldBack { retries: 0, delay });
    }

    /// Like [`DelayingQueue::add_after`], where nothing new is found as long as nothing has changed
    /// ([`Clock::look_until`]).
    pub fn look_after(&self, key: K, delay: Duration) {
        if self.queue.is_shutting_down() {
            return;
        }
        let (cause, held) = (None, HeldBack { retries: 0, delay });
        self.lock().put(Delayed { key, cause, held }, self.shared.clock.elapsed() + delay, true);
        self.queue.added().notify_one();
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
        self.lock().put(Delayed { key, cause, held }, ready_at, false);
        // A worker that sleeps until a later time has to look again.
        self.queue.added().notify_one();
    }

    /// Waits for the next key, as [`Queue::get`] does, and for the time of those that wait.
    pub async fn get(&self) -> Option<K> {
        loop {
            let mut added = pin!(self.queue.added().notified());
            added.as_mut().enable();
            let next = self.move_ready();
            match self.queue.try_get() {
                NextKey::Key(key) => return Some(key),
                NextKey::ShutDown => return None,
                NextKey::Empty => {}
            }
            let clock = &self.shared.clock;
            tokio::select! {
                biased;
                () = added => {}
                () = clock.sleep_until(next.at.unwrap_or_default()), if next.at.is_some() => {}
                () = clock.look_until(next.look.unwrap_or_default()), if next.look.is_some() => {}
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

    /// Adds the keys whose time has come; returns the times of the next.
    fn move_ready(&self) -> NextTimes {
        let now = self.shared.clock.elapsed();
        loop {
            let mut waiting = self.lock();
            let Some(Delayed { key, cause, held }) = waiting.take_ready(now) else { return waiting.next() };
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

impl<K> Default for DelayedKeys<K> {
    fn default() -> DelayedKeys<K> {
        DelayedKeys {
            by_key: HashMap::new(),
            by_time: BTreeMap::new(),
            looks: BTreeMap::new(),
            next_number: 0,
        }
    }
}

impl<K: QueueKey> DelayedKeys<K> {
    fn put(&mut self, delayed: Delayed<K>, ready_at: Duration, is_look: bool) {
        let mut is_look = is_look;
        if let Some(place) = self.by_key.get(&delayed.key).copied() {
            let looks = self.looks.remove(&place);
            // Who is sure to come once comes at the earlier time.
            is_look &= looks.is_some();
            let known = looks.or_else(|| self.by_time.remove(&place));
            if let Some(known) = known.filter(|_| place.0 <= ready_at) {
                self.of(is_look).insert(place, known);
                return;
            }
        }
        let place = (ready_at, self.next_number);
        self.next_number += 1;
        self.by_key.insert(delayed.key.clone(), place);
        self.of(is_look).insert(place, delayed);
        debug_assert_eq!(self.by_key.len(), self.by_time.len() + self.looks.len(), "a key waits once");
    }

    fn of(&mut self, is_look: bool) -> &mut BTreeMap<(Duration, u64), Delayed<K>> {
        if is_look { &mut self.looks } else { &mut self.by_time }
    }

    /// The first whose time has come.
    fn take_ready(&mut self, now: Duration) -> Option<Delayed<K>> {
        let first = |keys: &BTreeMap<(Duration, u64), Delayed<K>>| keys.keys().next().copied();
        let look = first(&self.looks);
        let place = first(&self.by_time).into_iter().chain(look).min().filter(|place| place.0 <= now)?;
        let delayed = self.of(Some(place) == look).remove(&place)?;
        self.by_key.remove(&delayed.key);
        Some(delayed)
    }

    fn next(&self) -> NextTimes {
        let first = |keys: &BTreeMap<(Duration, u64), Delayed<K>>| keys.keys().next().map(|place| place.0);
        NextTimes { at: first(&self.by_time), look: first(&self.looks) }
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
    async fn what_is_only_looked_at_again_is_left_out_until_something_changes() {
        let (queue, clock) = queue();
        let worker = clock.spawn({
            let (queue, clock) = (queue.clone(), clock.clone());
            async move {
                let first = (queue.get().await.unwrap(), clock.elapsed());
                [first, (queue.get().await.unwrap(), clock.elapsed())]
            }
        });
        queue.look_after("a".into(), SECOND);
        queue.look_after("b".into(), SECOND);
        // Who is to come comes, though it is only looked at, too.
        queue.add_after("b".into(), 9 * SECOND);
        clock.work().idle().await;
        assert!(clock.step(60 * SECOND));
        clock.work().idle().await;
        assert_eq!(worker.await.unwrap(), [("a".to_owned(), SECOND), ("b".to_owned(), SECOND)]);
        queue.look_after("c".into(), SECOND);
        let later = clock.spawn({
            let (queue, clock) = (queue.clone(), clock.clone());
            async move { (queue.get().await.unwrap(), clock.elapsed()) }
        });
        clock.work().idle().await;
        assert!(!clock.step(60 * SECOND), "nothing is due");
        assert_eq!(later.await.unwrap(), ("c".to_owned(), 61 * SECOND));
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
