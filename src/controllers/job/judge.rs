//! What the pods of a Job amount to, and whether that is its end. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::backoff::BackoffRecord;
use super::counts::SyncAction;
use super::indexes::Intervals;
use super::memory::JobMemory;
use super::pods::JobPod;
use super::policies;
use crate::controller::Reconcile;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::batch::job::JOBS;
use apis::views::job::{Job, JobCondition, JobSpec, JobStatus};

/// Why a Job is at its end; the conditions that say so are written by [`super::track`].
#[derive(Clone)]
pub(super) struct JobVerdict {
    /// Well or badly.
    pub is_success: bool,
    /// For machines.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// A Job and its pods in the hands of one sync. The status runs ahead of what is stored, until it is written.
pub(super) struct JobSync<'a> {
    pub(super) ctx: &'a Reconcile,
    pub(super) memory: &'a JobMemory,
    /// As it was last read or written.
    pub(super) object: Arc<Object>,
    /// What was read of it.
    pub(super) job: Arc<Job>,
    pub(super) now: Time,
    /// As it was last read or written.
    pub(super) stored: JobStatus,
    pub(super) status: JobStatus,
    pub(super) pods: Vec<JobPod>,
    pub(super) active: Vec<JobPod>,
    /// With what the status does not hold yet.
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    /// The indexes that the status holds already.
    pub(super) counted_indexes: Intervals,
    pub(super) completed_indexes: Intervals,
    /// Only beside `backoffLimitPerIndex`.
    pub(super) failed_indexes: Option<Intervals>,
    /// The last that failed of each index that waits for a replacement, which takes over its counts.
    pub(super) awaiting_replacement: BTreeMap<i64, JobPod>,
    pub(super) backoff: BackoffRecord,
    pub(super) verdict: Option<JobVerdict>,
    /// What was done with pods.
    pub(super) action: SyncAction,
    /// When to look again.
    pub(super) next: Option<Duration>,
}

impl JobVerdict {
    /// The Job has succeeded.
    pub(super) fn success(reason: &str, message: &str) -> JobVerdict {
        JobVerdict { is_success: true, reason: reason.into(), message: message.into() }
    }

    /// The Job has failed.
    pub(super) fn failure(reason: &str, message: &str) -> JobVerdict {
        JobVerdict { is_success: false, reason: reason.into(), message: message.into() }
    }

    fn of(condition: &JobCondition) -> JobVerdict {
        let is_success = condition.condition_type == "SuccessCriteriaMet";
        JobVerdict { is_success, ..JobVerdict::failure(&condition.reason, &condition.message) }
    }
}

impl<'a> JobSync<'a> {
    /// Counts the pods. `released` are those whose finalizer was removed although the cache still shows it.
    pub(super) fn new(
        ctx: &'a Reconcile,
        memory: &'a JobMemory,
        object: Arc<Object>,
        pods: Vec<Arc<Object>>,
        released: &BTreeSet<String>,
    ) -> JobSync<'a> {
        let (job, now) = (object.view::<Job>(), ctx.clock.now());
        let mut pods: Vec<JobPod> = pods.into_iter().map(|pod| JobPod::of(pod, &object, released)).collect();
        if job.spec.is_indexed() {
            pods.sort_by_key(JobPod::index);
        }
        let active: Vec<JobPod> = pods.iter().filter(|pod| pod.is_active()).cloned().collect();
        let (stored, mut status) = (job.status.clone(), job.status.clone());
        status.uncounted_terminated_pods.get_or_insert_default();
        status.active = active.len() as i64;
        status.ready = Some(active.iter().filter(|pod| pod.view.is_ready()).count() as i64);
        status.terminating = Some(pods.iter().filter(|pod| pod.is_terminating()).count() as i64);
        let backoff = memory.backoffs.get(&object.metadata.uid);
        let mut sync = JobSync {
            ctx,
            memory,
            object,
            job,
            now,
            stored,
            status,
            pods,
            active,
            succeeded: 0,
            failed: 0,
            counted_indexes: Intervals::default(),
            completed_indexes: Intervals::default(),
            failed_indexes: None,
            awaiting_replacement: BTreeMap::new(),
            backoff,
            verdict: None,
            action: SyncAction::default(),
            next: None,
        };
        sync.count();
        sync
    }

    pub(super) fn spec(&self) -> &JobSpec {
        &self.job.spec
    }

    /// An event about the Job.
    pub(super) fn event(&self, event_type: &str, reason: &str, message: &str) {
        self.ctx.event(&JOBS, &self.object, event_type, reason, message);
    }

    /// Asks to look again, at the latest after this time.
    pub(super) fn look_again_after(&mut self, delay: Duration) {
        self.next = Some(self.next.map_or(delay, |next| next.min(delay)));
    }

    /// The pods that ended and that the status does not hold in any form (`getNewFinishedPods`).
    fn newly_ended(&self, uncounted: &[String], has_ended: impl Fn(&JobPod) -> bool) -> Vec<&JobPod> {
        let spec = self.spec();
        let is_valid = |pod: &JobPod| !spec.is_indexed() || pod.valid_index(spec).is_some();
        let is_new =
            |pod: &&JobPod| pod.is_tracked && !uncounted.iter().any(|uid| uid == pod.uid()) && is_valid(pod);
        self.pods.iter().filter(is_new).filter(|pod| has_ended(pod)).collect()
    }

    fn count(&mut self) {
        let uncounted = self.status.uncounted_terminated_pods.clone().unwrap_or_default();
        let spec = self.spec();
        let succeeded = self.newly_ended(&uncounted.succeeded, JobPod::has_succeeded);
        let failed = self.newly_ended(&uncounted.failed, |pod| pod.has_failed(spec));
        let counted_failures = failed.iter().filter(|pod| policies::failure(spec, pod).is_counted).count();
        let backoff = self.backoff.with(&succeeded, &failed);
        let succeeded = succeeded.len() + uncounted.succeeded.len();
        let failed = counted_failures + uncounted.failed.len();
        self.succeeded = self.status.succeeded + succeeded as i64;
        self.failed = self.status.failed + failed as i64;
        self.backoff = backoff;
    }

    /// Whether the Job is at its end already, or has failed now.
    pub(super) fn judge(&mut self) {
        let verdict =
            ["SuccessCriteriaMet", "FailureTarget"].into_iter().find_map(|kind| self.status.holds(kind));
        self.verdict = verdict.map(JobVerdict::of).or_else(|| {
            let spec = self.spec();
            let failed = self.pods.iter().filter(|pod| pod.has_failed(spec));
            let message = failed.filter_map(|pod| policies::failure(spec, pod).fails_job).next();
            message.map(|message| JobVerdict::failure("PodFailurePolicy", &message))
        });
        if self.verdict.is_some() {
            return;
        }
        if self.failed > self.spec().backoff_limit.unwrap_or(6) || self.has_restarted_too_often() {
            let message = "Job has reached the specified backoff limit";
            self.verdict = Some(JobVerdict::failure("BackoffLimitExceeded", message));
            return;
        }
        let Some(left) = self.time_to_deadline() else { return };
        if left.is_zero() {
            let message = "Job was active longer than specified deadline";
            self.verdict = Some(JobVerdict::failure("DeadlineExceeded", message));
        } else {
            self.look_again_after(left);
        }
    }

    /// With `restartPolicy: OnFailure` the kubelet's restarts count, too (`pastBackoffLimitOnFailure`).
    fn has_restarted_too_often(&self) -> bool {
        if self.spec().template["spec"]["restartPolicy"] != "OnFailure" {
            return false;
        }
        let statuses = |pod: &JobPod| -> i64 {
            let status = &pod.view.status;
            let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
            containers.map(|container| container.restart_count).sum()
        };
        let runs = |pod: &&JobPod| matches!(pod.view.status.phase.as_str(), "Running" | "Pending");
        let restarts: i64 = self.pods.iter().filter(runs).map(statuses).sum();
        let limit = self.spec().backoff_limit.unwrap_or(6);
        restarts > 0 && restarts >= limit
    }

    /// Nothing when there is no deadline, or while it does not count.
    fn time_to_deadline(&self) -> Option<Duration> {
        let seconds = self.spec().active_deadline_seconds.filter(|_| !self.spec().suspend)?;
        let due = self.status.start_time?.checked_add_signed(TimeDelta::try_seconds(seconds)?)?;
        Some((due - self.now).to_std().unwrap_or(Duration::ZERO))
    }

    /// What the indexes have come to, and whether that is the Job's end.
    pub(super) fn judge_indexes(&mut self) {
        let job = self.job.clone();
        let (spec, completions) = (&job.spec, job.spec.completions.unwrap_or(0));
        let tracked = || self.pods.iter().filter(|pod| pod.is_tracked);
        let succeeded = tracked().filter(|pod| pod.has_succeeded());
        let counted = Intervals::parse(&self.status.completed_indexes, completions);
        let completed = counted.with(succeeded.filter_map(|pod| pod.valid_index(spec)));
        let failed = spec.backoff_limit_per_index.map(|limit| {
            let failed = tracked().filter(|pod| has_failed_its_index(spec, limit, pod));
            let before = self.status.failed_indexes.as_deref().unwrap_or_default();
            Intervals::parse(before, completions).with(failed.filter_map(|pod| pod.valid_index(spec)))
        });
        (self.counted_indexes, self.completed_indexes, self.failed_indexes) = (counted, completed, failed);
        self.succeeded = self.completed_indexes.total();
        if let Some(failed) = &self.failed_indexes {
            let (count, ended) = (failed.total(), failed.total() + self.succeeded);
            let is_too_many = spec.max_failed_indexes.is_some_and(|limit| count > limit);
            let verdict = match () {
                () if is_too_many => Some((
                    "MaxFailedIndexesExceeded",
                    "Job has exceeded the specified maximal number of failed indexes",
                )),
                () if count > 0 && ended >= completions => Some(("FailedIndexes", "Job has failed indexes")),
                () => None,
            };
            let verdict = verdict.map(|(reason, message)| JobVerdict::failure(reason, message));
            self.awaiting_replacement = self.find_awaiting_replacement(failed);
            self.verdict = self.verdict.take().or(verdict);
        }
        if self.verdict.is_none() {
            let met = policies::success(spec.success_policy.as_ref(), completions, &self.completed_indexes);
            self.verdict = met.map(|message| JobVerdict::success("SuccessPolicy", &message));
        }
    }

    /// `getPodsWithDelayedDeletionPerIndex`
    fn find_awaiting_replacement(&self, failed_indexes: &Intervals) -> BTreeMap<i64, JobPod> {
        let spec = self.spec();
        let is_active = |index| self.active.iter().any(|pod| pod.index() == Some(index));
        let failures = |pod: &JobPod| pod.index_failures() + pod.index_ignored_failures();
        let mut last: BTreeMap<i64, JobPod> = BTreeMap::new();
        for pod in self.pods.iter().filter(|pod| pod.is_tracked && pod.has_failed(spec)) {
            let Some(index) = pod.valid_index(spec) else { continue };
            let is_settled = self.completed_indexes.has(index) || failed_indexes.has(index);
            let is_later = last.get(&index).is_none_or(|other| {
                failures(other) <= failures(pod) && other.finished_at() <= pod.finished_at()
            });
            if !is_settled && !is_active(index) && is_later {
                last.insert(index, pod.clone());
            }
        }
        last
    }
}

/// A pod was deleted just now: it is on its way out.
pub(super) fn note_deleted(status: &mut JobStatus, pod: &JobPod) {
    status.active -= 1;
    let change = |count: &mut Option<i64>, by: i64| *count = count.map(|count| count + by);
    change(&mut status.terminating, 1);
    change(&mut status.ready, -i64::from(pod.view.is_ready()));
}

fn has_failed_its_index(spec: &JobSpec, limit: i64, pod: &JobPod) -> bool {
    if !pod.has_failed(spec) {
        return false;
    }
    let failure = policies::failure(spec, pod);
    failure.fails_index || (failure.is_counted && pod.index_failures() >= limit)
}
