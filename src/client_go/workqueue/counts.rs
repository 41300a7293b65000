//! What is counted of a queue (`workqueue.defaultQueueMetrics`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clock::Clock;
use component_base::metrics::Histogram;

/// `ExponentialBuckets(10e-9, 10, 12)`
const BOUNDS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0];

/// What is counted of one queue. Counting takes no lock.
pub struct WorkQueueCounts {
    pub(super) clock: Clock,
    adds: AtomicU64,
    retries: AtomicU64,
    waited: Histogram,
    worked: Histogram,
}

/// How a queue is at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueLook {
    /// How many keys wait.
    pub depth: usize,
    /// For how long workers have had keys, together.
    pub unfinished: Duration,
    /// For how long the one who has had his longest.
    pub longest: Duration,
}

/// A queue that says how it is.
pub trait QueueState: Send + Sync {
    /// How it is now.
    fn look(&self) -> QueueLook;
}

impl WorkQueueCounts {
    /// With nothing counted yet; durations are measured with `clock`.
    pub fn new(clock: Clock) -> WorkQueueCounts {
        let [waited, worked] = [(); 2].map(|()| Histogram::new(&BOUNDS));
        WorkQueueCounts { clock, adds: AtomicU64::new(0), retries: AtomicU64::new(0), waited, worked }
    }

    /// How many keys came.
    pub fn adds(&self) -> u64 {
        self.adds.load(Ordering::Relaxed)
    }

    /// How many of them because they had failed.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// How long keys waited for a worker.
    pub fn waited(&self) -> &Histogram {
        &self.waited
    }

    /// How long workers had them.
    pub fn worked(&self) -> &Histogram {
        &self.worked
    }

    pub(super) fn added(&self) {
        self.adds.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// How long it has been since then.
    pub(super) fn since(&self, at: Duration) -> Duration {
        self.clock.elapsed().saturating_sub(at)
    }
}
