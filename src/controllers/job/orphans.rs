//! Pods that still have the finalizer of a Job that counts them no more: it is gone, finished, or not theirs
//! (`syncOrphanPod`).

use super::finalizers::remove_finalizer;
use super::pods::has_finalizer;
use crate::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches, controller_key};
use crate::controller_ref::{CONTROLLER_INDEX, controller_index};
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apis::batch::job::JOBS;
use apis::core::pod::PODS;
use apis::views::job::Job;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// Removes the finalizer from such pods.
pub(crate) struct OrphanPodController {
    jobs: Lister,
    pods: Lister,
}

impl OrphanPodController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> OrphanPodController {
        let pods = ctx.informers.informer(&PODS);
        pods.add_index(CONTROLLER_INDEX, controller_index);
        OrphanPodController { jobs: ctx.informers.informer(&JOBS).lister(), pods: pods.lister() }
    }
}

impl Controller for OrphanPodController {
    const NAME: &'static str = "job_orphan_pod";
    const EVENT_SOURCE: &'static str = "job-controller";
    const SERVICE_ACCOUNT: &'static str = "job-controller";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let pods = self.pods.clone();
        let of_job = move |change: &Change<'_>, enqueue: &Enqueue| {
            let job = change.object();
            let is_over = matches!(change, Change::Deleted(_)) || is_finished(job);
            if is_over {
                let pods = pods.by_index(CONTROLLER_INDEX, &job.metadata.uid);
                let kept = pods.into_iter().filter(|pod| has_finalizer(pod));
                kept.for_each(|pod| enqueue.now(pod.key()));
            }
        };
        let jobs = self.jobs.clone();
        let of_pod = move |change: &Change<'_>, enqueue: &Enqueue| {
            let pod = change.object();
            if has_finalizer(pod) && !matches!(change, Change::Deleted(_)) && is_orphan(&jobs, pod) {
                enqueue.now(pod.key());
            }
        };
        Watches::none().maps(&JOBS, of_job).maps(&PODS, of_pod)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(pod) = self.pods.get(namespace, name) else { return Ok(Action::Done) };
        if has_finalizer(&pod) && is_orphan(&self.jobs, &pod) {
            remove_finalizer(ctx, &pod).await?;
        }
        Ok(Action::Done)
    }
}

/// Whether no Job will count the pod. One of another controller's Job is left to that.
fn is_orphan(jobs: &Lister, pod: &Object) -> bool {
    let Some(owner) = pod.controller() else { return true };
    let Some(key) = controller_key(pod, &JOBS) else { return false };
    match jobs.get_by_key(&key).filter(|job| job.metadata.uid == owner.uid) {
        None => true,
        Some(job) => is_finished(&job) && job.view::<Job>().spec.external_controller().is_none(),
    }
}

fn is_finished(job: &Object) -> bool {
    job.view::<Job>().status.finished().is_some()
}
