//! How far a claim's growth is, as its status says it (`external-resizer`'s `resize_status.go` and
//! `volume/util/resize_util.go`): conditions, what is set aside, and the state of that.

use serde_json::{Value, json};

use apimachinery::time::{Time, rfc3339};
use apis::tree::{at, items, text};

/// Somebody works at it.
const RESIZING: &str = "Resizing";
/// Its node has yet to do its part.
const PENDING: &str = "FileSystemResizePending";
/// What says how a growth goes; the other conditions of a claim are none of its.
const OF_RESIZES: [&str; 4] = [RESIZING, PENDING, "ControllerResizeError", "NodeResizeError"];
/// On a claim whose node has nothing to do.
pub(crate) const NO_NODE_PART: &str = "volume.kubernetes.io/node-expansion-not-required";

/// The state of a growth (`v1.ClaimResourceStatus`).
pub(crate) fn state(claim: &Value) -> &str {
    text(claim, "status.allocatedResourceStatuses.storage")
}

/// The volume is being made larger (`markControllerResizeInProgress`). A growth to the same size that is
/// tried again says so beside what it said before.
pub(crate) fn in_progress(claim: &Value, size: &Value, now: Time) -> Value {
    let is_again = at(claim, "status.allocatedResources.storage") == size;
    let mut status = json!({
        "conditions": merged(claim, Some((RESIZING, String::new())), is_again, now),
        "allocatedResources": {"storage": size},
    });
    if !is_again {
        status["allocatedResourceStatuses"] = json!({"storage": "ControllerResizeInProgress"});
    }
    status
}

/// It cannot be made so large (`markControllerExpansionInfeasible`).
pub(crate) fn infeasible(claim: &Value, why: &str, now: Time) -> Value {
    let error = ("ControllerResizeError", format!("failed to expand pvc with {why}"));
    json!({
        "conditions": merged(claim, Some(error), true, now),
        "allocatedResourceStatuses": {"storage": "ControllerResizeInfeasible"},
    })
}

/// The volume is larger, and its node is to make the file system larger (`markForPendingNodeExpansion`).
pub(crate) fn pending(claim: &Value, now: Time) -> Value {
    let words = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
    json!({
        "conditions": merged(claim, Some((PENDING, words.to_owned())), true, now),
        "allocatedResourceStatuses": {"storage": "NodeResizePending"},
    })
}

/// The node is at it (`MarkNodeExpansionInProgress`).
pub(crate) fn on_node() -> Value {
    json!({"allocatedResourceStatuses": {"storage": "NodeResizeInProgress"}})
}

/// The node cannot do it (`MarkNodeExpansionInfeasible`).
pub(crate) fn infeasible_on_node(claim: &Value, why: &str, now: Time) -> Value {
    let error = ("NodeResizeError", format!("failed to expand pvc with {why}"));
    json!({
        "conditions": merged(claim, Some(error), true, now),
        "allocatedResourceStatuses": {"storage": "NodeResizeInfeasible"},
    })
}

/// It has what it asked for.
pub(crate) fn finished(claim: &Value, size: &Value, now: Time) -> Value {
    json!({
        "capacity": {"storage": size},
        "conditions": merged(claim, None, false, now),
        "allocatedResourceStatuses": null,
    })
}

/// The conditions with one more (`MergeResizeConditionsOfPVC`); those that spoke of a growth before stay only
/// if `keeps`.
fn merged(claim: &Value, new: Option<(&str, String)>, keeps: bool, now: Time) -> Vec<Value> {
    let is_new = |condition: &Value| new.as_ref().is_some_and(|new| text(condition, "type") == new.0);
    let stays = |condition: &&Value| {
        let of_resizes = OF_RESIZES.contains(&text(condition, "type"));
        !of_resizes || (keeps && !is_new(condition))
    };
    let mut conditions: Vec<Value> =
        items(claim, "status.conditions").iter().filter(stays).cloned().collect();
    if let Some((condition_type, message)) = &new {
        let mut condition =
            json!({"type": condition_type, "status": "True", "lastTransitionTime": rfc3339(now)});
        if !message.is_empty() {
            condition["message"] = message.as_str().into();
        }
        conditions.push(condition);
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(status: &Value) -> Vec<&str> {
        items(status, "conditions").iter().map(|condition| text(condition, "type")).collect()
    }

    #[test]
    fn conditions_of_others_stay_and_those_of_growth_follow_it() {
        let now = Time::UNIX_EPOCH;
        let mut claim =
            json!({"status": {"conditions": [{"type": "Foreign"}, {"type": "ControllerResizeError"}]}});
        let begun = in_progress(&claim, &json!("2Gi"), now);
        assert_eq!(types(&begun), ["Foreign", "Resizing"]);
        assert_eq!(begun["allocatedResourceStatuses"]["storage"], "ControllerResizeInProgress");
        claim["status"] = begun;
        let waits = pending(&claim, now);
        assert_eq!(types(&waits), ["Foreign", "Resizing", "FileSystemResizePending"]);
        claim["status"]["conditions"] = waits["conditions"].clone();
        assert_eq!(types(&finished(&claim, &json!("2Gi"), now)), ["Foreign"]);
    }

    #[test]
    fn a_growth_that_is_tried_again_says_why_it_was() {
        let now = Time::UNIX_EPOCH;
        let mut claim = json!({"status": {"allocatedResources": {"storage": "2Gi"}}});
        let failed = infeasible(&claim, "no room", now);
        assert_eq!(failed["conditions"][0]["message"], "failed to expand pvc with no room");
        claim["status"]["conditions"] = failed["conditions"].clone();
        let again = in_progress(&claim, &json!("2Gi"), now);
        assert_eq!(types(&again), ["ControllerResizeError", "Resizing"]);
        assert_eq!(again["allocatedResourceStatuses"], Value::Null);
        assert_eq!(types(&in_progress(&claim, &json!("1Gi"), now)), ["Resizing"]);
        assert_eq!(
            types(&infeasible_on_node(&claim, "no room", now)),
            ["ControllerResizeError", "NodeResizeError"]
        );
    }
}
