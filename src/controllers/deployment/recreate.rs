//! Recreate: all old pods go before the first new one comes.

use super::scale::{clean_up, scale_set};
use super::sets::{DeploymentWork, RolloutSet, Sets};
use super::{new_set, progress, rolling};
use crate::controller::{Action, Reconcile};
use crate::controller_ref::CONTROLLER_INDEX;
use apimachinery::status::Status;
use apis::views::pod::Pod;
use client_go::lister::Lister;

/// One step: the old sets to nothing; then, when none of their pods is left, the new set to full size.
pub(super) async fn roll_out(
    ctx: &Reconcile,
    mut work: DeploymentWork,
    mut sets: Sets,
    pods: &Lister,
) -> Result<Action, Status> {
    new_set::sync_existing(ctx, &mut work, &mut sets).await?;
    let mut scaled_down = false;
    for old in sets.old.clone().iter().filter(|set| set.size() > 0) {
        scaled_down |= scale_set(ctx, &work, &mut sets, old, 0).await?;
    }
    if scaled_down || has_old_pods(&sets, pods) {
        return progress::sync_rollout_status(ctx, &mut work, &sets).await;
    }
    if sets.new.is_none() {
        new_set::sync_or_create(ctx, &mut work, &mut sets).await?;
    }
    rolling::grow_new_set(ctx, &work, &mut sets).await?;
    if progress::is_complete(&work, &work.status) {
        clean_up(ctx, &work, &sets).await?;
    }
    progress::sync_rollout_status(ctx, &mut work, &sets).await
}

/// `oldPodsRunning`: by the sets' own count, or by the pods themselves, those on their way out included.
fn has_old_pods(sets: &Sets, pods: &Lister) -> bool {
    let runs = |set: &RolloutSet| {
        let pods = pods.by_index(CONTROLLER_INDEX, &set.object.metadata.uid);
        set.view.status.replicas > 0 || pods.iter().any(|pod| !pod.view::<Pod>().is_terminal())
    };
    sets.old.iter().any(runs)
}
