//! Conditions in statuses: how controllers of all kinds set and keep them.

use serde_json::{Value, json};

use apimachinery::time::{Time, rfc3339};
use apis::views::meta::{Condition, condition};

/// A condition as of now, without `lastUpdateTime`, which only Deployments have.
pub(crate) fn new_condition(
    condition_type: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Time,
) -> Condition {
    Condition {
        condition_type: condition_type.into(),
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
        last_transition_time: Some(now),
        ..Condition::default()
    }
}

/// Adds or replaces the condition of its type, last in the list. One with the same status and reason stays as
/// it is; the time of transition stays while the status does.
pub(crate) fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition) {
    if let Some(current) = condition(conditions, &new.condition_type) {
        if current.status == new.status && current.reason == new.reason {
            return;
        }
        if current.status == new.status {
            new.last_transition_time = current.last_transition_time;
        }
    }
    remove_condition(conditions, &new.condition_type);
    conditions.push(new);
}

/// Removes the condition of a type.
pub(crate) fn remove_condition(conditions: &mut Vec<Condition>, condition_type: &str) {
    conditions.retain(|condition| condition.condition_type != condition_type);
}

/// As they are written: times in whole seconds, the reason and message there also when they are empty if
/// `with_empty` (kinds that use `metav1.Condition`).
pub(crate) fn conditions_value(conditions: &[Condition], with_empty: bool) -> Value {
    conditions.iter().map(|condition| condition_value(condition, with_empty)).collect()
}

fn condition_value(condition: &Condition, with_empty: bool) -> Value {
    let mut value = json!({"type": condition.condition_type, "status": condition.status});
    for (name, text) in [("reason", &condition.reason), ("message", &condition.message)] {
        if with_empty || !text.is_empty() {
            value[name] = text.as_str().into();
        }
    }
    let times = [
        ("lastTransitionTime", condition.last_transition_time),
        ("lastUpdateTime", condition.last_update_time),
    ];
    for (name, time) in times {
        if let Some(time) = time {
            value[name] = rfc3339(time).into();
        }
    }
    if let Some(generation) = condition.observed_generation {
        value["observedGeneration"] = generation.into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    #[test]
    fn a_transition_is_a_change_of_status() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let mut conditions = vec![];
        set_condition(&mut conditions, new_condition("Ready", "True", "A", "", at(1)));
        set_condition(&mut conditions, new_condition("Ready", "True", "B", "", at(2)));
        assert_eq!((conditions[0].reason.as_str(), conditions[0].last_transition_time), ("B", Some(at(1))));
        set_condition(&mut conditions, new_condition("Ready", "True", "B", "new text", at(3)));
        assert_eq!(conditions[0].message, "");
        set_condition(&mut conditions, new_condition("Ready", "False", "B", "", at(4)));
        assert_eq!((conditions.len(), conditions[0].last_transition_time), (1, Some(at(4))));
    }
}
