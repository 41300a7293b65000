//! How long the disk takes, for whoever counts that. Nobody does unless they say so.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What took its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskStep {
    /// The log was made durable.
    Sync,
    /// A group of writes was written and made durable.
    Commit,
}

/// Is told of each step.
pub type DiskObserver = Arc<dyn Fn(DiskStep, Duration) + Send + Sync>;

/// Who is told, if anybody.
#[derive(Default)]
pub(super) struct DiskTimes(OnceLock<DiskObserver>);

impl DiskTimes {
    /// The first one stays.
    pub(super) fn observe(&self, observer: &DiskObserver) {
        self.0.get_or_init(|| observer.clone());
    }

    pub(super) fn tell(&self, step: DiskStep, taken: Duration) {
        if let Some(observer) = self.0.get() {
            observer(step, taken);
        }
    }
}

impl fmt::Debug for DiskTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiskTimes")
    }
}
