//! The status of a deployment, and whether it progresses (`progress.go`, `calculateStatus`).

use std::time::Duration;

use chrono::TimeDelta;

use super::math::{RolloutLimits, progress_deadline_seconds};
use super::sets::{DeploymentWork, RolloutSet, Sets};
use crate::conditions::{remove_condition, set_condition};
use crate::controller::{Action, Reconcile};
use apimachinery::status::Status;
use apis::views::deployment::DeploymentStatus;
use apis::views::meta::{Condition, condition};

const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";
const NEW_REPLICA_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";

/// Counts, and writes if that differs (`syncDeploymentStatus`).
pub(super) async fn sync_status(
    ctx: &Reconcile,
    work: &mut DeploymentWork,
    sets: &Sets,
) -> Result<Action, Status> {
    work.status = calculate(work, sets);
    if work.status != work.view.status {
        work.write(ctx).await?;
    }
    Ok(Action::Done)
}

/// The status during a rollout, with the `Progressing` and `ReplicaFailure` conditions
/// (`syncRolloutStatus`). A rollout that shows no progress is looked at again when its deadline is over.
pub(super) async fn sync_rollout_status(
    ctx: &Reconcile,
    work: &mut DeploymentWork,
    sets: &Sets,
) -> Result<Action, Status> {
    let mut status = calculate(work, sets);
    let deadline = progress_deadline_seconds(&work.view);
    if deadline.is_none() {
        remove_condition(&mut status.conditions, PROGRESSING);
    }
    let current = condition(&work.status.conditions, PROGRESSING).cloned();
    let is_over = current.as_ref().is_some_and(|current| current.reason == NEW_REPLICA_SET_AVAILABLE)
        && status.replicas == status.updated_replicas;
    if let Some(deadline) = deadline.filter(|_| !is_over) {
        estimate(work, sets, &mut status, current.as_ref(), deadline);
    }
    match replica_failure(sets) {
        Some(failure) => set_condition(&mut status.conditions, failure),
        None => remove_condition(&mut status.conditions, REPLICA_FAILURE),
    }
    work.status = status;
    if work.status != work.view.status {
        work.write(ctx).await?;
    }
    Ok(next_check(work))
}

/// `checkPausedConditions`: a pause is told, and so is its end, so that the time between does not count.
pub(super) async fn check_paused_conditions(
    ctx: &Reconcile,
    work: &mut DeploymentWork,
) -> Result<(), Status> {
    if progress_deadline_seconds(&work.view).is_none() {
        return Ok(());
    }
    let reason =
        condition(&work.status.conditions, PROGRESSING).map(|it| it.reason.clone()).unwrap_or_default();
    // Lack of progress has been reported; that stands.
    if reason == TIMED_OUT {
        return Ok(());
    }
    let condition = match (work.view.spec.paused, reason == "DeploymentPaused") {
        (true, false) => work.condition(PROGRESSING, "Unknown", "DeploymentPaused", "Deployment is paused"),
        (false, true) => work.condition(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed"),
        _ => return Ok(()),
    };
    set_condition(&mut work.status.conditions, condition);
    work.write(ctx).await
}

/// `DeploymentComplete`: all pods are of the newest template, available, and nothing else is left.
pub(super) fn is_complete(work: &DeploymentWork, status: &DeploymentStatus) -> bool {
    let desired = work.view.replicas();
    [status.updated_replicas, status.replicas, status.available_replicas]
        .iter()
        .all(|count| *count == desired)
        && status.observed_generation >= work.object.metadata.generation
}

fn calculate(work: &DeploymentWork, sets: &Sets) -> DeploymentStatus {
    let available = sets.sum(|set| set.status.available_replicas);
    let updated = sets.new.as_ref().map_or(0, |new| new.view.status.replicas);
    let mut status = DeploymentStatus {
        observed_generation: work.object.metadata.generation,
        replicas: sets.sum(|set| set.status.replicas),
        updated_replicas: updated,
        ready_replicas: sets.sum(|set| set.status.ready_replicas),
        available_replicas: available,
        unavailable_replicas: (sets.total_size() - available).max(0),
        // Unknown as long as one set has not said.
        terminating_replicas: sets.all().map(|set| set.view.status.terminating_replicas).sum(),
        ..work.status.clone()
    };
    let min_available = work.view.replicas() - RolloutLimits::of(&work.view).max_unavailable;
    let (is_available, reason, message) = if available >= min_available {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    set_condition(&mut status.conditions, work.condition("Available", is_available, reason, message));
    status
}

fn estimate(
    work: &DeploymentWork,
    sets: &Sets,
    status: &mut DeploymentStatus,
    current: Option<&Condition>,
    deadline_seconds: i64,
) {
    let subject = match &sets.new {
        Some(new) => format!("ReplicaSet {:?}", new.name()),
        None => format!("Deployment {:?}", work.name()),
    };
    if is_complete(work, status) {
        let message = format!("{subject} has successfully progressed.");
        set_condition(
            &mut status.conditions,
            work.condition(PROGRESSING, "True", NEW_REPLICA_SET_AVAILABLE, &message),
        );
    } else if progressed(&work.status, status) {
        let message = format!("{subject} is progressing.");
        let mut condition = work.condition(PROGRESSING, "True", "ReplicaSetUpdated", &message);
        if let Some(current) = current.filter(|current| current.status == "True") {
            condition.last_transition_time = current.last_transition_time;
        }
        // Removed first, so that the same reason with a new time of update replaces it.
        remove_condition(&mut status.conditions, PROGRESSING);
        set_condition(&mut status.conditions, condition);
    } else if has_timed_out(work, current, deadline_seconds) {
        let message = format!("{subject} has timed out progressing.");
        set_condition(&mut status.conditions, work.condition(PROGRESSING, "False", TIMED_OUT, &message));
    }
}

/// `DeploymentProgressing`
fn progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let outdated = |status: &DeploymentStatus| status.replicas - status.updated_replicas;
    new.updated_replicas > old.updated_replicas
        || outdated(new) < outdated(old)
        || new.ready_replicas > old.ready_replicas
        || new.available_replicas > old.available_replicas
}

fn has_timed_out(work: &DeploymentWork, current: Option<&Condition>, deadline_seconds: i64) -> bool {
    let Some(current) = current.filter(|current| current.reason != NEW_REPLICA_SET_AVAILABLE) else {
        return false;
    };
    let since = current.last_update_time.or(current.last_transition_time);
    current.reason == TIMED_OUT
        || since.is_some_and(|since| since + TimeDelta::seconds(deadline_seconds) < work.now)
}

/// The failure of the newest set, or else of any.
fn replica_failure(sets: &Sets) -> Option<Condition> {
    let of_set = |set: &RolloutSet| condition(&set.view.status.conditions, REPLICA_FAILURE).cloned();
    let failure = sets.new.as_ref().and_then(of_set).or_else(|| sets.old.iter().find_map(of_set))?;
    Some(Condition { last_update_time: failure.last_transition_time, ..failure })
}

/// `requeueStuckDeployment`
fn next_check(work: &DeploymentWork) -> Action {
    let current = condition(&work.status.conditions, PROGRESSING);
    let (Some(deadline), Some(current)) = (progress_deadline_seconds(&work.view), current) else {
        return Action::Done;
    };
    if is_complete(work, &work.status) || current.reason == TIMED_OUT {
        return Action::Done;
    }
    let Some(since) = current.last_update_time else { return Action::Done };
    let left = (since + TimeDelta::seconds(deadline) - work.now).to_std().unwrap_or_default();
    // A second more, since the time was cut to whole seconds when it was written.
    Action::RequeueAfter(left + Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::object::Object;
    use chrono::DateTime;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn work(status: Value) -> DeploymentWork {
        let spec = json!({"replicas": 3, "progressDeadlineSeconds": 600, "strategy": {"type": "Recreate"}});
        let tree = json!({"metadata": {"name": "web", "generation": 2}, "spec": spec, "status": status});
        let object = Object::from_value(&tree, vec![]).unwrap();
        DeploymentWork::of(Arc::new(object), DateTime::from_timestamp(10_000, 0).unwrap())
    }

    fn sets(status: Value) -> Sets {
        let tree = json!({"metadata": {"name": "web-1"}, "spec": {"replicas": 3}, "status": status});
        Sets { new: Some(RolloutSet::of(Arc::new(Object::from_value(&tree, vec![]).unwrap()))), old: vec![] }
    }

    fn progressing(reason: &str, seconds: i64) -> Value {
        let at = apimachinery::time::rfc3339(DateTime::from_timestamp(seconds, 0).unwrap());
        json!([{"type": "Progressing", "status": "True", "reason": reason, "lastUpdateTime": at}])
    }

    fn estimated(work: &DeploymentWork, sets: &Sets) -> (String, String) {
        let mut status = calculate(work, sets);
        let current = condition(&work.status.conditions, PROGRESSING).cloned();
        estimate(work, sets, &mut status, current.as_ref(), 600);
        let condition = condition(&status.conditions, PROGRESSING).cloned().unwrap_or_default();
        (condition.reason, condition.message)
    }

    #[test]
    fn a_rollout_progresses_completes_or_times_out() {
        let all = json!({"replicas": 3, "readyReplicas": 3, "availableReplicas": 3});
        let some = json!({"replicas": 3, "readyReplicas": 1, "availableReplicas": 1});
        let fresh = work(json!({"conditions": progressing("NewReplicaSetCreated", 9_990)}));
        let name = "ReplicaSet \"web-1\"";
        let (reason, message) = estimated(&fresh, &sets(all));
        assert_eq!(
            (reason.as_str(), message),
            ("NewReplicaSetAvailable", format!("{name} has successfully progressed."))
        );
        assert_eq!(estimated(&fresh, &sets(some.clone())).0, "ReplicaSetUpdated");
        let counts = json!({"replicas": 3, "updatedReplicas": 3, "readyReplicas": 1, "availableReplicas": 1});
        let stuck_since = |seconds| {
            let mut status = counts.clone();
            status["conditions"] = progressing("ReplicaSetUpdated", seconds);
            work(status)
        };
        assert_eq!(estimated(&stuck_since(9_500), &sets(some.clone())).0, "ReplicaSetUpdated");
        assert_eq!(next_check(&stuck_since(9_500)), Action::RequeueAfter(Duration::from_secs(101)));
        let (reason, message) = estimated(&stuck_since(9_000), &sets(some));
        assert_eq!((reason.as_str(), message), (TIMED_OUT, format!("{name} has timed out progressing.")));
    }

    #[test]
    fn availability_is_judged_by_the_minimum() {
        let status = calculate(&work(json!({})), &sets(json!({"replicas": 3, "availableReplicas": 2})));
        let available = condition(&status.conditions, "Available").unwrap();
        assert_eq!(
            (available.status.as_str(), available.reason.as_str()),
            ("False", "MinimumReplicasUnavailable")
        );
        assert_eq!((status.unavailable_replicas, status.terminating_replicas), (1, None));
    }
}
