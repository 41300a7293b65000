//! When a refused request is to come again (`dropped_requests_tracker.go`): later, the more were refused.

use std::collections::VecDeque;
use std::time::Duration;

const MAX_RETRY_AFTER_SECONDS: u64 = 32;

/// How many requests of a priority level were refused lately.
#[derive(Debug)]
pub(super) struct DroppedRequests {
    /// Refused requests of earlier seconds. Bound: [`MAX_RETRY_AFTER_SECONDS`]; older ones are forgotten.
    history: VecDeque<(u64, u64)>,
    second: u64,
    count: u64,
    retry_after_seconds: u64,
    raised_at: Option<u64>,
}

impl Default for DroppedRequests {
    fn default() -> Self {
        DroppedRequests {
            history: VecDeque::new(),
            second: 0,
            count: 0,
            retry_after_seconds: 1,
            raised_at: None,
        }
    }
}

impl DroppedRequests {
    /// One more; in so many seconds it is to come again.
    pub(super) fn record(&mut self, now: Duration) -> u64 {
        let second = now.as_secs();
        if second != self.second {
            self.remember();
            (self.second, self.count) = (second, 0);
            self.reconsider();
        }
        self.count += 1;
        self.retry_after_seconds
    }

    fn remember(&mut self) {
        if self.count > 0 {
            self.history.push_back((self.second, self.count));
        }
        let kept = (2 * self.retry_after_seconds).min(MAX_RETRY_AFTER_SECONDS);
        let is_old = |(second, _): &(u64, u64)| self.second - second > kept;
        let old = self.history.iter().take_while(|one| is_old(one)).count();
        self.history.drain(..old);
    }

    /// Twice as late when many were refused in that time, a second sooner when few were.
    fn reconsider(&mut self) {
        let wait = self.retry_after_seconds;
        let is_recent = |(second, _): &&(u64, u64)| self.second - second <= wait;
        let dropped: u64 = self.history.iter().filter(is_recent).map(|(_, count)| count).sum();
        if self.raised_at.is_none_or(|raised| self.second - raised >= wait) && dropped >= 3 * wait {
            self.retry_after_seconds = (2 * wait).min(MAX_RETRY_AFTER_SECONDS);
            self.raised_at = Some(self.second);
        } else if dropped < wait && wait > 1 {
            self.retry_after_seconds -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_too_often_waits_longer() {
        let mut dropped = DroppedRequests::default();
        // In each second so many are refused; the last is told to wait so long.
        let cases = [
            (1, 5, 1),
            (2, 6, 2),
            (3, 6, 2),
            (4, 6, 4),
            (5, 14, 4),
            (8, 1, 8),
            (9, 1, 8),
            (12, 1, 8),
            (17, 1, 7),
            (30, 1, 6),
            (40, 1, 5),
        ];
        for (second, count, expected) in cases {
            let told = (0..count).map(|_| dropped.record(Duration::from_secs(second))).last();
            assert_eq!(told, Some(expected), "at {second}");
        }
    }
}
