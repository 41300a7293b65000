//! What the controller of Jobs remembers between syncs. All of it may be lost: then the caches are waited
//! for.

use std::sync::Arc;

use super::backoff::Backoffs;
use super::counts::JobCounts;
use super::finalizers::FinalizerExpectations;
use super::writes::Writes;
use crate::expectations::Expectations;
use clock::Clock;

/// By the uid of the Job. Cloning shares it.
#[derive(Clone)]
pub(super) struct JobMemory {
    /// The creations and deletions that the caches have yet to show.
    pub expectations: Expectations,
    /// The pods whose finalizer was removed although the cache still shows it.
    pub finalizers: FinalizerExpectations,
    /// The pods that failed one after the other.
    pub backoffs: Arc<Backoffs>,
    /// What was written and the cache does not show yet.
    pub writes: Arc<Writes>,
    /// What is counted of all Jobs.
    pub counts: Arc<JobCounts>,
}

impl JobMemory {
    /// Nothing yet.
    pub(super) fn new(clock: &Clock) -> JobMemory {
        JobMemory {
            expectations: Expectations::new(clock),
            finalizers: FinalizerExpectations::default(),
            backoffs: Arc::default(),
            writes: Arc::default(),
            counts: Arc::default(),
        }
    }

    /// The Job is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.expectations.forget(uid);
        self.finalizers.forget(uid);
        self.backoffs.forget(uid);
        self.writes.forget(uid);
    }
}
