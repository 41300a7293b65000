//! The arithmetic of rollouts: how many pods may be missing, how many too many, and who gets how many of them
//! (`pkg/controller/deployment/util`). Pure.

use apimachinery::int_or_string::IntOrString;
use apis::views::deployment::Deployment;

/// Upstream's way to say "none": the default that old clients could not leave out.
const UNLIMITED: i64 = i32::MAX as i64;

/// What the strategy allows, in pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RolloutLimits {
    /// Above the desired number.
    pub max_surge: i64,
    /// Below the desired number.
    pub max_unavailable: i64,
}

impl RolloutLimits {
    /// Of a deployment; nothing is allowed where the strategy is not `RollingUpdate`.
    pub(super) fn of(deployment: &Deployment) -> RolloutLimits {
        if !is_rolling_update(deployment) {
            return RolloutLimits::default();
        }
        let rolling = deployment.spec.strategy.rolling_update.clone().unwrap_or_default();
        let zero = IntOrString::Int(0);
        let replicas = deployment.replicas();
        let surge = rolling.max_surge.as_ref().unwrap_or(&zero);
        let unavailable = rolling.max_unavailable.as_ref().unwrap_or(&zero);
        let limits = resolve_fenceposts(surge, unavailable, replicas);
        let max_unavailable = if replicas == 0 { 0 } else { limits.max_unavailable.min(replicas) };
        RolloutLimits { max_unavailable, ..limits }
    }
}

/// Whether one ReplicaSet shrinks while the other grows.
pub(super) fn is_rolling_update(deployment: &Deployment) -> bool {
    deployment.spec.strategy.strategy_type == "RollingUpdate"
}

/// Percentages in pods: the surge rounds up, the unavailable round down, and if that leaves neither, one pod
/// may be missing, or nothing would ever move.
pub(super) fn resolve_fenceposts(
    surge: &IntOrString,
    unavailable: &IntOrString,
    desired: i64,
) -> RolloutLimits {
    // Validation refuses what is no number and no percentage.
    let max_surge = surge.scaled(desired, true).unwrap_or(0);
    let max_unavailable = unavailable.scaled(desired, false).unwrap_or(0);
    let max_unavailable = if max_surge == 0 && max_unavailable == 0 { 1 } else { max_unavailable };
    RolloutLimits { max_surge, max_unavailable }
}

/// The size of the new ReplicaSet after one step (`NewRSNewReplicas`): it grows as far as the surge leaves
/// room. `total` is the size of all sets together.
pub(super) fn new_set_size(deployment: &Deployment, total: i64, new_size: i64) -> i64 {
    let desired = deployment.replicas();
    if !is_rolling_update(deployment) {
        return desired;
    }
    let room = desired + RolloutLimits::of(deployment).max_surge - total;
    if room <= 0 { new_size } else { new_size + room.min(desired - new_size) }
}

/// A ReplicaSet among others, as proportional scaling sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Its size.
    pub size: i64,
    /// The most pods that its deployment could have when it was last sized (annotation `max-replicas`).
    pub max_replicas_before: Option<i64>,
}

/// What a scaled deployment looks like to [`proportions`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Scaling {
    /// How many replicas are desired.
    pub replicas: i64,
    /// Allowed above it.
    pub max_surge: i64,
    /// `status.replicas`, where a set does not say what was before.
    pub status_replicas: i64,
}

/// New sizes for active sets that share a change of the deployment's size in proportion to their own, so that
/// a rollout in flight keeps its risk. `shares` come with the largest first, and what is left over goes to
/// that one.
pub(super) fn proportions(shares: &[Share], scaling: Scaling) -> Vec<i64> {
    let total: i64 = shares.iter().map(|share| share.size).sum();
    let allowed = if scaling.replicas > 0 { scaling.replicas + scaling.max_surge } else { 0 };
    let to_add = allowed - total;
    let mut added = 0;
    let mut sizes = Vec::with_capacity(shares.len());
    for share in shares {
        let proportion = proportion(share, scaling, to_add, added);
        added += proportion;
        sizes.push(share.size + proportion);
    }
    if let Some(largest) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    sizes
}

/// `GetReplicaSetProportion`
fn proportion(share: &Share, scaling: Scaling, to_add: i64, added: i64) -> i64 {
    if share.size == 0 || to_add == 0 || to_add == added {
        return 0;
    }
    let (fraction, allowed) = (fraction(share, scaling), to_add - added);
    if to_add > 0 { fraction.min(allowed) } else { fraction.max(allowed) }
}

/// `getReplicaSetFraction`: how far the set is from its share of the new total.
fn fraction(share: &Share, scaling: Scaling) -> i64 {
    if scaling.replicas == 0 {
        return -share.size;
    }
    let before = share.max_replicas_before.filter(|before| *before > 0).unwrap_or(scaling.status_replicas);
    if before == 0 {
        return 0;
    }
    let scaled = (share.size * (scaling.replicas + scaling.max_surge)) as f64 / before as f64;
    scaled.round() as i64 - share.size
}

/// The deadline, if there is one.
pub(super) fn progress_deadline_seconds(deployment: &Deployment) -> Option<i64> {
    deployment.spec.progress_deadline_seconds.filter(|seconds| *seconds < UNLIMITED)
}

/// How many old sets are kept, if there is a limit.
pub(super) fn revision_history_limit(deployment: &Deployment) -> Option<usize> {
    let limit = deployment.spec.revision_history_limit.filter(|limit| *limit < UNLIMITED)?;
    usize::try_from(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Value, json};

    fn deployment(replicas: i64, surge: Value, unavailable: Value) -> Deployment {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        Deployment::deserialize(json!({"spec": {"replicas": replicas, "strategy": strategy}})).unwrap()
    }

    #[test]
    fn fenceposts_round_as_upstream() {
        let cases = [
            (10, json!("25%"), json!("25%"), 3, 2),
            (1, json!("25%"), json!("25%"), 1, 0),
            (4, json!("25%"), json!("25%"), 1, 1),
            (0, json!("25%"), json!("25%"), 0, 0),
            (10, json!(0), json!(0), 0, 1),
            (10, json!(0), json!("1%"), 0, 1),
            (3, json!(1), json!(5), 1, 3),
            (10, json!("100%"), json!(0), 10, 0),
        ];
        for (replicas, surge, unavailable, max_surge, max_unavailable) in cases {
            let limits = RolloutLimits::of(&deployment(replicas, surge.clone(), unavailable.clone()));
            assert_eq!(
                limits,
                RolloutLimits { max_surge, max_unavailable },
                "{replicas} {surge} {unavailable}"
            );
        }
    }

    #[test]
    fn the_new_set_grows_into_the_surge() {
        // desired, surge, all pods, pods of the new set, its next size
        let cases =
            [(10, 3, 10, 0, 3), (10, 3, 13, 3, 3), (10, 3, 11, 3, 5), (10, 0, 10, 0, 0), (3, 1, 3, 3, 3)];
        for (replicas, surge, total, size, expected) in cases {
            let deployment = deployment(replicas, json!(surge), json!(0));
            assert_eq!(new_set_size(&deployment, total, size), expected, "{replicas} {surge} {total} {size}");
        }
        let recreate =
            Deployment::deserialize(json!({"spec": {"replicas": 4, "strategy": {"type": "Recreate"}}}));
        assert_eq!(new_set_size(&recreate.unwrap(), 9, 0), 4);
    }

    #[test]
    fn a_change_of_size_is_shared_in_proportion() {
        let share = |size, before| Share { size, max_replicas_before: Some(before) };
        let scaling = |replicas, max_surge| Scaling { replicas, max_surge, status_replicas: 0 };
        // Upstream's own table of proportional scaling, in the order of sizes.
        let cases: [(&[Share], Scaling, &[i64]); 8] = [
            (&[share(5, 10), share(5, 10)], scaling(12, 0), &[6, 6]),
            (&[share(5, 10), share(5, 10)], scaling(6, 0), &[3, 3]),
            (&[share(8, 10), share(2, 10)], scaling(5, 0), &[4, 1]),
            (&[share(8, 10), share(2, 10)], scaling(20, 0), &[16, 4]),
            (&[share(2, 3), share(1, 3)], scaling(5, 0), &[3, 2]),
            (&[share(5, 9), share(2, 9), share(2, 9)], scaling(5, 0), &[3, 1, 1]),
            (&[share(4, 4)], scaling(0, 0), &[0]),
            (&[share(5, 8), share(3, 8)], scaling(8, 2), &[6, 4]),
        ];
        for (shares, scaling, expected) in cases {
            assert_eq!(proportions(shares, scaling), expected, "{shares:?} {scaling:?}");
        }
    }
}
