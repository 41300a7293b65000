//! CronJob: Jobs by the clock.
//!
//! Upstream's `pkg/controller/cronjob`, version 2. In: a CronJob, its Jobs, and time. Out: Jobs created and
//! deleted, and the status. It must not know how a Job does its work, only how it ended.

mod sync;

mod due;

use std::sync::Arc;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches, controller_key};
use super::controller_ref::{CONTROLLER_INDEX, controller_index};
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apimachinery::time::Time;
use apimachinery::time_zone::TimeZone;
use apis::batch::cron_job::CRON_JOBS;
use apis::batch::job::JOBS;
use apis::batch::schedule;
use apis::views::cron_job::CronJob;
use client_go::component::ComponentContext;
use client_go::lister::Lister;
use clock::Clock;
use component_base::metrics::Family;

/// The controller of CronJobs.
pub(crate) struct CronJobController {
    cron_jobs: Lister,
    jobs: Lister,
    clock: Clock,
    skew: Arc<Family<0>>,
}

/// `ExponentialBuckets(1, 2, 10)`
const SKEW_BOUNDS: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

impl CronJobController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> CronJobController {
        let jobs = ctx.informers.informer(&JOBS);
        jobs.add_index(CONTROLLER_INDEX, controller_index);
        let cron_jobs = ctx.informers.informer(&CRON_JOBS).lister();
        let skew = Arc::new(Family::histogram(
            "cronjob_controller_cronjob_job_creation_skew_duration_seconds",
            "[STABLE] Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
            [],
            &SKEW_BOUNDS,
        ));
        ctx.metrics.add("cron-job", skew.clone());
        CronJobController { cron_jobs, jobs: jobs.lister(), clock: ctx.clock.clone(), skew }
    }
}

impl Controller for CronJobController {
    const NAME: &'static str = "cronjob";
    const EVENT_SOURCE: &'static str = "cronjob-controller";
    const SERVICE_ACCOUNT: &'static str = "cronjob-controller";

    fn watches(&self) -> Watches {
        let clock = self.clock.clone();
        let of_cron_job = move |change: &Change<'_>, enqueue: &Enqueue| {
            let cron_job = change.object();
            match change.old().filter(|old| is_rescheduled(old, cron_job)) {
                None => enqueue.now(cron_job.key()),
                // Nothing is overdue by a schedule that did not hold before.
                Some(_) => {
                    let wait = wait(cron_job, clock.now());
                    wait.into_iter().for_each(|wait| enqueue.after(cron_job.key(), wait));
                }
            }
        };
        let of_job = |change: &Change<'_>, enqueue: &Enqueue| {
            let states = [Some(change.object()), change.old()];
            let keys = states.into_iter().flatten().filter_map(|job| controller_key(job, &CRON_JOBS));
            keys.for_each(|key| enqueue.now(key));
        };
        Watches::none().maps(&CRON_JOBS, of_cron_job).maps(&JOBS, of_job)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(object) = self.cron_jobs.get(namespace, name) else { return Ok(Action::Done) };
        let jobs = self.jobs.by_index(CONTROLLER_INDEX, &object.metadata.uid);
        // On the heap: an idle worker should not hold the room that a sync needs.
        Box::pin(sync::CronJobSync::new(ctx, object, jobs, &self.skew).run()).await
    }
}

fn is_rescheduled(old: &Object, new: &Object) -> bool {
    let (old, new) = (old.view::<CronJob>(), new.view::<CronJob>());
    (&old.spec.schedule, &old.spec.time_zone) != (&new.spec.schedule, &new.spec.time_zone)
}

fn wait(object: &Object, now: Time) -> Option<std::time::Duration> {
    let cron_job = object.view::<CronJob>();
    let schedule = schedule::parse(&cron_job.spec.schedule).ok()?;
    let zone = TimeZone::load(cron_job.spec.time_zone.as_deref().unwrap_or_default())?;
    let zone = schedule::own_time_zone(&cron_job.spec.schedule).unwrap_or(zone);
    let since = cron_job.status.last_schedule_time.or(object.metadata.creation_timestamp)?;
    due::Timetable { schedule, zone, since, starting_deadline_seconds: None }.wait(now)
}
