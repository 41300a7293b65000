//! RollingUpdate: the new set grows while the old ones shrink, within the surge and the unavailable.

use super::math::{RolloutLimits, new_set_size};
use super::scale::{clean_up, scale_set};
use super::sets::{DeploymentWork, RolloutSet, Sets};
use super::{new_set, progress};
use crate::controller::{Action, Reconcile};
use apimachinery::status::Status;

/// One step: up if the surge leaves room, else down if enough are available. The next step follows when the
/// sets report what came of it.
pub(super) async fn roll_out(
    ctx: &Reconcile,
    mut work: DeploymentWork,
    mut sets: Sets,
) -> Result<Action, Status> {
    new_set::sync_or_create(ctx, &mut work, &mut sets).await?;
    if grow_new_set(ctx, &work, &mut sets).await? || shrink_old_sets(ctx, &work, &mut sets).await? {
        return progress::sync_rollout_status(ctx, &mut work, &sets).await;
    }
    if progress::is_complete(&work, &work.status) {
        clean_up(ctx, &work, &sets).await?;
    }
    progress::sync_rollout_status(ctx, &mut work, &sets).await
}

/// Sizes the new set (`reconcileNewReplicaSet`). True when it was scaled.
pub(super) async fn grow_new_set(
    ctx: &Reconcile,
    work: &DeploymentWork,
    sets: &mut Sets,
) -> Result<bool, Status> {
    let Some(new) = sets.new.clone() else { return Ok(false) };
    let desired = work.view.replicas();
    ctx.compares("replicas in the new ReplicaSet", desired, new.size());
    if new.size() == desired {
        return Ok(false);
    }
    let grown = || new_set_size(&work.view, sets.total_size(), new.size());
    let size = if new.size() > desired { desired } else { grown() };
    scale_set(ctx, work, sets, &new, size).await
}

async fn shrink_old_sets(ctx: &Reconcile, work: &DeploymentWork, sets: &mut Sets) -> Result<bool, Status> {
    let Some(new) = sets.new.clone() else { return Ok(false) };
    let removable = removable(work, sets, &new);
    if removable <= 0 || sets.old.iter().all(|set| set.size() == 0) {
        return Ok(false);
    }
    // Those that are not available anyway go first: they would block the rollout, and nobody misses them.
    let unhealthy = |set: &RolloutSet| set.size() - set.view.status.available_replicas;
    let cleaned = shrink(ctx, work, sets, removable, unhealthy).await?;
    let min_available = work.view.replicas() - RolloutLimits::of(&work.view).max_unavailable;
    let spare = sets.sum(|set| set.status.available_replicas) - min_available;
    let scaled = shrink(ctx, work, sets, spare, RolloutSet::size).await?;
    Ok(cleaned + scaled > 0)
}

/// How many pods of old sets may go: all above the minimum, less those of the new set that are not available
/// yet.
fn removable(work: &DeploymentWork, sets: &Sets, new: &RolloutSet) -> i64 {
    let min_available = work.view.replicas() - RolloutLimits::of(&work.view).max_unavailable;
    let not_yet_available = new.size() - new.view.status.available_replicas;
    sets.total_size() - min_available - not_yet_available
}

/// Takes up to `count` pods from the old sets, the oldest set first, from each at most what `from` says.
async fn shrink(
    ctx: &Reconcile,
    work: &DeploymentWork,
    sets: &mut Sets,
    count: i64,
    from: fn(&RolloutSet) -> i64,
) -> Result<i64, Status> {
    let mut taken = 0;
    for set in sets.old.clone() {
        let here = from(&set).min(set.size()).min(count - taken);
        if here > 0 {
            scale_set(ctx, work, sets, &set, set.size() - here).await?;
            taken += here;
        }
    }
    Ok(taken)
}
