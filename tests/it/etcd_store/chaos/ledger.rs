//! What writers were told, and what must hence be there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sync::Mutex;

use super::watchers::SeenState;
use super::*;

/// Cloning shares it.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Told>>);

#[derive(Default)]
pub(super) struct Told {
    /// Somebody was told that they are there, and has not asked for more.
    pub(super) there: BTreeSet<String>,
    /// Somebody was told that they are gone.
    pub(super) gone: BTreeSet<String>,
    /// Of each counter the last value that was acknowledged, and the last that was tried.
    pub(super) counters: BTreeMap<String, (u64, u64)>,
    acknowledged: u64,
}

impl Ledger {
    /// Notes what was acknowledged.
    pub(super) fn acknowledge(&self, note: impl FnOnce(&mut Told)) {
        let mut told = self.0.lock();
        told.acknowledged += 1;
        note(&mut told);
    }

    /// Notes what is asked for, whatever comes of it.
    pub(super) fn try_to<T>(&self, note: impl FnOnce(&mut Told) -> T) -> T {
        note(&mut self.0.lock())
    }

    /// Waits until so many more writes were acknowledged.
    pub(super) async fn wait_for_more(&self, writes: u64) {
        let wanted = self.0.lock().acknowledged + writes;
        let reached = async {
            while self.0.lock().acknowledged < wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, reached).await;
        assert!(in_time.is_ok(), "nobody can write any more");
    }

    /// Whether all of it is so.
    pub(super) fn check(&self, listed: &SeenState) {
        let told = self.0.lock();
        let lost: Vec<&String> = told.there.iter().filter(|name| !listed.contains_key(*name)).collect();
        assert!(lost.is_empty(), "was acknowledged, and is not there: {lost:?}");
        let back: Vec<&String> = told.gone.iter().filter(|name| listed.contains_key(*name)).collect();
        assert!(back.is_empty(), "was deleted, and is there: {back:?}");
        for (counter, (acknowledged, tried)) in &told.counters {
            let value = listed.get(counter).and_then(|seen| seen.count);
            let is_right = value.is_some_and(|value| (*acknowledged..=*tried).contains(&value));
            assert!(is_right, "{counter}: {acknowledged}..={tried}, {value:?}");
        }
        assert!(!told.there.is_empty() && !told.gone.is_empty() && !told.counters.is_empty());
    }
}
