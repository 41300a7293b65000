//! The status of a ReplicaSet: counted from its pods, written when it differs.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::conditions::{conditions_value, new_condition, remove_condition, set_condition};
use crate::controller::Reconcile;
use crate::pod_state::is_available;
use crate::status::{put_count, update_status};
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::kind::Kind;
use apis::views::meta::condition;
use apis::views::pod::Pod;
use apis::views::replica_set::{ReplicaSet, ReplicaSetStatus};

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Why the last round could not create or delete what it should.
pub(super) struct ReplicaFailureCondition {
    reason: &'static str,
    message: String,
}

impl ReplicaFailureCondition {
    /// Of the outcome of a round.
    pub(super) fn of(
        managed: &Result<(), Status>,
        active: &[Arc<Object>],
        set: &ReplicaSet,
    ) -> Option<ReplicaFailureCondition> {
        let error = managed.as_ref().err()?;
        let has_too_few = (active.len() as i64) < set.replicas();
        let reason = if has_too_few { "FailedCreate" } else { "FailedDelete" };
        Some(ReplicaFailureCondition { reason, message: error.to_string() })
    }
}

/// The status that the active pods, and the number of those on their way out where that is told, amount to.
pub(super) fn calculate(
    set: &ReplicaSet,
    active: &[Arc<Object>],
    terminating: Option<usize>,
    failure: Option<ReplicaFailureCondition>,
    now: Time,
) -> ReplicaSetStatus {
    let mut status = set.status.clone();
    let labels = template_labels(&set.spec.template);
    let min_ready_seconds = set.spec.min_ready_seconds;
    let has =
        |pod: &Object, key: &str, value: &str| pod.metadata.labels.get(key).is_some_and(|it| it == value);
    let has_all = |pod: &Object| labels.iter().all(|(key, value)| has(pod, key, value));
    let mut labeled = 0;
    let mut ready = 0;
    let mut available = 0;
    for pod in active {
        labeled += i64::from(has_all(pod));
        ready += i64::from(pod.view::<Pod>().is_ready());
        available += i64::from(is_available(pod, min_ready_seconds, now));
    }
    status.replicas = active.len() as i64;
    status.terminating_replicas = terminating.map(|count| count as i64);
    status.fully_labeled_replicas = labeled;
    status.ready_replicas = ready;
    status.available_replicas = available;
    match failure {
        Some(failure) if condition(&status.conditions, REPLICA_FAILURE).is_none() => {
            let new = new_condition(REPLICA_FAILURE, "True", failure.reason, &failure.message, now);
            set_condition(&mut status.conditions, new);
        }
        Some(_) => {}
        None => remove_condition(&mut status.conditions, REPLICA_FAILURE),
    }
    status
}

/// Writes `new` if it says something else than what is there.
pub(super) async fn write(
    ctx: &Reconcile,
    kind: &Kind,
    object: &Object,
    set: &ReplicaSet,
    mut new: ReplicaSetStatus,
) -> Result<(), Status> {
    new.observed_generation = object.metadata.generation;
    if new == set.status {
        return Ok(());
    }
    update_status(&ctx.client, kind, object, |status| put(status, &new)).await.map(drop)
}

fn template_labels(template: &Value) -> Vec<(&str, &str)> {
    let labels = template["metadata"]["labels"].as_object();
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

fn put(status: &mut Map<String, Value>, new: &ReplicaSetStatus) {
    status.insert("replicas".into(), new.replicas.into());
    put_count(status, "fullyLabeledReplicas", new.fully_labeled_replicas);
    put_count(status, "readyReplicas", new.ready_replicas);
    put_count(status, "availableReplicas", new.available_replicas);
    put_count(status, "observedGeneration", new.observed_generation);
    status.extend(new.terminating_replicas.map(|count| ("terminatingReplicas".into(), count.into())));
    if new.conditions.is_empty() {
        status.remove("conditions");
    } else {
        status.insert("conditions".into(), conditions_value(&new.conditions, false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod_state::next_availability_check;
    use chrono::DateTime;
    use serde::Deserialize;
    use serde_json::json;
    use std::time::Duration;

    fn pod(ready_at: Option<i64>, labels: Value) -> Arc<Object> {
        let at = |seconds| apimachinery::time::rfc3339(DateTime::from_timestamp(seconds, 0).unwrap());
        let conditions: Vec<Value> = ready_at
            .map(|seconds| json!({"type": "Ready", "status": "True", "lastTransitionTime": at(seconds)}))
            .into_iter()
            .collect();
        let tree = json!({"metadata": {"name": "p", "labels": labels}, "status": {"conditions": conditions}});
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    fn set(min_ready_seconds: i64) -> ReplicaSet {
        let template = json!({"metadata": {"labels": {"a": "b"}}});
        ReplicaSet::deserialize(json!({"spec": {
            "replicas": 3, "minReadySeconds": min_ready_seconds, "template": template}}))
        .unwrap()
    }

    #[test]
    fn pods_are_counted_by_what_they_are() {
        let now = DateTime::from_timestamp(100, 0).unwrap();
        let pods = [
            pod(Some(80), json!({"a": "b"})),
            pod(Some(95), json!({"a": "b", "c": "d"})),
            pod(None, json!({})),
        ];
        let status = calculate(&set(10), &pods, Some(2), None, now);
        let counts = (status.replicas, status.fully_labeled_replicas, status.ready_replicas);
        assert_eq!((counts, status.available_replicas, status.terminating_replicas), ((3, 2, 2), 1, Some(2)));
        assert_eq!(next_availability_check(&pods, 10, now), Some(Duration::from_secs(5)));
        assert_eq!(next_availability_check(&pods, 0, now), None);
    }

    #[test]
    fn a_failure_is_told_and_taken_back() {
        let now = DateTime::from_timestamp(100, 0).unwrap();
        let mut set = set(0);
        let failed = ReplicaFailureCondition::of(&Err(Status::bad_request("quota")), &[], &set);
        set.status = calculate(&set, &[], None, failed, now);
        let condition = condition(&set.status.conditions, REPLICA_FAILURE).unwrap();
        assert_eq!((condition.reason.as_str(), condition.message.as_str()), ("FailedCreate", "quota"));
        assert!(calculate(&set, &[], None, None, now).conditions.is_empty());
    }
}
