//! What the scheduler counts of itself (`pkg/scheduler/metrics`).

use std::time::Duration;

use component_base::metrics::{FROM_A_MILLISECOND, Family, Histogram, heading};

use super::framework::pod_info::QueuedPodInfo;
use super::framework::status::Code;

/// `ExponentialBuckets(0.01, 2, 20)`
const POD_BOUNDS: [f64; 20] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68,
    655.36, 1310.72, 2621.44, 5242.88,
];
/// `ExponentialBuckets(1, 2, 5)`, of attempts; observed as if they were seconds.
const COUNT_BOUNDS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];
/// `ExponentialBuckets(1, 2, 7)`, of victims; observed as if they were seconds.
const VICTIM_BOUNDS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
/// `ExponentialBuckets(0.0001, 2, 12)`
const POINT_BOUNDS: [f64; 12] =
    [0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512, 0.1024, 0.2048];
/// From so many attempts on pods are told together.
const MANY_ATTEMPTS: u32 = 15;

/// The counters and histograms.
pub(super) struct SchedulerMetrics {
    attempts: Family<2>,
    durations: Family<2>,
    pod_durations: Family<1>,
    pod_attempts: Histogram,
    victims: Histogram,
    algorithm: Histogram,
    points: Family<3>,
    permits: Family<1>,
    events: Family<1>,
    preemptions: Family<1>,
    preemption_durations: Family<1>,
    after_flush: Family<0>,
}

impl Default for SchedulerMetrics {
    fn default() -> SchedulerMetrics {
        SchedulerMetrics {
            attempts: Family::counter(
                "scheduler_schedule_attempts_total",
                "[STABLE] Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not \
                 be scheduled, while 'error' means an internal scheduler problem.",
                ["profile", "result"],
            ),
            durations: Family::histogram(
                "scheduler_scheduling_attempt_duration_seconds",
                "[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding)",
                ["profile", "result"],
                &FROM_A_MILLISECOND,
            ),
            pod_durations: Family::histogram(
                "scheduler_pod_scheduling_sli_duration_seconds",
                "[BETA] E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and \
                 might involve multiple scheduling attempts.",
                ["attempts"],
                &POD_BOUNDS,
            ),
            pod_attempts: Histogram::new(&COUNT_BOUNDS),
            victims: Histogram::new(&VICTIM_BOUNDS),
            algorithm: Histogram::new(&FROM_A_MILLISECOND),
            points: Family::histogram(
                "scheduler_framework_extension_point_duration_seconds",
                "[STABLE] Latency for running all plugins of a specific extension point.",
                ["extension_point", "profile", "status"],
                &POINT_BOUNDS,
            ),
            permits: Family::histogram(
                "scheduler_permit_wait_duration_seconds",
                "[ALPHA] Duration of waiting on permit.",
                ["result"],
                &FROM_A_MILLISECOND,
            ),
            events: Family::histogram(
                "scheduler_event_handling_duration_seconds",
                "[ALPHA] Event handling latency in seconds.",
                ["event"],
                &POINT_BOUNDS,
            ),
            preemptions: Family::counter(
                "scheduler_preemption_goroutines_execution_total",
                "[ALPHA] Number of preemption goroutines executed.",
                ["result"],
            ),
            preemption_durations: Family::histogram(
                "scheduler_preemption_goroutines_duration_seconds",
                "[ALPHA] Duration in seconds for running goroutines for the preemption.",
                ["result"],
                &POD_BOUNDS,
            ),
            after_flush: Family::counter(
                "scheduler_pod_scheduled_after_flush_total",
                "[ALPHA] Number of pods that were successfully scheduled after being flushed from unschedulablePods \
                 due to timeout. This metric helps detect potential queueing hint misconfigurations or event handling \
                 issues.",
                [],
            ),
        }
    }
}

impl SchedulerMetrics {
    /// One attempt, and how it ended: `scheduled`, `unschedulable` or `error`.
    pub(super) fn attempted(&self, profile: &str, result: &str, duration: Duration) {
        self.attempts.count([profile, result]);
        self.durations.observe([profile, result], duration);
    }

    /// A node was chosen for a pod, or none was found.
    pub(super) fn decided(&self, duration: Duration) {
        self.algorithm.observe(duration);
    }

    /// The plugins of a profile were run at a point, which took so long and came to that.
    pub(super) fn ran(&self, point: &str, profile: &str, code: Code, duration: Duration) {
        self.points.observe([point, profile, code.name()], duration);
    }

    /// An event was handled, which took so long.
    pub(super) fn handled(&self, event: &str, duration: Duration) {
        self.events.observe([event], duration);
    }

    /// All victims were asked to go, which took so long; or not all could be.
    pub(super) fn made_room(&self, is_done: bool, duration: Duration) {
        let result = if is_done { "success" } else { "error" };
        self.preemptions.count([result]);
        self.preemption_durations.observe([result], duration);
    }

    /// A pod waited so long to be permitted.
    pub(super) fn permitted(&self, code: Code, duration: Duration) {
        self.permits.observe([code.name()], duration);
    }

    /// A pod is on its node, so long after it came.
    pub(super) fn scheduled(&self, info: &QueuedPodInfo, since: Duration) {
        self.pod_attempts.observe(Duration::from_secs(u64::from(info.attempts)));
        if info.was_flushed {
            self.after_flush.count([]);
        }
        match info.attempts {
            MANY_ATTEMPTS.. => self.pod_durations.observe(["15+"], since),
            attempts => self.pod_durations.observe([&attempts.to_string()], since),
        }
    }

    /// Room was made by driving out so many.
    pub(super) fn preempted(&self, victims: usize) {
        self.victims.observe(Duration::from_secs(u64::try_from(victims).unwrap_or(u64::MAX)));
    }

    /// In Prometheus' text format.
    pub(super) fn render(&self, out: &mut String) {
        self.pod_durations.render(out);
        self.attempts.render(out);
        self.durations.render(out);
        let algorithm = "scheduler_scheduling_algorithm_duration_seconds";
        heading(out, algorithm, "histogram", "[ALPHA] Scheduling algorithm latency in seconds");
        self.algorithm.render(out, algorithm, "");
        self.points.render(out);
        for family in [&self.permits, &self.events, &self.preemptions, &self.preemption_durations] {
            family.render(out);
        }
        self.after_flush.render(out);
        let attempts = "scheduler_pod_scheduling_attempts";
        heading(out, attempts, "histogram", "[STABLE] Number of attempts to successfully schedule a pod.");
        self.pod_attempts.render(out, attempts, "");
        let (count, victims) = (self.victims.count(), "scheduler_preemption_victims");
        let total = "scheduler_preemption_attempts_total";
        heading(out, total, "counter", "[STABLE] Total preemption attempts in the cluster till now");
        out.push_str(&format!("{total} {count}\n"));
        heading(out, victims, "histogram", "[STABLE] Number of selected preemption victims");
        self.victims.render(out, victims, "");
    }
}
