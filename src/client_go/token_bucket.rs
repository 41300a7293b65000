//! A token bucket: so many at once, then so many a second (`golang.org/x/time/rate` and client-go's
//! `flowcontrol`).

use std::time::Duration;

/// Tokens of one consumer. Times are those of a clock that never goes back
/// ([`clock::Clock::elapsed`]).
#[derive(Clone, Debug)]
pub struct TokenBucket {
    per_second: f64,
    burst: f64,
    /// May be negative: tokens that were promised for later.
    tokens: f64,
    last: Duration,
}

impl TokenBucket {
    /// A full bucket of `burst` tokens, refilled at `per_second`.
    pub fn new(per_second: f64, burst: u32, now: Duration) -> TokenBucket {
        let burst = f64::from(burst);
        TokenBucket { per_second, burst, tokens: burst, last: now }
    }

    /// Takes a token if there is one (`TryAccept`).
    pub fn try_accept(&mut self, now: Duration) -> bool {
        self.refill(now);
        let accepted = self.tokens >= 1.0;
        if accepted {
            self.tokens -= 1.0;
        }
        accepted
    }

    /// Takes a token in any case; returns how long to wait until it is there (`Reserve().Delay()`).
    pub fn reserve(&mut self, now: Duration) -> Duration {
        self.refill(now);
        self.tokens -= 1.0;
        Duration::from_secs_f64((-self.tokens).max(0.0) / self.per_second)
    }

    fn refill(&mut self, now: Duration) {
        let gained = now.saturating_sub(self.last).as_secs_f64() * self.per_second;
        self.tokens = (self.tokens + gained).min(self.burst);
        self.last = self.last.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_then_time_pays() {
        let mut bucket = TokenBucket::new(10.0, 100, Duration::ZERO);
        assert!((0..100).all(|_| bucket.reserve(Duration::ZERO).is_zero()));
        assert_eq!(bucket.reserve(Duration::ZERO), Duration::from_millis(100));
        assert_eq!(bucket.reserve(Duration::ZERO), Duration::from_millis(200));
        assert!(!bucket.try_accept(Duration::from_millis(200)));
        assert!(bucket.try_accept(Duration::from_millis(300)));
    }
}
