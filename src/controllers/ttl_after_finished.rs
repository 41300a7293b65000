//! Deletes Jobs some time after their end (`pkg/controller/ttlafterfinished`).

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use apimachinery::object::{Object, split_key};
use apimachinery::options::{DeleteOptions, Preconditions};
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::batch::job::JOBS;
use apis::views::job::Job;
use client_go::component::ComponentContext;
use client_go::lister::Lister;
use component_base::metrics::Family;

/// The controller of `ttlSecondsAfterFinished`.
pub(crate) struct TtlAfterFinishedController {
    jobs: Lister,
    deletions: Arc<Family<0>>,
}

/// `ExponentialBuckets(0.1, 2, 14)`
const DELETION_BOUNDS: [f64; 14] =
    [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6, 819.2];

impl TtlAfterFinishedController {
    /// With its informer.
    pub(crate) fn new(ctx: &ComponentContext) -> TtlAfterFinishedController {
        let deletions = Arc::new(Family::histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "[ALPHA] The time it took to delete the job since it became eligible for deletion",
            [],
            &DELETION_BOUNDS,
        ));
        ctx.metrics.add("ttl-after-finished", deletions.clone());
        TtlAfterFinishedController { jobs: ctx.informers.informer(&JOBS).lister(), deletions }
    }
}

impl Controller for TtlAfterFinishedController {
    const NAME: &'static str = "ttl_jobs_to_delete";
    const EVENT_SOURCE: &'static str = "ttl-after-finished-controller";
    const SERVICE_ACCOUNT: &'static str = "ttl-after-finished-controller";

    fn watches(&self) -> Watches {
        let of_job = |change: &Change<'_>, enqueue: &Enqueue| {
            let job = change.object();
            if !matches!(change, Change::Deleted(_)) && expires_at(job).is_some() {
                enqueue.now(job.key());
            }
        };
        Watches::none().maps(&JOBS, of_job)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(cached) = self.jobs.get(namespace, name) else { return Ok(Action::Done) };
        match time_left(&cached, ctx.clock.now()) {
            None => return Ok(Action::Done),
            Some(left) if !left.is_zero() => return Ok(Action::ResumeAfter(left)),
            Some(_) => {}
        }
        // The cache may not know yet that it was given more time.
        let Some(fresh) = ctx.client.find(&JOBS, namespace, name).await? else { return Ok(Action::Done) };
        match time_left(&fresh, ctx.clock.now()) {
            None => Ok(Action::Done),
            Some(left) if !left.is_zero() => Ok(Action::ResumeAfter(left)),
            Some(_) => {
                delete(ctx, &fresh).await?;
                let late = expires_at(&fresh).and_then(|at| (ctx.clock.now() - at).to_std().ok());
                self.deletions.observe([], late.unwrap_or_default());
                Ok(Action::Done)
            }
        }
    }
}

async fn delete(ctx: &Reconcile, job: &Object) -> Result<(), Status> {
    let uid = Some(job.metadata.uid.clone());
    let preconditions = Some(Preconditions { uid, ..Preconditions::default() });
    let options = DeleteOptions { preconditions, ..DeleteOptions::propagation("Foreground") };
    ctx.client.delete(&JOBS, &job.metadata.namespace, &job.metadata.name, &options).await
}

/// Nothing when it is not to be deleted: it runs, has no limit, or is being deleted.
fn time_left(job: &Object, now: Time) -> Option<Duration> {
    Some((expires_at(job)? - now).to_std().unwrap_or(Duration::ZERO))
}

fn expires_at(job: &Object) -> Option<Time> {
    let view = job.view::<Job>();
    let seconds = view.spec.ttl_seconds_after_finished.filter(|_| !job.is_deleting())?;
    let finished = view.status.finished()?.last_transition_time?;
    finished.checked_add_signed(TimeDelta::try_seconds(seconds)?)
}
