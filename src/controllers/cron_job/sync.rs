//! One sync of a CronJob (`syncCronJob`): old Jobs are cleaned up, what became of the others is noted, and
//! the Job that is due is made.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::due::Timetable;
use crate::controller::{Action, Reconcile};
use crate::controller_ref::{controller_reference, is_controlled_by};
use crate::pod_control::is_namespace_terminating;
use apimachinery::object::Object;
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apimachinery::time_zone::TimeZone;
use apis::batch::cron_job::CRON_JOBS;
use apis::batch::job::JOBS;
use apis::batch::schedule;
use apis::views::cron_job::{ActiveJob, CronJob, CronJobStatus};
use apis::views::job::Job;
use component_base::metrics::Family;

/// When the Job was due, in its CronJob's time zone.
const SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// A CronJob and its Jobs in the hands of one sync. The status runs ahead of what is stored, until it is
/// written.
pub(super) struct CronJobSync<'a> {
    ctx: &'a Reconcile,
    object: Arc<Object>,
    cron_job: Arc<CronJob>,
    status: CronJobStatus,
    jobs: Vec<Arc<Object>>,
    now: Time,
    /// How late Jobs are made.
    skew: &'a Family<0>,
}

impl<'a> CronJobSync<'a> {
    /// Of the cached objects.
    pub(super) fn new(
        ctx: &'a Reconcile,
        object: Arc<Object>,
        jobs: Vec<Arc<Object>>,
        skew: &'a Family<0>,
    ) -> CronJobSync<'a> {
        let cron_job = object.view::<CronJob>();
        let status = cron_job.status.clone();
        CronJobSync { ctx, object, cron_job, status, jobs, now: ctx.clock.now(), skew }
    }

    /// Does what is due, and says when the next Job is.
    pub(super) async fn run(mut self) -> Result<Action, Status> {
        self.clean_up_finished_jobs().await;
        let next = self.sync().await;
        if self.status != self.object.view::<CronJob>().status {
            self.write_status().await?;
        }
        Ok(next?.map_or(Action::Done, Action::RequeueAfter))
    }

    async fn sync(&mut self) -> Result<Option<Duration>, Status> {
        self.look_at_jobs().await?;
        self.miss_jobs().await?;
        if self.object.is_deleting() {
            return Ok(None);
        }
        let Some(timetable) = self.timetable() else { return Ok(None) };
        let Some(due) = self.due(&timetable) else {
            // A schedule that cannot be is not looked at again before it changes.
            return Ok(timetable.overdue(self.now).ok().and_then(|_| timetable.wait(self.now)));
        };
        if !self.is_hindered(due) {
            self.replace_jobs().await?;
            self.start_job(due).await?;
        }
        // What was started now is the last that was due.
        let since = self.status.last_schedule_time.unwrap_or(timetable.since);
        Ok(Timetable { since, ..timetable }.wait(self.now))
    }

    /// Takes up what became of the Jobs that there are.
    async fn look_at_jobs(&mut self) -> Result<(), Status> {
        for job in self.jobs.clone() {
            let (view, name) = (job.view::<Job>(), &job.metadata.name);
            let (is_active, finished) = (self.is_active(&job.metadata.uid), view.status.finished());
            match finished {
                None if !is_active => self.recheck_unexpected(&job).await?,
                Some(end) if is_active => {
                    self.forget_active(&job.metadata.uid);
                    let message = format!("Saw completed job: {name}, condition: {}", end.condition_type);
                    self.event("Normal", "SawCompletedJob", &message);
                }
                _ => {}
            }
            let completed = finished.filter(|end| end.condition_type == "Complete");
            let completed = completed.and(view.status.completion_time);
            self.status.last_successful_time = self.status.last_successful_time.max(completed);
        }
        Ok(())
    }

    /// A Job that runs and is not known to: the cache may lag behind, or somebody else made it.
    async fn recheck_unexpected(&mut self, job: &Object) -> Result<(), Status> {
        let metadata = &self.object.metadata;
        let fresh = self.ctx.client.get(&CRON_JOBS, &metadata.namespace, &metadata.name).await?;
        let status = &fresh.view::<CronJob>().status;
        if status.active.iter().any(|active| active.uid == job.metadata.uid) {
            (self.status, self.object) = (status.clone(), fresh);
        } else if self.is_there(job).await? {
            let name = &job.metadata.name;
            let message = format!("Saw a job that the controller did not create or forgot: {name}");
            self.event("Warning", "UnexpectedJob", &message);
        }
        Ok(())
    }

    /// Whether a Job of the cache is there: one that was replaced just now is not.
    async fn is_there(&self, job: &Object) -> Result<bool, Status> {
        let (namespace, name) = (&job.metadata.namespace, &job.metadata.name);
        let found = self.ctx.client.find(&JOBS, namespace, name).await?;
        Ok(found.is_some_and(|found| found.metadata.uid == job.metadata.uid))
    }

    /// Forgets active Jobs that are gone.
    async fn miss_jobs(&mut self) -> Result<(), Status> {
        for active in self.status.active.clone() {
            if self.jobs.iter().any(|job| job.metadata.uid == active.uid) {
                continue;
            }
            match self.ctx.client.get(&JOBS, &active.namespace, &active.name).await {
                Err(error) if error.is_not_found() => {
                    self.forget_active(&active.uid);
                    let message = format!("Active job went missing: {}", active.name);
                    self.event("Normal", "MissingJob", &message);
                }
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Nothing when no Job is to be made at all.
    fn timetable(&self) -> Option<Timetable> {
        let spec = &self.cron_job.spec;
        let name = spec.time_zone.as_deref().unwrap_or_default();
        let Some(zone) = TimeZone::load(name) else {
            let message = format!("invalid timeZone: {name:?}: unknown time zone {name}");
            self.event("Warning", "UnknownTimeZone", &message);
            return None;
        };
        if spec.suspend {
            return None;
        }
        self.warn_of_zone_in_schedule();
        match schedule::parse(&spec.schedule) {
            Ok(schedule) => {
                let zone = schedule::own_time_zone(&spec.schedule).unwrap_or(zone);
                let created = self.object.metadata.creation_timestamp.unwrap_or(self.now);
                let since = self.status.last_schedule_time.unwrap_or(created);
                let starting_deadline_seconds = spec.starting_deadline_seconds;
                Some(Timetable { schedule, zone, since, starting_deadline_seconds })
            }
            Err(error) => {
                let message = format!("unparseable schedule: {:?} : {error}", spec.schedule);
                self.event("Warning", "UnparseableSchedule", &message);
                None
            }
        }
    }

    /// `formatSchedule`: what was stored with a zone in its schedule is told of, and obeyed.
    fn warn_of_zone_in_schedule(&self) {
        let schedule = &self.cron_job.spec.schedule;
        if schedule.contains("TZ") {
            let message = format!(
                "CRON_TZ or TZ used in schedule {schedule:?} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            );
            self.event("Warning", "UnsupportedSchedule", &message);
        }
    }

    fn due(&self, timetable: &Timetable) -> Option<Time> {
        match timetable.overdue(self.now) {
            Ok(overdue) => {
                let overdue = overdue?;
                if overdue.is_one_of_many {
                    let message = "too many missed start times. Set or decrease \
                                   .spec.startingDeadlineSeconds or check clock skew";
                    self.event("Warning", "TooManyMissedTimes", message);
                }
                Some(overdue.at)
            }
            Err(error) => {
                let message = format!("invalid schedule: {} : {error}", self.cron_job.spec.schedule);
                self.event("Warning", "InvalidSchedule", &message);
                None
            }
        }
    }

    /// Whether the Job that is due is not to be made: too late, made already, or another one still runs.
    fn is_hindered(&self, due: Time) -> bool {
        let spec = &self.cron_job.spec;
        let deadline = spec.starting_deadline_seconds.and_then(chrono::TimeDelta::try_seconds);
        if deadline.is_some_and(|deadline| due + deadline < self.now) {
            let due = due.format("%a, %d %b %Y %H:%M:%S %z");
            let message = format!("Missed scheduled time to start a job: {due}");
            self.event("Warning", "MissSchedule", &message);
            return true;
        }
        let name = self.job_name(due);
        let is_made = self.status.active.iter().any(|active| active.name == name);
        if is_made || self.status.last_schedule_time == Some(due) {
            return true;
        }
        let is_forbidden = spec.concurrency_policy == "Forbid" && !self.status.active.is_empty();
        if is_forbidden {
            let message =
                "Not starting job because prior execution is running and concurrency policy is Forbid";
            self.event("Normal", "JobAlreadyActive", message);
        }
        is_forbidden
    }

    /// With `concurrencyPolicy: Replace` what still runs goes.
    async fn replace_jobs(&mut self) -> Result<(), Status> {
        if self.cron_job.spec.concurrency_policy != "Replace" {
            return Ok(());
        }
        for active in self.status.active.clone() {
            let job =
                self.ctx.client.get(&JOBS, &active.namespace, &active.name).await.inspect_err(|error| {
                    self.event("Warning", "FailedGet", &format!("Get job: {error}"));
                })?;
            self.delete(&job).await?;
        }
        Ok(())
    }

    async fn start_job(&mut self, due: Time) -> Result<(), Status> {
        let (namespace, name) = (&self.object.metadata.namespace, self.job_name(due));
        let job = match self.ctx.client.create(&JOBS, namespace, self.job(due)).await {
            Ok(job) => {
                self.event("Normal", "SuccessfulCreate", &format!("Created job {name}"));
                self.skew.observe([], (self.ctx.clock.now() - due).to_std().unwrap_or_default());
                job
            }
            // Perhaps this controller was stopped before it could note that.
            Err(error) if error.is_already_exists() => {
                let job = self.ctx.client.get(&JOBS, namespace, &name).await?;
                if !is_controlled_by(&job, &self.object) || self.is_active(&job.metadata.uid) {
                    return Ok(());
                }
                job
            }
            Err(error) => {
                if !is_namespace_terminating(&error) {
                    self.event("Warning", "FailedCreate", &format!("Error creating job: {error}"));
                }
                return Err(error);
            }
        };
        self.status.active.push(ActiveJob {
            api_version: JOBS.api_version(),
            kind: JOBS.kind.to_string(),
            name: job.metadata.name.clone(),
            namespace: job.metadata.namespace.clone(),
            resource_version: job.metadata.resource_version.to_string(),
            uid: job.metadata.uid.clone(),
        });
        self.status.last_schedule_time = Some(due);
        Ok(())
    }

    /// Its name tells when it was due, in minutes: none is made twice.
    fn job_name(&self, due: Time) -> String {
        format!("{}-{}", self.object.metadata.name, due.timestamp() / 60)
    }

    fn job(&self, due: Time) -> Value {
        // By the clocks of `timeZone`, whatever the schedule says itself.
        let zone = self.cron_job.spec.time_zone.as_deref().unwrap_or_default();
        let zone = TimeZone::load(zone).unwrap_or(TimeZone::UTC);
        let template = &self.cron_job.spec.job_template;
        let members = |name: &str| template["metadata"][name].as_object().cloned().unwrap_or_else(Map::new);
        let mut annotations = members("annotations");
        annotations.insert(SCHEDULED_TIMESTAMP.into(), zone.rfc3339(due).into());
        let metadata = json!({
            "name": self.job_name(due),
            "labels": members("labels"),
            "annotations": annotations,
            "ownerReferences": [controller_reference(&self.object, &CRON_JOBS)],
        });
        json!({"metadata": metadata, "spec": template["spec"]})
    }

    async fn clean_up_finished_jobs(&mut self) {
        let spec = &self.cron_job.spec;
        let limits =
            [("Complete", spec.successful_jobs_history_limit), ("Failed", spec.failed_jobs_history_limit)];
        for (end, limit) in limits {
            let Some(limit) = limit else { continue };
            let is_it = |job: &Arc<Object>| {
                let finished = job.view::<Job>().status.finished().is_some_and(|it| it.condition_type == end);
                finished && !job.is_deleting()
            };
            let mut ended: Vec<Arc<Object>> = self.jobs.iter().filter(|job| is_it(job)).cloned().collect();
            // The oldest first; those that never started last.
            ended.sort_by_key(|job| {
                (Reverse(job.view::<Job>().status.start_time.map(Reverse)), job.metadata.name.clone())
            });
            let surplus = ended.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
            for job in &ended[..surplus] {
                // It is said in an event; the next sync tries again.
                drop(self.delete(job).await);
            }
        }
    }

    async fn delete(&mut self, job: &Object) -> Result<(), Status> {
        let (namespace, name) = (&job.metadata.namespace, &job.metadata.name);
        let options = DeleteOptions::propagation("Background");
        if let Err(error) = self.ctx.client.delete(&JOBS, namespace, name, &options).await {
            if error.is_not_found() {
                // Deleted before, and said: the cache has not heard of that yet.
                self.forget_active(&job.metadata.uid);
                return Ok(());
            }
            self.event("Warning", "FailedDelete", &format!("Deleted job: {error}"));
            return Err(error);
        }
        self.forget_active(&job.metadata.uid);
        self.event("Normal", "SuccessfulDelete", &format!("Deleted job {name}"));
        Ok(())
    }

    fn is_active(&self, uid: &str) -> bool {
        self.status.active.iter().any(|active| active.uid == uid)
    }

    fn forget_active(&mut self, uid: &str) {
        self.status.active.retain(|active| active.uid != uid);
    }

    fn event(&self, event_type: &str, reason: &str, message: &str) {
        self.ctx.event(&CRON_JOBS, &self.object, event_type, reason, message);
    }

    /// On the object as it was read: a conflict is an error, and the sync starts again with what is new.
    async fn write_status(&self) -> Result<(), Status> {
        let mut tree = self.object.to_value();
        let mut status = tree["status"].as_object().cloned().unwrap_or_default();
        put(&mut status, &self.status);
        tree["status"] = status.into();
        let metadata = &self.object.metadata;
        let written = self.ctx.client.update_status(&CRON_JOBS, &metadata.namespace, &metadata.name, tree);
        written.await.map(drop)
    }
}

fn put(status: &mut Map<String, Value>, new: &CronJobStatus) {
    let members = [
        ("active", (!new.active.is_empty()).then(|| json!(new.active))),
        ("lastScheduleTime", new.last_schedule_time.map(|time| rfc3339(time).into())),
        ("lastSuccessfulTime", new.last_successful_time.map(|time| rfc3339(time).into())),
    ];
    for (name, value) in members {
        match value {
            Some(value) => drop(status.insert(name.into(), value)),
            None => drop(status.remove(name)),
        }
    }
}
