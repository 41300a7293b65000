//! What the controller of Jobs counts (`pkg/controller/job/metrics`).

use std::time::Duration;

use super::pods::has_finalizer;
use crate::controller::Change;
use apimachinery::object::Object;
use apis::views::job::{JobSpec, JobStatus};
use apis::views::pod::Pod;
use component_base::metrics::{Family, Render};

/// Of `job_sync_duration_seconds`: `ExponentialBuckets(0.004, 2, 15)`.
const SYNC_BOUNDS: [f64; 15] = [
    0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384, 32.768,
    65.536,
];

/// What a sync did with pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SyncAction {
    /// What was asked for before has not all been seen.
    #[default]
    Reconciling,
    /// There were as many pods as wanted.
    Tracking,
    PodsCreated,
    PodsDeleted,
}

/// What is counted of all Jobs.
pub(super) struct JobCounts {
    durations: Family<3>,
    syncs: Family<3>,
    finished: Family<3>,
    external: Family<1>,
    pods_finished: Family<2>,
    policy_actions: Family<1>,
    tracked_ends: Family<1>,
    finished_indexes: Family<2>,
    created: Family<2>,
}

impl Default for JobCounts {
    fn default() -> JobCounts {
        let of_sync = ["completion_mode", "result", "action"];
        JobCounts {
            durations: Family::histogram(
                "job_controller_job_sync_duration_seconds",
                "[STABLE] The time it took to sync a job",
                of_sync,
                &SYNC_BOUNDS,
            ),
            syncs: Family::counter(
                "job_controller_job_syncs_total",
                "[STABLE] The number of job syncs",
                of_sync,
            ),
            finished: Family::counter(
                "job_controller_jobs_finished_total",
                "[STABLE] The number of finished jobs",
                ["completion_mode", "result", "reason"],
            ),
            external: Family::counter(
                "job_controller_jobs_by_external_controller_total",
                "[ALPHA] The number of Jobs managed by an external controller",
                ["controller_name"],
            ),
            pods_finished: Family::counter(
                "job_controller_job_pods_finished_total",
                "[STABLE] The number of finished Pods that are fully tracked",
                ["completion_mode", "result"],
            ),
            policy_actions: Family::counter(
                "job_controller_pod_failures_handled_by_failure_policy_total",
                "[ALPHA] The number of failed Pods handled by failure policy with respect to the failure policy action applied",
                ["action"],
            ),
            tracked_ends: Family::counter(
                "job_controller_terminated_pods_tracking_finalizer_total",
                "[ALPHA] The number of terminated pods (phase=Failed|Succeeded) that have the finalizer batch.kubernetes.io/job-tracking",
                ["event"],
            ),
            finished_indexes: Family::counter(
                "job_controller_job_finished_indexes_total",
                "[ALPHA] The number of finished indexes",
                ["status", "backoffLimit"],
            ),
            created: Family::counter(
                "job_controller_job_pods_creation_total",
                "[ALPHA] The number of Pods created by the Job controller labelled with a reason for the Pod creation",
                ["reason", "status"],
            ),
        }
    }
}

/// Negative counts are none.
fn number<N: TryInto<u64>>(count: N) -> u64 {
    count.try_into().unwrap_or(0)
}

impl JobCounts {
    /// A Job was looked at.
    pub(super) fn synced(&self, spec: &JobSpec, action: SyncAction, is_ok: bool, took: Duration) {
        let action = match action {
            SyncAction::Reconciling => "reconciling",
            SyncAction::Tracking => "tracking",
            SyncAction::PodsCreated => "pods_created",
            SyncAction::PodsDeleted => "pods_deleted",
        };
        let labels = [mode(spec), if is_ok { "success" } else { "error" }, action];
        self.durations.observe(labels, took);
        self.syncs.count(labels);
    }

    /// A Job is at its end.
    pub(super) fn ended(&self, spec: &JobSpec, is_success: bool, reason: &str) {
        let result = if is_success { "succeeded" } else { "failed" };
        self.finished.count([mode(spec), result, reason]);
    }

    /// The status of a Job was written: what it says more than before has been counted.
    pub(super) fn written(&self, spec: &JobSpec, old: &JobStatus, new: &JobStatus) {
        let succeeded = ended_pods(new).0 - ended_pods(old).0;
        let failed = ended_pods(new).1 - ended_pods(old).1;
        let indexes = if spec.is_indexed() { (new.succeeded - old.succeeded).max(0) } else { 0 };
        let limit = if spec.backoff_limit_per_index.is_some() { "perIndex" } else { "global" };
        self.pods_finished.add([mode(spec), "succeeded"], number(succeeded));
        self.pods_finished.add([mode(spec), "failed"], number(failed));
        self.finished_indexes.add(["succeeded", limit], number(indexes));
    }

    /// An index of a Job has failed for good.
    pub(super) fn indexes_failed(&self, count: i64) {
        self.finished_indexes.add(["failed", "perIndex"], number(count));
    }

    /// A rule of a policy for failures decided of a pod.
    pub(super) fn handled_by_policy(&self, action: &str) {
        self.policy_actions.count([action]);
    }

    /// Pods were to be created: so many were, and so many not (`recordJobPodsCreationTotal`).
    pub(super) fn created(
        &self,
        replaces_only_failed: bool,
        lost: (i64, i64),
        succeeded: usize,
        failed: usize,
    ) {
        let reason = match lost {
            (failed, _) if replaces_only_failed && failed > 0 => "recreate_failed",
            (failed, terminating) if !replaces_only_failed && failed + terminating > 0 => {
                "recreate_terminating_or_failed"
            }
            _ => "new",
        };
        self.created.add([reason, "succeeded"], number(succeeded));
        self.created.add([reason, "failed"], number(failed));
    }

    /// There is a new Job: somebody else may see to it.
    pub(super) fn found(&self, spec: &JobSpec) {
        if let Some(controller) = spec.external_controller() {
            self.external.count([controller]);
        }
    }

    /// A pod changed: whether it has ended and still holds the finalizer.
    pub(super) fn observe(&self, change: &Change<'_>) {
        let is_held = |pod: &Object| has_finalizer(pod) && pod.view::<Pod>().is_terminal();
        let was = change.old().is_some_and(|old| is_held(old))
            || matches!(change, Change::Deleted(pod) if is_held(pod));
        let is = !matches!(change, Change::Deleted(_)) && is_held(change.object());
        match (was, is) {
            (false, true) => self.tracked_ends.count(["add"]),
            (true, false) => self.tracked_ends.count(["delete"]),
            _ => {}
        }
    }
}

/// Those that succeeded and that failed, counted or about to be.
fn ended_pods(status: &JobStatus) -> (i64, i64) {
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let more = uncounted.map_or((0, 0), |pods| (pods.succeeded.len() as i64, pods.failed.len() as i64));
    (status.succeeded + more.0, status.failed + more.1)
}

fn mode(spec: &JobSpec) -> &'static str {
    if spec.is_indexed() { "Indexed" } else { "NonIndexed" }
}

impl Render for JobCounts {
    fn render(&self, out: &mut String) {
        self.finished_indexes.render(out);
        self.created.render(out);
        self.pods_finished.render(out);
        self.durations.render(out);
        self.syncs.render(out);
        self.external.render(out);
        self.finished.render(out);
        self.policy_actions.render(out);
        self.tracked_ends.render(out);
    }
}
