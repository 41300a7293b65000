//! Counting ended pods without losing any (`trackJobStatusAndRemoveFinalizers`): their uids are written into
//! the status, then their finalizers are removed, then the numbers grow. Whatever is interrupted goes on from
//! what is stored.

use std::collections::BTreeSet;

use futures::future::join_all;

use super::finalizers::remove_finalizer;
use super::indexes::Intervals;
use super::judge::{JobSync, JobVerdict};
use super::pods::JobPod;
use super::policies;
use super::status::{ensure_condition, new_condition, write};
use apimachinery::status::Status;
use apis::views::job::{JobStatus, UncountedTerminatedPods};

/// Upstream's `MaxUncountedPods`: so many uids fit into a status, so many pods are handled in one sync.
const MAX_UNCOUNTED_PODS: usize = 500;

/// Writes what the sync has found, and the Job's end when all is counted.
pub(super) async fn track(mut sync: JobSync<'_>) -> Result<(), Status> {
    let mut uncounted: BTreeSet<String> =
        sync.pods.iter().filter(|pod| pod.is_tracked).map(|pod| pod.uid().to_owned()).collect();
    count_released(&mut sync.status, &uncounted);
    let (ended, is_all) = note_ended(&mut sync);
    if let Some(verdict) = sync.verdict.clone() {
        tell_interim(&mut sync, &verdict);
    }
    if sync.status != sync.stored {
        flush(&mut sync).await?;
        sync.memory.backoffs.put(&sync.object.metadata.uid, sync.backoff.clone());
    }
    let released = release(&sync, &ended).await;
    for (pod, _) in ended.iter().zip(&released).filter(|(_, result)| result.is_ok()) {
        uncounted.remove(pod.uid());
    }
    count_released(&mut sync.status, &uncounted);
    if let Some(failure) = released.into_iter().find(Result::is_err) {
        if sync.status != sync.stored {
            flush(&mut sync).await?;
        }
        return failure;
    }
    let end = sync.verdict.take().filter(|_| is_all).filter(|verdict| enact(&mut sync, verdict));
    if sync.status != sync.stored {
        flush(&mut sync).await?;
    }
    if let Some(verdict) = end {
        tell_end(&sync, &verdict);
    }
    Ok(())
}

async fn flush(sync: &mut JobSync<'_>) -> Result<(), Status> {
    sync.object = write(sync.ctx, &sync.object, &sync.status).await?;
    sync.memory.writes.note(&sync.object);
    sync.memory.counts.written(sync.spec(), &sync.stored, &sync.status);
    sync.stored = sync.status.clone();
    Ok(())
}

/// Notes the uids of ended pods, and of an Indexed Job's the indexes. Gives the pods whose finalizers may go,
/// and whether there are no more.
fn note_ended(sync: &mut JobSync<'_>) -> (Vec<JobPod>, bool) {
    let is_indexed = sync.spec().is_indexed();
    let mut uncounted = sync.status.uncounted_terminated_pods.clone().unwrap_or_default();
    let mut ended = Vec::new();
    let mut new_indexes = BTreeSet::new();
    let mut is_all = true;
    for pod in sync.pods.iter().filter(|pod| pod.is_tracked) {
        if !may_release(sync, pod) {
            continue;
        }
        ended.push(pod.clone());
        let index = pod.valid_index(sync.spec());
        let (is_valid, has) =
            (!is_indexed || index.is_some(), |uids: &[String]| uids.iter().any(|uid| uid == pod.uid()));
        if pod.has_succeeded() && !has(&uncounted.failed) {
            match index.filter(|_| is_indexed) {
                // The index is enough not to count a success twice.
                Some(index) if !sync.counted_indexes.has(index) => drop(new_indexes.insert(index)),
                Some(_) => {}
                None if is_indexed || has(&uncounted.succeeded) => {}
                None => uncounted.succeeded.push(pod.uid().to_owned()),
            }
        } else if counts_as_failed(sync, pod) && !has(&uncounted.failed) && is_valid {
            uncounted.failed.push(pod.uid().to_owned());
            note_policy(sync, pod);
        }
        if new_indexes.len() + uncounted.succeeded.len() + uncounted.failed.len() >= MAX_UNCOUNTED_PODS {
            is_all = false;
            break;
        }
    }
    sync.status.uncounted_terminated_pods = Some(uncounted);
    if is_indexed {
        sync.completed_indexes = sync.completed_indexes.with(new_indexes);
        sync.status.succeeded = sync.completed_indexes.total();
        sync.status.completed_indexes = sync.completed_indexes.to_string();
        sync.status.failed_indexes = sync.failed_indexes.as_ref().map(ToString::to_string);
        note_failed_indexes(sync);
    }
    (ended, is_all)
}

/// Those that the status has not told of yet are counted.
fn note_failed_indexes(sync: &JobSync<'_>) {
    let Some(failed) = &sync.failed_indexes else { return };
    let told = sync.stored.failed_indexes.as_deref().unwrap_or_default();
    let told = Intervals::parse(told, sync.spec().completions.unwrap_or(0));
    sync.memory.counts.indexes_failed(failed.total() - told.total());
}

/// Whether a pod need not be kept any longer (`canRemoveFinalizer`): it has ended, or the Job has. One whose
/// index waits for a replacement is kept, so that the replacement can take over its counts.
fn may_release(sync: &JobSync<'_>, pod: &JobPod) -> bool {
    if sync.object.is_deleting() || sync.verdict.is_some() || pod.has_succeeded() {
        return true;
    }
    let waits = |index| sync.awaiting_replacement.get(&index).is_some_and(|last| last.uid() == pod.uid());
    pod.has_failed(sync.spec()) && !pod.index().is_some_and(waits)
}

/// What its failure policy says of a pod that has failed is counted, if it says anything.
fn note_policy(sync: &JobSync<'_>, pod: &JobPod) {
    let rule = policies::failure(sync.spec(), pod).action;
    rule.iter().for_each(|action| sync.memory.counts.handled_by_policy(action));
}

/// When a Job has failed, so have all of its pods that did not succeed.
fn counts_as_failed(sync: &JobSync<'_>, pod: &JobPod) -> bool {
    let has_job_failed = sync.verdict.as_ref().is_some_and(|verdict| !verdict.is_success);
    let has_failed = pod.has_failed(sync.spec()) || has_job_failed;
    !pod.has_succeeded() && has_failed && policies::failure(sync.spec(), pod).is_counted
}

/// What will be the Job's end is told before the finalizers go, so that it cannot be judged otherwise later.
fn tell_interim(sync: &mut JobSync<'_>, verdict: &JobVerdict) {
    let kind = if verdict.is_success { "SuccessCriteriaMet" } else { "FailureTarget" };
    if sync.status.holds(kind).is_none() {
        let condition = new_condition(kind, "True", &verdict.reason, &verdict.message, sync.now);
        sync.status.conditions.push(condition);
    }
}

async fn release(sync: &JobSync<'_>, ended: &[JobPod]) -> Vec<Result<(), Status>> {
    let (job, expectations) = (&sync.object.metadata.uid, &sync.memory.finalizers);
    if ended.is_empty() {
        return vec![];
    }
    expectations.expect(job, ended.iter().map(JobPod::uid));
    let release = |pod: &JobPod| {
        let object = pod.object.clone();
        async move {
            let released = remove_finalizer(sync.ctx, &object).await;
            if released.is_err() {
                expectations.observed(job, &object.metadata.uid);
            }
            released
        }
    };
    join_all(ended.iter().map(release)).await
}

/// Pods that have lost the finalizer move from the lists into the numbers.
fn count_released(status: &mut JobStatus, with_finalizer: &BTreeSet<String>) {
    let Some(UncountedTerminatedPods { succeeded, failed }) = &mut status.uncounted_terminated_pods else {
        return;
    };
    let keep = |uids: &mut Vec<String>| {
        let before = uids.len();
        uids.retain(|uid| with_finalizer.contains(uid));
        (before - uids.len()) as i64
    };
    status.succeeded += keep(succeeded);
    status.failed += keep(failed);
}

/// Puts the Job's end into its status, unless something is still to be counted or to go
/// (`enactJobFinished`).
fn enact(sync: &mut JobSync<'_>, verdict: &JobVerdict) -> bool {
    let status = &mut sync.status;
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let is_counted = uncounted.is_none_or(|pods| pods.succeeded.is_empty() && pods.failed.is_empty());
    if !is_counted || status.terminating.is_some_and(|count| count > 0) {
        return false;
    }
    let kind = if verdict.is_success { "Complete" } else { "Failed" };
    let condition = new_condition(kind, "True", &verdict.reason, &verdict.message, sync.now);
    ensure_condition(&mut status.conditions, condition);
    if verdict.is_success {
        status.completion_time = Some(sync.now);
    }
    true
}

fn tell_end(sync: &JobSync<'_>, verdict: &JobVerdict) {
    sync.memory.counts.ended(sync.spec(), verdict.is_success, &verdict.reason);
    if !verdict.is_success {
        return sync.event("Warning", &verdict.reason, &verdict.message);
    }
    if sync.spec().completions.is_some_and(|completions| sync.status.succeeded > completions) {
        let message = "Too many succeeded pods running after completion count reached";
        sync.event("Warning", "TooManySucceededPods", message);
    }
    sync.event("Normal", "Completed", "Job completed");
}
