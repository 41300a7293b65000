//! Job: pods that run to their end, as often as is asked for.
//!
//! Upstream's `pkg/controller/job`. In: a Job and the pods that it controls or may adopt. Out: pods created
//! or deleted, the finalizer that keeps a pod until it is counted, and the status. It must not know where a
//! pod runs, nor what asked for the Job.
//!
//! Read [`judge`] first: it decides; [`sync`] acts on it, [`manage`] creates and deletes, [`track`] counts
//! and writes.

mod sync;

mod manage;
mod track;

mod backoff;
mod counts;
mod finalizers;
mod indexes;
mod judge;
mod memory;
mod pods;
mod policies;
mod status;
mod writes;

pub(crate) mod orphans;

use std::sync::Arc;

use judge::JobSync;
use memory::JobMemory;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::controller_ref::{CONTROLLER_INDEX, ControllerRefManager, controller_index};
use super::dependents;
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apis::batch::job::JOBS;
use apis::core::pod::PODS;
use apis::views::job::Job;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// The controller of Jobs.
pub(crate) struct JobController {
    jobs: Lister,
    pods: Lister,
    memory: JobMemory,
}

impl JobController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> JobController {
        let pods = ctx.informers.informer(&PODS);
        pods.add_index(CONTROLLER_INDEX, controller_index);
        let memory = JobMemory::new(&ctx.clock);
        ctx.metrics.add("job", memory.counts.clone());
        JobController { jobs: ctx.informers.informer(&JOBS).lister(), pods: pods.lister(), memory }
    }

    async fn sync(&self, ctx: &Reconcile, object: Arc<Object>) -> Result<Action, Status> {
        let job = object.view::<Job>();
        if !job.spec.has_known_mode() {
            let message = "Skipped Job sync because completion mode is unknown";
            ctx.event(&JOBS, &object, "Warning", "UnknownCompletionMode", message);
            return Ok(Action::Done);
        }
        // Cannot be mended by trying again; validation refuses it.
        let Ok(selector) = job.spec.selector.selector() else { return Ok(Action::Done) };
        let is_settled = self.memory.expectations.satisfied(&object.metadata.uid);
        // Before the pods are read: a change that is seen in between is then looked at once more.
        let released = self.memory.finalizers.released(&object.metadata.uid);
        let manager = ControllerRefManager {
            client: &ctx.client,
            owner: &object,
            owner_kind: &JOBS,
            kind: &PODS,
            selector: &selector,
        };
        let pods = manager.claim_with_finalizer(&self.pods, |_| true, pods::TRACKING_FINALIZER).await?;
        let sync = JobSync::new(ctx, &self.memory, object, pods, &released);
        sync::run(sync, is_settled).await
    }
}

impl Controller for JobController {
    const NAME: &'static str = "job";
    const EVENT_SOURCE: &'static str = "job-controller";
    const SERVICE_ACCOUNT: &'static str = "job-controller";

    fn watches(&self) -> Watches {
        let memory = self.memory.clone();
        let of_job = move |change: &Change<'_>, enqueue: &Enqueue| {
            let job = change.object();
            if let Change::Added(job) = change {
                memory.counts.found(&job.view::<Job>().spec);
            }
            let is_status_only =
                change.old().is_some_and(|old| old.metadata.generation == job.metadata.generation);
            if let Change::Deleted(job) = change {
                memory.forget(&job.metadata.uid);
            } else if is_status_only {
                enqueue.batched(job.key());
            } else {
                enqueue.now(job.key());
            }
        };
        let finalizers = self.memory.finalizers.clone();
        let jobs = self.jobs.clone();
        let adopters = move |pod: &Object| dependents::adopters(&jobs, pod, |job: &Job| &job.spec.selector);
        let of_pods = dependents::of_pods(&self.memory.expectations, &JOBS, adopters);
        let counts = self.memory.counts.clone();
        let of_pod = move |change: &Change<'_>, enqueue: &Enqueue| {
            counts.observe(change);
            finalizers.observe(change);
            of_pods(change, enqueue);
        };
        Watches::none().maps(&JOBS, of_job).maps(&PODS, of_pod)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(object) = self.jobs.get(namespace, name) else { return Ok(Action::Done) };
        let job = object.view::<Job>();
        if job.spec.external_controller().is_some() {
            return Ok(Action::Done);
        }
        if job.status.finished().is_some() {
            self.memory.backoffs.forget(&object.metadata.uid);
            self.memory.writes.forget(&object.metadata.uid);
            return Ok(Action::Done);
        }
        if self.memory.writes.are_ahead_of(&object) {
            return Ok(Action::Done);
        }
        // On the heap: an idle worker should not hold the room that a sync needs.
        Box::pin(self.sync(ctx, object)).await
    }
}
