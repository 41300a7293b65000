//! `AskedCount`: how often something is asked that only one task asks.

use std::sync::atomic::{AtomicU64, Ordering};

/// One in so many is timed (`pluginMetricsSamplePercent` is 10); the first is.
const ONE_IN: u64 = 10;

/// Counts what only one task does: without the locked addition that thousands of nodes would make felt.
#[derive(Debug, Default)]
pub struct AskedCount(AtomicU64);

impl AskedCount {
    /// Counts one.
    pub fn one_more(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether it is the turn of one in ten, and counts one.
    pub(super) fn is_its_turn(&self) -> bool {
        let before = self.count();
        self.one_more();
        before.is_multiple_of(ONE_IN)
    }
}
