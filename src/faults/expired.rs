//! `ExpiredWatches`: whose watches were told that they are too old, so that beginning again at the same
//! revision is no way out: it stays too old until they list, as behind a compaction of etcd.

use std::collections::BTreeMap;
use std::sync::Arc;

use sync::Mutex;

/// Of so many users and resources together it is remembered. At the bound of a further one it is not: its
/// watch may begin again where it was.
const MAX_EXPIRED: usize = 1024;

/// Who watches what: user, group, resource.
pub(super) type WatcherKey = (Arc<str>, String, String);

/// What one fault has told to be too old.
#[derive(Default)]
pub(super) struct ExpiredWatches(Mutex<BTreeMap<WatcherKey, u64>>);

impl ExpiredWatches {
    /// A watch that has come to this revision was told so.
    pub(super) fn add(&self, watcher: &WatcherKey, revision: u64) {
        let mut expired = self.0.lock();
        if let Some(known) = expired.get_mut(watcher) {
            *known = revision.max(*known);
        } else if expired.len() < MAX_EXPIRED {
            expired.insert(watcher.clone(), revision);
        }
    }

    /// Whether a watch begins no later than another of the same user and resource was told so.
    pub(super) fn contains(&self, watcher: &WatcherKey, from: Option<u64>) -> bool {
        let Some(from) = from.filter(|from| *from > 0) else { return false };
        self.0.lock().get(watcher).is_some_and(|revision| from <= *revision)
    }

    /// Who lists knows the newest state, and may watch from there.
    pub(super) fn lists(&self, watcher: &WatcherKey) {
        let mut expired = self.0.lock();
        if !expired.is_empty() {
            expired.remove(watcher);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watcher(user: &str, resource: &str) -> WatcherKey {
        (user.into(), String::new(), resource.into())
    }

    #[test]
    fn what_is_too_old_stays_so_until_the_same_user_lists_it() {
        let expired = ExpiredWatches::default();
        expired.add(&watcher("a", "pods"), 7);
        let is_expired =
            |user: &str, resource: &str, from: u64| expired.contains(&watcher(user, resource), Some(from));
        assert!(is_expired("a", "pods", 7) && is_expired("a", "pods", 3));
        assert!(!is_expired("a", "pods", 8) && !is_expired("a", "pods", 0));
        assert!(!is_expired("a", "nodes", 3) && !is_expired("b", "pods", 3), "of others nothing");
        expired.lists(&watcher("b", "pods"));
        assert!(is_expired("a", "pods", 7));
        expired.lists(&watcher("a", "pods"));
        assert!(!is_expired("a", "pods", 7), "a list from a cache may be no newer");
    }

    #[test]
    fn at_the_bound_no_more_are_remembered() {
        let expired = ExpiredWatches::default();
        let numbered = |number: usize| watcher(&format!("u{number}"), "pods");
        (0..=MAX_EXPIRED).for_each(|number| expired.add(&numbered(number), 1));
        assert!(expired.contains(&numbered(MAX_EXPIRED - 1), Some(1)));
        assert!(!expired.contains(&numbered(MAX_EXPIRED), Some(1)));
    }
}
