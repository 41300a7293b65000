//! Pods of old revisions go, from the last to the partition, as far as pods may be missing
//! (`updateStatefulSetAfterInvariantEstablished`); the next rounds make new ones.

use std::sync::Arc;

use super::StatefulSetController;
use super::replicas::revision_of;
use super::round::Round;
use crate::controller::Reconcile;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::views::stateful_set::StatefulSet;

impl StatefulSetController {
    /// Every pod that goes is one less of the current revision.
    pub(super) async fn rolling_update(
        &self,
        ctx: &Reconcile,
        round: &Round<'_>,
        current_replicas: &mut i64,
    ) -> Result<(), Status> {
        for pod in self.doomed(round) {
            match self.delete_pod(ctx, round.work, pod).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => *current_replicas -= 1,
            }
        }
        Ok(())
    }

    /// While the gate of `maxUnavailable` is off one pod goes at a time, the last that is old, and not while
    /// one above it is not available. While it is on, where no order holds, pods that are not available
    /// anyway go first and cost nothing: they would otherwise use up what may be missing, and never be
    /// replaced.
    fn doomed<'a>(&self, round: &'a Round<'_>) -> Vec<&'a Arc<Object>> {
        let set = &round.work.view;
        let rolling = set.spec.update_strategy.rolling_update.as_ref();
        let partition = rolling.map_or(0, |rolling| rolling.partition);
        if !self.replaces_several {
            return self.last_old(round, partition).into_iter().collect();
        }
        let room = usize::try_from(max_unavailable(set) - round.replicas.unavailable).unwrap_or(0);
        let updatable = round.replicas.present.range(set.start() + partition..).rev().map(|(_, pod)| pod);
        let is_old =
            |pod: &&Arc<Object>| revision_of(pod) != round.revisions.update.name() && !pod.is_deleting();
        let old = updatable.filter(is_old);
        if set.is_monotonic() {
            return old.take(room).collect();
        }
        let (broken, sound): (Vec<_>, Vec<_>) = old.partition(|pod| self.is_unavailable(round, pod));
        broken.into_iter().chain(sound.into_iter().take(room)).collect()
    }

    /// A place whose pod is only just made is as one whose pod is not available.
    fn last_old<'a>(&self, round: &'a Round<'_>, partition: i64) -> Option<&'a Arc<Object>> {
        let set = &round.work.view;
        for ordinal in (set.start() + partition..set.start() + set.replicas()).rev() {
            let pod = round.replicas.present.get(&ordinal)?;
            if revision_of(pod) != round.revisions.update.name() && !pod.is_deleting() {
                return Some(pod);
            }
            if pod.is_deleting() || self.is_unavailable(round, pod) {
                return None;
            }
        }
        None
    }
}

/// A share is rounded down, but one pod may always be missing.
fn max_unavailable(set: &StatefulSet) -> i64 {
    let rolling = set.spec.update_strategy.rolling_update.as_ref();
    let bound = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
    bound.and_then(|bound| bound.scaled(set.replicas(), false).ok()).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[test]
    fn one_may_always_be_missing() {
        let cases = [
            (10, json!(null), 1),
            (10, json!({}), 1),
            (10, json!({"maxUnavailable": 3}), 3),
            (10, json!({"maxUnavailable": "25%"}), 2),
            (3, json!({"maxUnavailable": "10%"}), 1),
        ];
        for (replicas, rolling, expected) in cases {
            let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
            let set = json!({"spec": {"replicas": replicas, "updateStrategy": strategy}});
            assert_eq!(max_unavailable(&StatefulSet::deserialize(set.clone()).unwrap()), expected, "{set}");
        }
    }
}
