//! Sizing ReplicaSets, in proportion where several have pods, and removing those that history need not keep.

use std::cmp::Reverse;

use serde_json::json;

use super::math::{RolloutLimits, Scaling, Share, is_rolling_update, proportions, revision_history_limit};
use super::new_set::update;
use super::revision::{self, DESIRED_REPLICAS, MAX_REPLICAS};
use super::sets::{DeploymentWork, RolloutSet, Sets};
use crate::controller::Reconcile;
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::apps::replica_set::REPLICA_SETS;

/// Whether the deployment's size was changed since its active sets were sized.
pub(super) fn is_scaling_event(work: &DeploymentWork, sets: &Sets) -> bool {
    let differs = |set: &RolloutSet| {
        set.number(DESIRED_REPLICAS).is_some_and(|desired| desired != work.view.replicas())
    };
    sets.active().iter().any(differs)
}

/// Brings the sets to the deployment's size without rolling out.
pub(super) async fn scale(ctx: &Reconcile, work: &DeploymentWork, sets: &mut Sets) -> Result<(), Status> {
    let desired = work.view.replicas();
    let active = sets.active();
    if active.len() <= 1 {
        let newest = || sets.new.as_ref().or(sets.old.last()).cloned();
        let Some(only) = active.first().cloned().or_else(newest) else { return Ok(()) };
        return scale_set(ctx, work, sets, &only, desired).await.map(drop);
    }
    if sets.new.as_ref().is_some_and(|new| is_saturated(new, desired)) {
        for old in sets.old.clone().iter().filter(|set| set.size() > 0) {
            scale_set(ctx, work, sets, old, 0).await?;
        }
        return Ok(());
    }
    if is_rolling_update(&work.view) {
        scale_proportionally(ctx, work, sets, active).await?;
    }
    Ok(())
}

/// Sizes one set. True when its size changed, of which there is an event; its annotations alone may have to
/// change.
pub(super) async fn scale_set(
    ctx: &Reconcile,
    work: &DeploymentWork,
    sets: &mut Sets,
    set: &RolloutSet,
    size: i64,
) -> Result<bool, Status> {
    let (before, annotations) = (set.size(), &set.view.metadata.annotations);
    let sized = revision::with_sizes(
        annotations.clone(),
        work.view.replicas(),
        RolloutLimits::of(&work.view).max_surge,
    );
    if before == size && sized == *annotations {
        return Ok(false);
    }
    let mut tree = set.object.to_value();
    tree["metadata"]["annotations"] = json!(sized);
    tree["spec"]["replicas"] = size.into();
    sets.replace(update(ctx, &set.object, tree).await?);
    if before == size {
        return Ok(false);
    }
    let direction = if size > before { "up" } else { "down" };
    let message = format!("Scaled {direction} replica set {} from {before} to {size}", set.name());
    work.event(ctx, "Normal", "ScalingReplicaSet", message);
    Ok(true)
}

/// Removes old sets beyond `revisionHistoryLimit`, lowest revision first; those that still have pods stay.
pub(super) async fn clean_up(ctx: &Reconcile, work: &DeploymentWork, sets: &Sets) -> Result<(), Status> {
    let Some(limit) = revision_history_limit(&work.view) else { return Ok(()) };
    let mut cleanable: Vec<&RolloutSet> = sets.old.iter().filter(|set| !set.object.is_deleting()).collect();
    cleanable.sort_by_key(|set| set.revision());
    let excess = cleanable.len().saturating_sub(limit);
    for set in cleanable.into_iter().take(excess) {
        let metadata = &set.object.metadata;
        let is_observed = metadata.generation <= set.view.status.observed_generation;
        if set.view.status.replicas != 0 || set.size() != 0 || !is_observed {
            continue;
        }
        let options = DeleteOptions::default();
        match ctx.client.delete(&REPLICA_SETS, &metadata.namespace, &metadata.name, &options).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// `deploymentutil.IsSaturated`
fn is_saturated(new: &RolloutSet, desired: i64) -> bool {
    let sized_for = new.number(DESIRED_REPLICAS);
    new.size() == desired && sized_for == Some(desired) && new.view.status.available_replicas == desired
}

async fn scale_proportionally(
    ctx: &Reconcile,
    work: &DeploymentWork,
    sets: &mut Sets,
    mut active: Vec<RolloutSet>,
) -> Result<(), Status> {
    let scaling = Scaling {
        replicas: work.view.replicas(),
        max_surge: RolloutLimits::of(&work.view).max_surge,
        status_replicas: work.status.replicas,
    };
    let created = |set: &RolloutSet| set.object.metadata.creation_timestamp;
    // Of sets of one size the newer grow and the older shrink first.
    if scaling.replicas + scaling.max_surge > sets.total_size() && scaling.replicas > 0 {
        active.sort_by_key(|set| (Reverse(set.size()), Reverse(created(set))));
    } else {
        active.sort_by_key(|set| (Reverse(set.size()), created(set)));
    }
    let share = |set: &RolloutSet| Share { size: set.size(), max_replicas_before: set.number(MAX_REPLICAS) };
    let shares: Vec<Share> = active.iter().map(share).collect();
    for (set, size) in active.iter().zip(proportions(&shares, scaling)) {
        scale_set(ctx, work, sets, set, size).await?;
    }
    Ok(())
}
