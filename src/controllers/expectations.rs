//! What a controller has asked for and not yet seen (`controller.ControllerExpectations`).
//!
//! A cache lags behind its owner's own writes. Until the creations and deletions of the last round have been
//! observed, another round would create or delete too much, so it waits; or for five minutes, should an event
//! have been lost.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use sync::{Mutex, MutexGuard};

/// Upstream's `ExpectationsTimeout`.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Expectations by the uid of the controlling object, so that a new object of an old name starts afresh.
/// Bound: an entry goes when it is fulfilled or its object is deleted, so there are at most as many as
/// objects.
#[derive(Clone)]
pub(crate) struct Expectations {
    clock: Clock,
    entries: Arc<Mutex<HashMap<String, Expected>>>,
}

#[derive(Default)]
struct Expected {
    creations: usize,
    /// Keys of the objects, so that a deletion seen twice (first as a timestamp, then as an event) counts
    /// once.
    deletions: BTreeSet<String>,
    since: Duration,
}

impl Expectations {
    /// Expecting nothing.
    pub(crate) fn new(clock: &Clock) -> Expectations {
        Expectations { clock: clock.clone(), entries: Arc::default() }
    }

    /// So many creations are about to be asked for.
    pub(crate) fn expect_creations(&self, uid: &str, count: usize) {
        self.expect(uid, count, []);
    }

    /// The deletions of these keys are about to be asked for.
    pub(crate) fn expect_deletions(&self, uid: &str, keys: impl IntoIterator<Item = String>) {
        self.expect(uid, 0, keys);
    }

    /// Both are about to be asked for (`SetExpectations`).
    pub(crate) fn expect(&self, uid: &str, creations: usize, deletions: impl IntoIterator<Item = String>) {
        let deletions: BTreeSet<String> = deletions.into_iter().collect();
        if creations == 0 && deletions.is_empty() {
            return self.forget(uid);
        }
        let expected = Expected { creations, deletions, since: self.clock.elapsed() };
        self.lock().insert(uid.to_owned(), expected);
    }

    /// One more creation is about to be asked for (`RaiseExpectations`).
    pub(crate) fn expect_another_creation(&self, uid: &str) {
        self.raise(uid, |expected| expected.creations += 1);
    }

    /// The deletion of one more key is about to be asked for (`RaiseExpectations`).
    pub(crate) fn expect_another_deletion(&self, uid: &str, key: &str) {
        self.raise(uid, |expected| expected.deletions.extend([key.to_owned()]));
    }

    /// A creation was seen, or failed. True when nothing more is expected because of it.
    pub(crate) fn creation_observed(&self, uid: &str) -> bool {
        self.observe(uid, |expected| {
            let counted = expected.creations > 0;
            expected.creations = expected.creations.saturating_sub(1);
            counted
        })
    }

    /// A deletion was seen, or failed. True when nothing more is expected because of it.
    pub(crate) fn deletion_observed(&self, uid: &str, key: &str) -> bool {
        self.observe(uid, |expected| expected.deletions.remove(key))
    }

    /// Whether a round may begin.
    pub(crate) fn satisfied(&self, uid: &str) -> bool {
        let now = self.clock.elapsed();
        self.lock().get(uid).is_none_or(|expected| now.saturating_sub(expected.since) > TIMEOUT)
    }

    /// The controlling object is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn raise(&self, uid: &str, change: impl FnOnce(&mut Expected)) {
        let mut entries = self.lock();
        let expected = entries.entry(uid.to_owned()).or_default();
        expected.since = self.clock.elapsed();
        change(expected);
    }

    fn observe(&self, uid: &str, change: impl FnOnce(&mut Expected) -> bool) -> bool {
        let mut entries = self.lock();
        let Some(expected) = entries.get_mut(uid) else { return false };
        let counted = change(expected);
        let fulfilled = expected.creations == 0 && expected.deletions.is_empty();
        if fulfilled {
            entries.remove(uid);
        }
        counted && fulfilled
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Expected>> {
        self.entries.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    #[test]
    fn a_round_waits_until_all_was_seen() {
        let expectations = Expectations::new(&Clock::stepped(DateTime::UNIX_EPOCH));
        assert!(expectations.satisfied("a"));
        expectations.expect_creations("a", 2);
        assert!(!expectations.creation_observed("a") && !expectations.satisfied("a"));
        assert!(expectations.creation_observed("a") && expectations.satisfied("a"));
        assert!(!expectations.creation_observed("a"));
    }

    #[test]
    fn a_deletion_counts_once() {
        let expectations = Expectations::new(&Clock::stepped(DateTime::UNIX_EPOCH));
        expectations.expect_deletions("a", ["x".into(), "y".into()]);
        expectations.deletion_observed("a", "x");
        expectations.deletion_observed("a", "x");
        assert!(!expectations.satisfied("a"));
        assert!(expectations.deletion_observed("a", "y") && expectations.satisfied("a"));
    }

    #[test]
    fn one_by_one_or_both_at_once() {
        let expectations = Expectations::new(&Clock::stepped(DateTime::UNIX_EPOCH));
        expectations.expect("a", 0, []);
        assert!(expectations.satisfied("a"));
        expectations.expect("a", 1, ["x".into()]);
        assert!(!expectations.creation_observed("a") && expectations.deletion_observed("a", "x"));
        expectations.expect_another_creation("a");
        expectations.expect_another_deletion("a", "y");
        expectations.expect_another_creation("a");
        expectations.creation_observed("a");
        expectations.deletion_observed("a", "y");
        assert!(!expectations.satisfied("a"));
        assert!(expectations.creation_observed("a") && expectations.satisfied("a"));
    }

    #[test]
    fn a_lost_event_is_waited_for_five_minutes() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let expectations = Expectations::new(&clock);
        expectations.expect_creations("a", 1);
        clock.advance(TIMEOUT);
        assert!(!expectations.satisfied("a"));
        clock.advance(Duration::from_secs(1));
        assert!(expectations.satisfied("a"));
    }
}
