//! How often pods that fail on a node are replaced (`flowcontrol.Backoff`): a kubelet that refuses each of
//! them must not be fed without end.

use std::collections::HashMap;
use std::time::Duration;

use clock::Clock;
use sync::{Mutex, MutexGuard};

const INITIAL: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// Above so many entries those that have expired are dropped.
const REMEMBERED: usize = 1024;

/// Delays by set, generation and node. Bound: entries expire after twice the longest delay, and are dropped
/// above [`REMEMBERED`]; those of a set go with it.
pub(super) struct FailedPodsBackoff {
    clock: Clock,
    entries: Mutex<HashMap<FailedPodKey, FailedPod>>,
}

/// The uid of the set, the generation that it observed, the node.
type FailedPodKey = (String, i64, String);

struct FailedPod {
    delay: Duration,
    since: Duration,
}

impl FailedPodsBackoff {
    /// Of nothing.
    pub(super) fn new(clock: &Clock) -> FailedPodsBackoff {
        FailedPodsBackoff { clock: clock.clone(), entries: Mutex::default() }
    }

    /// A pod has failed on a node. How long to wait before it may be replaced; none: at once, and the next
    /// one will wait twice as long.
    pub(super) fn next(&self, uid: &str, observed_generation: i64, node: &str) -> Option<Duration> {
        let now = self.clock.elapsed();
        let is_expired = |entry: &FailedPod| now.saturating_sub(entry.since) > LONGEST * 2;
        let mut entries = self.entries();
        if entries.len() > REMEMBERED {
            entries.retain(|_, entry| !is_expired(entry));
        }
        let key = (uid.to_owned(), observed_generation, node.to_owned());
        let current = entries.get(&key).filter(|entry| !is_expired(entry));
        let delay = match current {
            Some(entry) if now.saturating_sub(entry.since) < entry.delay => return Some(entry.delay),
            Some(entry) => (entry.delay * 2).min(LONGEST),
            None => INITIAL,
        };
        entries.insert(key, FailedPod { delay, since: now });
        None
    }

    /// The set is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.entries().retain(|(of, ..), _| of != uid);
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<FailedPodKey, FailedPod>> {
        self.entries.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    #[test]
    fn delays_double_for_each_node_and_are_forgotten() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let backoff = FailedPodsBackoff::new(&clock);
        assert_eq!(backoff.next("a", 1, "n"), None);
        assert_eq!(backoff.next("a", 1, "n"), Some(INITIAL));
        assert_eq!(backoff.next("a", 1, "other"), None);
        assert_eq!(backoff.next("a", 2, "n"), None);
        clock.advance(INITIAL);
        assert_eq!(backoff.next("a", 1, "n"), None);
        assert_eq!(backoff.next("a", 1, "n"), Some(INITIAL * 2));
        clock.advance(LONGEST * 3);
        assert_eq!(backoff.next("a", 1, "n"), None);
        assert_eq!(backoff.next("a", 1, "n"), Some(INITIAL));
        backoff.forget("a");
        assert_eq!(backoff.next("a", 1, "n"), None);
    }
}
