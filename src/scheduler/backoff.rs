//! How long pods are let alone that could not be placed (`backend/queue.backoffQueue`).

use std::time::Duration;

/// How long a pod is let alone that was tried in vain.
#[derive(Clone, Copy, Debug)]
pub struct PodBackoff {
    /// After the first failure; it doubles with each.
    pub initial: Duration,
    /// At most.
    pub most: Duration,
}

impl Default for PodBackoff {
    fn default() -> PodBackoff {
        PodBackoff { initial: Duration::from_secs(1), most: Duration::from_secs(10) }
    }
}

impl PodBackoff {
    /// One second after the first failure, two after the second, ... ten at most; none without one.
    pub(super) fn after(self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
        self.initial.saturating_mul(1 << doublings.min(16)).min(self.most)
    }
}
