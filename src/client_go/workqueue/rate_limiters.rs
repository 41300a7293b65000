//! How long a key that failed has to wait (upstream's `default_rate_limiters.go`).

use std::collections::HashMap;
use std::time::Duration;

use super::QueueKey;
use crate::token_bucket::TokenBucket;
use clock::Clock;
use sync::{Mutex, MutexGuard};

/// Says how long a key has to wait.
pub trait RateLimiter<K>: Send + Sync {
    /// The key failed once more: how long it has to wait.
    fn when(&self, key: &K) -> Duration;
    /// The key is done with, by success or for good: its failures are forgotten.
    fn forget(&self, key: &K);
    /// How often the key failed.
    fn num_requeues(&self, key: &K) -> usize;
}

/// What most controllers use (`DefaultTypedControllerRateLimiter`): 5 ms to 1,000 s for a key, doubled with
/// each failure, and for all keys together 10 a second after the first 100; the longer of both.
pub fn default_controller_rate_limiter<K: QueueKey>(clock: Clock) -> MaxOfRateLimiter<K> {
    let each = ItemExponentialFailureRateLimiter::new(Duration::from_millis(5), Duration::from_secs(1000));
    let all = BucketRateLimiter::new(10.0, 100, clock);
    MaxOfRateLimiter { limiters: vec![Box::new(each), Box::new(all)] }
}

/// `base * 2^failures`, at most `longest`. Bound: it remembers what failed and was not forgotten, which a
/// controller does with each key sooner or later.
pub struct ItemExponentialFailureRateLimiter<K> {
    base: Duration,
    longest: Duration,
    failures: Mutex<HashMap<K, u32>>,
}

/// A token bucket for all keys together.
pub struct BucketRateLimiter {
    clock: Clock,
    bucket: Mutex<TokenBucket>,
}

/// The longest wait that any of several limiters asks for.
pub struct MaxOfRateLimiter<K> {
    /// All are asked, and all forget.
    pub limiters: Vec<Box<dyn RateLimiter<K>>>,
}

impl<K: QueueKey> ItemExponentialFailureRateLimiter<K> {
    /// From `base` to `longest`.
    pub fn new(base: Duration, longest: Duration) -> ItemExponentialFailureRateLimiter<K> {
        ItemExponentialFailureRateLimiter { base, longest, failures: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, u32>> {
        self.failures.lock()
    }
}

impl<K: QueueKey> RateLimiter<K> for ItemExponentialFailureRateLimiter<K> {
    fn when(&self, key: &K) -> Duration {
        let mut failures = self.lock();
        let count = failures.entry(key.clone()).or_insert(0);
        let factor = 1_u32.checked_shl(*count).unwrap_or(u32::MAX);
        *count = count.saturating_add(1);
        self.base.saturating_mul(factor).min(self.longest)
    }

    fn forget(&self, key: &K) {
        self.lock().remove(key);
    }

    fn num_requeues(&self, key: &K) -> usize {
        self.lock().get(key).map_or(0, |count| *count as usize)
    }
}

impl BucketRateLimiter {
    /// `per_second` after the first `burst`.
    pub fn new(per_second: f64, burst: u32, clock: Clock) -> BucketRateLimiter {
        let bucket = Mutex::new(TokenBucket::new(per_second, burst, clock.elapsed()));
        BucketRateLimiter { clock, bucket }
    }
}

impl<K> RateLimiter<K> for BucketRateLimiter {
    fn when(&self, _key: &K) -> Duration {
        let now = self.clock.elapsed();
        self.bucket.lock().reserve(now)
    }

    fn forget(&self, _key: &K) {}

    fn num_requeues(&self, _key: &K) -> usize {
        0
    }
}

impl<K> RateLimiter<K> for MaxOfRateLimiter<K> {
    fn when(&self, key: &K) -> Duration {
        self.limiters.iter().map(|limiter| limiter.when(key)).max().unwrap_or_default()
    }

    fn forget(&self, key: &K) {
        self.limiters.iter().for_each(|limiter| limiter.forget(key));
    }

    fn num_requeues(&self, key: &K) -> usize {
        self.limiters.iter().map(|limiter| limiter.num_requeues(key)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn each_failure_doubles_the_wait_until_it_is_forgotten() {
        let milliseconds = Duration::from_millis;
        let limiter = ItemExponentialFailureRateLimiter::new(milliseconds(5), Duration::from_secs(1000));
        let waits: Vec<Duration> = (0..4).map(|_| limiter.when(&"a")).collect();
        assert_eq!(waits, [5, 10, 20, 40].map(milliseconds));
        assert_eq!((limiter.num_requeues(&"a"), limiter.when(&"b")), (4, milliseconds(5)));
        (0..100).for_each(|_| assert!(limiter.when(&"a") <= Duration::from_secs(1000)));
        assert_eq!(limiter.when(&"a"), Duration::from_secs(1000));
        limiter.forget(&"a");
        assert_eq!((limiter.num_requeues(&"a"), limiter.when(&"a")), (0, milliseconds(5)));
    }

    #[test]
    fn a_controller_waits_for_the_slower_of_key_and_bucket() {
        let limiter = default_controller_rate_limiter::<usize>(Clock::stepped(DateTime::UNIX_EPOCH));
        assert!((0..100).all(|key| limiter.when(&key) == Duration::from_millis(5)));
        assert_eq!(limiter.when(&100), Duration::from_millis(100), "the burst is used up");
        assert_eq!(limiter.when(&101), Duration::from_millis(200));
    }
}
