//! Deployment: one ReplicaSet per revision of a template (`pkg/controller/deployment`).
//! Next: src/controllers/replica_set/mod.rs
//!
//! Sets grow and shrink so that never too few pods are available nor too many there. In: a Deployment, the
//! ReplicaSets that it controls or may adopt, and pods where it must wait for old ones to be gone. Out:
//! ReplicaSets created, sized and removed, and the status. It must not know how a ReplicaSet gets its pods.

mod math;
mod revision;
mod rollback;
mod sets;

mod new_set;
mod scale;

mod progress;
mod recreate;
mod rolling;

use sets::{DeploymentWork, RolloutSet, Sets};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches, controller_key};
use super::controller_ref::{CONTROLLER_INDEX, ControllerRefManager, controller_index};
use super::dependents;
use apimachinery::labels::Selector;
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apis::apps::deployment::DEPLOYMENTS;
use apis::apps::replica_set::REPLICA_SETS;
use apis::core::pod::PODS;
use apis::views::deployment::Deployment;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// The controller of Deployments.
pub(crate) struct DeploymentController {
    deployments: Lister,
    sets: Lister,
    pods: Lister,
}

impl DeploymentController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> DeploymentController {
        let pods = ctx.informers.informer(&PODS);
        pods.add_index(CONTROLLER_INDEX, controller_index);
        let sets = ctx.informers.informer(&REPLICA_SETS);
        sets.add_index(CONTROLLER_INDEX, controller_index);
        let deployments = ctx.informers.informer(&DEPLOYMENTS);
        DeploymentController { deployments: deployments.lister(), sets: sets.lister(), pods: pods.lister() }
    }

    async fn claim_sets(
        &self,
        ctx: &Reconcile,
        work: &DeploymentWork,
        selector: &Selector,
    ) -> Result<Sets, Status> {
        let manager = ControllerRefManager {
            client: &ctx.client,
            owner: &work.object,
            owner_kind: &DEPLOYMENTS,
            kind: &REPLICA_SETS,
            selector,
        };
        let claimed = manager.claim(&self.sets, |_| true).await?;
        let sets = claimed.into_iter().map(RolloutSet::of).collect();
        Ok(Sets::sort(sets, &work.view.spec.template))
    }

    /// Only what is observed: the deployment is being deleted.
    async fn sync_status_only(
        &self,
        ctx: &Reconcile,
        mut work: DeploymentWork,
        mut sets: Sets,
    ) -> Result<Action, Status> {
        new_set::sync_existing(ctx, &mut work, &mut sets).await?;
        progress::sync_status(ctx, &mut work, &sets).await
    }

    /// A paused deployment, or one that was scaled: sizes, but no rollout.
    async fn sync(
        &self,
        ctx: &Reconcile,
        mut work: DeploymentWork,
        mut sets: Sets,
    ) -> Result<Action, Status> {
        new_set::sync_existing(ctx, &mut work, &mut sets).await?;
        scale::scale(ctx, &work, &mut sets).await?;
        // A paused deployment does not roll out, so what is old stays old: it may be cleaned up.
        if work.view.spec.paused {
            scale::clean_up(ctx, &work, &sets).await?;
        }
        progress::sync_status(ctx, &mut work, &sets).await
    }
}

impl Controller for DeploymentController {
    const NAME: &'static str = "deployment";
    const EVENT_SOURCE: &'static str = "deployment-controller";
    const SERVICE_ACCOUNT: &'static str = "deployment-controller";

    fn watches(&self) -> Watches {
        let deployments = self.deployments.clone();
        let adopters = move |set: &Object| {
            dependents::adopters(&deployments, set, |deployment: &Deployment| &deployment.spec.selector)
        };
        let (sets, owners) = (self.sets.clone(), self.deployments.clone());
        // The last pod of an old revision is gone: a Recreate rollout may go on.
        let pods = move |change: &Change<'_>, enqueue: &Enqueue| {
            if matches!(change, Change::Deleted(_)) {
                recreating_owner(&sets, &owners, change.object())
                    .into_iter()
                    .for_each(|key| enqueue.now(key));
            }
        };
        Watches::of(&DEPLOYMENTS).owns(&REPLICA_SETS, &DEPLOYMENTS, adopters).maps(&PODS, pods)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(object) = self.deployments.get(namespace, name) else { return Ok(Action::Done) };
        let mut work = DeploymentWork::of(object, ctx.clock.now());
        // Cannot be mended by trying again; validation refuses it.
        let Ok(selector) = work.view.spec.selector.selector() else { return Ok(Action::Done) };
        if selector.is_everything() {
            return select_all(ctx, work).await;
        }
        let sets = self.claim_sets(ctx, &work, &selector).await?;
        if work.object.is_deleting() {
            return self.sync_status_only(ctx, work, sets).await;
        }
        // Before anything else, so that a rollout that was paused for long is not taken for one that is
        // stuck.
        progress::check_paused_conditions(ctx, &mut work).await?;
        if let Some(revision) = rollback::wanted(&work) {
            rollback::roll_back(ctx, &work, &sets, revision).await?;
            return Ok(Action::Done);
        }
        if work.view.spec.paused || scale::is_scaling_event(&work, &sets) {
            return self.sync(ctx, work, sets).await;
        }
        match work.view.spec.strategy.strategy_type.as_str() {
            "Recreate" => recreate::roll_out(ctx, work, sets, &self.pods).await,
            "RollingUpdate" => rolling::roll_out(ctx, work, sets).await,
            other => Err(Status::internal(format!("unexpected deployment strategy type: {other}"))),
        }
    }
}

async fn select_all(ctx: &Reconcile, mut work: DeploymentWork) -> Result<Action, Status> {
    let message = "This deployment is selecting all pods. A non-empty selector is required.";
    work.event(ctx, "Warning", "SelectingAll", message);
    if work.status.observed_generation < work.object.metadata.generation {
        work.status.observed_generation = work.object.metadata.generation;
        work.write(ctx).await?;
    }
    Ok(Action::Done)
}

fn recreating_owner(sets: &Lister, deployments: &Lister, pod: &Object) -> Option<Key> {
    let (namespace, set) = (&pod.metadata.namespace, controller_key(pod, &REPLICA_SETS)?);
    let set = sets.get(namespace, split_key(&set).1)?;
    let key = controller_key(&set, &DEPLOYMENTS)?;
    let deployment = deployments.get(namespace, split_key(&key).1)?;
    (deployment.view::<Deployment>().spec.strategy.strategy_type == "Recreate").then_some(key)
}
