//! `WorkQueue`: what a controller uses (upstream's `RateLimitingInterface`).

use std::ops::Deref;
use std::sync::Arc;

use super::QueueKey;
use super::counts::WorkQueueCounts;
use super::delaying_queue::DelayingQueue;
use super::queue::{HeldBack, Queue};
use super::rate_limiters::{RateLimiter, default_controller_rate_limiter};
use apimachinery::object::Object;
use clock::Clock;
use flow::Flow;

/// A [`DelayingQueue`] that knows how long a key that failed has to wait. Cloning shares it.
///
/// A worker: `get`; look; on success `forget`, on failure `add_rate_limited`; in any case `done`.
#[derive(Clone)]
pub struct WorkQueue<K> {
    queue: DelayingQueue<K>,
    limiter: Arc<dyn RateLimiter<K>>,
    /// Whose informers fill it: how the cause of a key is found.
    component: Arc<str>,
}

impl<K: QueueKey> WorkQueue<K> {
    /// With the default rate limiter of controllers. `component` is the one whose informers fill the queue.
    pub fn new(name: &str, component: &str, clock: Clock, flow: Flow) -> WorkQueue<K> {
        let limiter = default_controller_rate_limiter(clock.clone());
        WorkQueue::with_rate_limiter(name, component, clock, flow, limiter)
    }

    /// With the default rate limiter; what it does is counted.
    pub fn counted(
        name: &str,
        component: &str,
        clock: Clock,
        flow: Flow,
        counts: Arc<WorkQueueCounts>,
    ) -> WorkQueue<K> {
        let limiter = Arc::new(default_controller_rate_limiter(clock.clone()));
        let component = flow.name(component);
        let queue = DelayingQueue::new(Queue::counted(name, flow, Some(counts)), clock);
        WorkQueue { queue, limiter, component }
    }

    /// With another rate limiter.
    pub fn with_rate_limiter(
        name: &str,
        component: &str,
        clock: Clock,
        flow: Flow,
        limiter: impl RateLimiter<K> + 'static,
    ) -> WorkQueue<K> {
        let component = flow.name(component);
        let queue = DelayingQueue::new(Queue::new(name, flow), clock);
        WorkQueue { queue, limiter: Arc::new(limiter), component }
    }

    /// Asks for `key` to be looked at, because of what an informer has just told about `object`.
    pub fn add_because(&self, key: K, object: &Object) {
        let cause = self.queue.flow().informed(&self.component, object.metadata.resource_version);
        self.queue.add_caused(key, cause.unwrap_or_default());
    }

    /// The key failed: asks for it to be looked at when its rate limiter allows. The cause of its failed
    /// round is its cause again.
    pub fn add_rate_limited(&self, key: K) {
        self.queue.note_retry();
        let cause = self.queue.cause_of(&key);
        let delay = self.limiter.when(&key);
        let retries = u32::try_from(self.num_requeues(&key)).unwrap_or(u32::MAX);
        self.queue.hold_back(key, cause, HeldBack { retries, delay });
    }

    /// The key is done with, by success or for good: its failures are forgotten. It says nothing about the
    /// queue: [`Queue::done`] has to be said all the same.
    pub fn forget(&self, key: &K) {
        self.limiter.forget(key);
    }

    /// How often the key failed.
    pub fn num_requeues(&self, key: &K) -> usize {
        self.limiter.num_requeues(key)
    }
}

impl<K> Deref for WorkQueue<K> {
    type Target = DelayingQueue<K>;

    fn deref(&self) -> &DelayingQueue<K> {
        &self.queue
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;
    use serde_json::json;

    use super::*;
    use flow::{Step, StepId};

    #[tokio::test]
    async fn a_key_that_failed_comes_back_later_with_its_cause() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let flow = Flow::new(clock.clone());
        let queue: WorkQueue<String> = WorkQueue::new("test", "tester", clock.clone(), flow.clone());
        let (component, resource, key) = (flow.name("tester"), "pods".into(), "a".into());
        let informed = flow.record(None, Step::informed(component, resource, key, 7));
        let tree = json!({ "metadata": { "name": "a", "resourceVersion": "7" } });
        queue.add_because("a".into(), &Object::from_value(&tree, vec![]).unwrap());
        let key = queue.get().await.unwrap();
        let enqueued = StepId(informed.0 + 1);
        assert_eq!(queue.cause_of(&key), Some(enqueued));
        queue.add_rate_limited(key.clone());
        queue.done(&key);
        assert_eq!((queue.num_requeues(&key), queue.waiting_len()), (1, 1));
        clock.advance(Duration::from_millis(5));
        let key = queue.get().await.unwrap();
        assert_eq!(queue.cause_of(&key), Some(StepId(enqueued.0 + 1)));
        let again = flow.since(StepId(enqueued.0 + 1), 1).steps.remove(0).step;
        let wanted = (1, 5);
        let Step::Enqueued { retries, delay_milliseconds, .. } = again else { panic!("{again:?}") };
        assert_eq!((retries, delay_milliseconds), wanted);
        queue.forget(&key);
        queue.done(&key);
        assert_eq!(queue.num_requeues(&key), 0);
    }
}
