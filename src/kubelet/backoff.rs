//! Growing pauses between attempts (`k8s.io/client-go/util/flowcontrol.Backoff`, for one key).

use std::time::Duration;

use apimachinery::time::Time;

/// The first pause.
const INITIAL: Duration = Duration::from_secs(10);
/// The longest pause, unless it is said otherwise. After twice as long without a failure the pauses start
/// over.
pub const MAX: Duration = Duration::from_secs(300);

/// The pause of one container's restarts, or of one image's pulls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryPause {
    current: Duration,
    updated_at: Option<Time>,
}

impl RetryPause {
    /// Doubles the pause, up to `most`; `event_at` is when the attempt failed, `now` when that is seen.
    pub fn next(&mut self, event_at: Time, now: Time, most: Duration) {
        let fresh = self.updated_at.is_none_or(|updated| has_expired(event_at, updated, most));
        self.current = if fresh { INITIAL.min(most) } else { (self.current * 2).min(most) };
        self.updated_at = Some(now);
    }

    /// Until when to wait after the failure at `event_at`; nothing when it has not failed lately.
    pub fn until(&self, event_at: Time, most: Duration) -> Option<Time> {
        let updated = self.updated_at?;
        (!has_expired(event_at, updated, most)).then(|| event_at + self.current)
    }

    /// The pause in force.
    pub fn current(&self) -> Duration {
        self.current
    }
}

fn has_expired(event_at: Time, updated_at: Time, most: Duration) -> bool {
    (event_at - updated_at).to_std().is_ok_and(|quiet| quiet > most * 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn pauses_double_up_to_five_minutes_and_start_over() {
        let mut now = Time::UNIX_EPOCH;
        let mut backoff = RetryPause::default();
        assert_eq!(backoff.until(now, MAX), None);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            backoff.next(now, now, MAX);
            pauses.push(backoff.current().as_secs());
            now += TimeDelta::seconds(300);
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 300, 300]);
        now += TimeDelta::seconds(601);
        assert_eq!(backoff.until(now, MAX), None);
        backoff.next(now, now, MAX);
        assert_eq!(backoff.current(), INITIAL);
    }

    #[test]
    fn pauses_are_no_longer_than_is_said() {
        let (now, mut backoff) = (Time::UNIX_EPOCH, RetryPause::default());
        let mut pauses = |most: u64| {
            backoff.next(now, now, Duration::from_secs(most));
            backoff.current().as_secs()
        };
        assert_eq!([pauses(15), pauses(15), pauses(15)], [10, 15, 15]);
        let mut backoff = RetryPause::default();
        backoff.next(now, now, Duration::from_secs(2));
        assert_eq!(backoff.current().as_secs(), 2);
    }
}
