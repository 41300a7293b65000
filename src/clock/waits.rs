//! `RuntimeWaits`: how often the threads of the runtime wait for work, and for how long (what Go's profile of
//! blocking is nearest to here).

use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeMetrics};

/// Looks at a runtime from a moment on.
#[derive(Debug)]
pub struct RuntimeWaits {
    metrics: RuntimeMetrics,
    since: Instant,
    /// What each thread had done before.
    before: Vec<WorkerCounts>,
}

#[derive(Debug, Clone, Copy, Default)]
struct WorkerCounts {
    busy: Duration,
    parks: u64,
}

/// How a thread of the runtime has waited, since somebody looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerWaits {
    /// How often.
    pub times: u64,
    /// For how long: all the time in which it did no work.
    pub waited: Duration,
}

impl RuntimeWaits {
    /// Looks at the runtime that this is called in from now on; none outside of one.
    pub fn begin() -> Option<RuntimeWaits> {
        let metrics = Handle::try_current().ok()?.metrics();
        let before = (0..metrics.num_workers()).map(|worker| WorkerCounts::of(&metrics, worker)).collect();
        Some(RuntimeWaits { metrics, since: Instant::now(), before })
    }

    /// Of each thread, in their order. Costs two loads a thread.
    pub fn of_threads(&self) -> Vec<WorkerWaits> {
        let elapsed = self.since.elapsed();
        let waits = |(worker, before): (usize, &WorkerCounts)| {
            let now = WorkerCounts::of(&self.metrics, worker);
            let busy = now.busy.saturating_sub(before.busy);
            WorkerWaits {
                times: now.parks.saturating_sub(before.parks),
                waited: elapsed.saturating_sub(busy),
            }
        };
        self.before.iter().enumerate().map(waits).collect()
    }

    /// How many tasks no thread has taken up yet.
    pub fn queued_tasks(&self) -> usize {
        self.metrics.global_queue_depth()
    }
}

impl WorkerCounts {
    fn of(metrics: &RuntimeMetrics, worker: usize) -> WorkerCounts {
        WorkerCounts {
            busy: metrics.worker_total_busy_duration(worker),
            parks: metrics.worker_park_count(worker),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn threads_that_wait_are_told_from_when_somebody_looks() {
        let waits = RuntimeWaits::begin().unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        let threads = waits.of_threads();
        assert_eq!(threads.len(), 2);
        assert!(threads.iter().any(|thread| thread.times > 0), "{threads:?}");
        assert!(threads.iter().any(|thread| thread.waited > Duration::ZERO), "{threads:?}");
        // Who looks from now on is not told of what was before.
        let later = RuntimeWaits::begin().unwrap();
        assert!(later.before.iter().any(|counts| counts.parks > 0), "{later:?}");
    }

    #[test]
    fn outside_of_a_runtime_there_is_nothing_to_look_at() {
        assert!(RuntimeWaits::begin().is_none());
    }
}
