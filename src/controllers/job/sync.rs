//! One sync of a Job (`syncJob`): acts on what its pods amount to.

use futures::future::join_all;

use super::counts::SyncAction;
use super::judge::{JobSync, JobVerdict, note_deleted};
use super::pods::JobPod;
use super::status::{ensure_condition, new_condition};
use super::{manage, track};
use crate::controller::Action;
use crate::pod_control::delete_pod;
use apimachinery::status::Status;
use apis::batch::job::JOBS;

/// Does what the Job needs. `is_settled` says that all that was asked for before has been seen.
pub(super) async fn run(mut sync: JobSync<'_>, is_settled: bool) -> Result<Action, Status> {
    let begun = sync.ctx.clock.elapsed();
    let (clock, counts, job) = (sync.ctx.clock.clone(), sync.memory.counts.clone(), sync.job.clone());
    if is_settled {
        sync.action = SyncAction::Tracking;
    }
    let managed = act(&mut sync, is_settled).await;
    let action = sync.action;
    let next = sync.next;
    let result = track::track(sync).await.and(managed);
    counts.synced(&job.spec, action, result.is_ok(), clock.elapsed().saturating_sub(begun));
    result.map(|()| next.map_or(Action::Done, Action::ResumeAfter))
}

/// Creates and deletes pods.
async fn act(sync: &mut JobSync<'_>, is_settled: bool) -> Result<(), Status> {
    if sync.status.start_time.is_none() && !sync.spec().suspend {
        sync.status.start_time = Some(sync.now);
    }
    sync.judge();
    if sync.spec().is_indexed() {
        sync.judge_indexes();
    }
    match sync.verdict {
        Some(_) => delete_active(sync, is_settled).await,
        None => carry_on(sync, is_settled).await,
    }
}

/// The Job is at its end: nothing of it runs on. Until that is so, its end is not told.
async fn delete_active(sync: &mut JobSync<'_>, is_settled: bool) -> Result<(), Status> {
    let delete = |pod: &JobPod| {
        let (name, ctx, job) = (pod.name().to_owned(), sync.ctx, sync.object.clone());
        async move { delete_pod(ctx, &name, &job, &JOBS).await }
    };
    let results = join_all(sync.active.iter().map(delete)).await;
    let mut failure = Ok(());
    for (pod, result) in sync.active.iter().zip(results) {
        match result {
            Err(error) if !error.is_not_found() => failure = Err(error),
            _ => note_deleted(&mut sync.status, pod),
        }
    }
    if sync.status.active > 0 || !is_settled {
        sync.verdict = None;
    }
    failure
}

async fn carry_on(sync: &mut JobSync<'_>, is_settled: bool) -> Result<(), Status> {
    let may_act = is_settled && !sync.object.is_deleting();
    let managed = if may_act { manage::manage(sync).await } else { Ok(()) };
    let is_done = match sync.spec().completions {
        None => sync.succeeded > 0,
        Some(completions) => sync.succeeded >= completions,
    };
    if is_done && sync.status.active == 0 {
        let message = "Reached expected number of succeeded pods";
        sync.verdict = Some(JobVerdict::success("CompletionsReached", message));
    } else if may_act {
        tell_suspension(sync);
    }
    managed
}

/// A suspended Job has no start; a resumed one starts anew, so that its deadline counts only the time
/// that it was active.
fn tell_suspension(sync: &mut JobSync<'_>) {
    let (status, reason, message, event) = if sync.spec().suspend {
        ("True", "JobSuspended", "Job suspended", "Suspended")
    } else {
        ("False", "JobResumed", "Job resumed", "Resumed")
    };
    let condition = new_condition("Suspended", status, reason, message, sync.now);
    let is_changed = ensure_condition(&mut sync.status.conditions, condition);
    if sync.spec().suspend {
        sync.status.start_time = None;
    } else if is_changed {
        sync.status.start_time = Some(sync.now);
    }
    if is_changed {
        sync.event("Normal", event, message);
    }
}
