//! The status of a Job: its conditions, and how it is written.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::controller::Reconcile;
use crate::status::put_count;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::batch::job::JOBS;
use apis::views::job::{JobCondition, JobStatus, UncountedTerminatedPods};

/// A condition as of now.
pub(super) fn new_condition(
    condition_type: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Time,
) -> JobCondition {
    JobCondition {
        condition_type: condition_type.into(),
        status: status.into(),
        last_probe_time: Some(now),
        last_transition_time: Some(now),
        reason: reason.into(),
        message: message.into(),
    }
}

/// Puts a condition in the place of its predecessor, or at the end; false when nothing changed. From nothing
/// to `False` is no change (`ensureJobConditionStatus`).
pub(super) fn ensure_condition(conditions: &mut Vec<JobCondition>, new: JobCondition) -> bool {
    let is_type = |it: &&mut JobCondition| it.condition_type == new.condition_type;
    match conditions.iter_mut().find(is_type) {
        Some(old) => {
            let is_same =
                (&old.status, &old.reason, &old.message) == (&new.status, &new.reason, &new.message);
            if !is_same {
                *old = new;
            }
            !is_same
        }
        None if new.status == "False" => false,
        None => {
            conditions.push(new);
            true
        }
    }
}

/// Writes the status, on the object as it was last read or written. A conflict is an error: the sync starts
/// again with what is new.
pub(super) async fn write(ctx: &Reconcile, job: &Object, status: &JobStatus) -> Result<Arc<Object>, Status> {
    let mut tree = job.to_value();
    let mut written = tree["status"].as_object().cloned().unwrap_or_default();
    put(&mut written, status);
    tree["status"] = written.into();
    let metadata = &job.metadata;
    ctx.client.update_status(&JOBS, &metadata.namespace, &metadata.name, tree).await
}

fn put(status: &mut Map<String, Value>, new: &JobStatus) {
    for (name, count) in [("active", new.active), ("succeeded", new.succeeded), ("failed", new.failed)] {
        put_count(status, name, count);
    }
    let time = |time: Option<Time>| time.map(|time| rfc3339(time).into());
    let indexes = Some(&new.completed_indexes).filter(|text| !text.is_empty());
    let conditions: Vec<Value> = new.conditions.iter().map(condition_value).collect();
    let optional: [(&str, Option<Value>); 8] = [
        ("ready", new.ready.map(Value::from)),
        ("terminating", new.terminating.map(Value::from)),
        ("startTime", time(new.start_time)),
        ("completionTime", time(new.completion_time)),
        ("completedIndexes", indexes.map(|text| text.as_str().into())),
        ("failedIndexes", new.failed_indexes.as_ref().map(|text| text.as_str().into())),
        ("uncountedTerminatedPods", new.uncounted_terminated_pods.as_ref().map(uncounted_value)),
        ("conditions", Some(conditions.into()).filter(|conditions| *conditions != json!([]))),
    ];
    for (name, value) in optional {
        match value {
            Some(value) => drop(status.insert(name.into(), value)),
            None => drop(status.remove(name)),
        }
    }
}

fn uncounted_value(uncounted: &UncountedTerminatedPods) -> Value {
    let lists = [("succeeded", &uncounted.succeeded), ("failed", &uncounted.failed)];
    let there = lists.into_iter().filter(|(_, uids)| !uids.is_empty());
    Value::Object(there.map(|(name, uids)| (name.to_owned(), json!(uids))).collect())
}

fn condition_value(condition: &JobCondition) -> Value {
    let mut value = json!({"type": condition.condition_type, "status": condition.status});
    let texts = [("reason", &condition.reason), ("message", &condition.message)];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        value[name] = text.as_str().into();
    }
    // These have no `omitempty` upstream that works for times: an unknown one is null.
    value["lastProbeTime"] = condition.last_probe_time.map_or(Value::Null, |time| rfc3339(time).into());
    value["lastTransitionTime"] =
        condition.last_transition_time.map_or(Value::Null, |time| rfc3339(time).into());
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_follow_each_other() {
        let now = Time::UNIX_EPOCH;
        let mut conditions = vec![];
        let suspended = |status, reason| new_condition("Suspended", status, reason, "", now);
        assert!(!ensure_condition(&mut conditions, suspended("False", "JobResumed")));
        assert!(ensure_condition(&mut conditions, suspended("True", "JobSuspended")));
        assert!(!ensure_condition(&mut conditions, suspended("True", "JobSuspended")));
        assert!(ensure_condition(&mut conditions, suspended("False", "JobResumed")));
        assert_eq!((conditions.len(), conditions[0].reason.as_str()), (1, "JobResumed"));
    }

    #[test]
    fn what_is_nothing_is_left_out_or_taken_back() {
        let mut tree = json!({"active": 2, "startTime": "2026-01-01T00:00:00Z", "other": 1});
        let status = JobStatus {
            succeeded: 1,
            ready: Some(0),
            uncounted_terminated_pods: Some(UncountedTerminatedPods::default()),
            ..JobStatus::default()
        };
        put(tree.as_object_mut().unwrap(), &status);
        assert_eq!(tree, json!({"succeeded": 1, "ready": 0, "uncountedTerminatedPods": {}, "other": 1}));
    }
}
