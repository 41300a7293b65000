//! Conditions that devices must have before their pod is bound (`bindingConditions`,
//! `bindingFailureConditions`): somebody attaches the device meanwhile, and says so in the claim's status.

use std::time::Duration;

use serde_json::Value;

use apimachinery::time::{self, Time};
use apis::tree::{at, items, text, texts};

/// A device cannot be had after all, as whoever attaches it says.
#[derive(Debug, PartialEq)]
pub(crate) struct BindingFailed(pub String);

/// Whether any of a claim's devices has to become ready (`hasBindingConditions`).
pub(crate) fn has_binding_conditions(claim: &Value) -> bool {
    is_slow(at(claim, "status.allocation"))
}

/// Whether any device of an allocation has to become ready.
pub(crate) fn is_slow(allocation: &Value) -> bool {
    let results = items(allocation, "devices.results");
    results.iter().any(|result| !items(result, "bindingConditions").is_empty())
}

/// Whether all devices of a claim are ready (`isClaimReadyForBinding`); one without conditions always is. A
/// claim of which it is not known yet that it has devices is not.
///
/// # Errors
/// One of them never will be.
pub(crate) fn is_ready(claim: &Value) -> Result<bool, BindingFailed> {
    if at(claim, "status.allocation").is_null() {
        return Ok(false);
    }
    for result in items(claim, "status.allocation.devices.results") {
        let wanted = texts(result, "bindingConditions");
        if wanted.is_empty() {
            continue;
        }
        let Some(device) = status_of(claim, result) else { return Ok(false) };
        for failure in texts(result, "bindingFailureConditions") {
            if let Some(condition) = true_condition(device, failure) {
                let (name, reason) = (text(claim, "metadata.name"), text(condition, "reason"));
                let message = text(condition, "message");
                let words = format!("claim {name} binding failed: reason={reason}, message={message:?}");
                return Err(BindingFailed(words));
            }
        }
        if wanted.into_iter().any(|condition| true_condition(device, condition).is_none()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a claim's devices have had `timeout` since they were given to it (`isClaimTimeout`).
pub(crate) fn is_timed_out(claim: &Value, timeout: Duration, now: Time) -> bool {
    let since = time::parse(text(claim, "status.allocation.allocationTimestamp"));
    let has_passed = |since: Time| (now - since).to_std().is_ok_and(|passed| passed > timeout);
    has_binding_conditions(claim) && since.is_some_and(has_passed)
}

fn status_of<'a>(claim: &'a Value, result: &Value) -> Option<&'a Value> {
    let is_it = |device: &&Value| {
        ["driver", "pool", "device"].into_iter().all(|field| text(device, field) == text(result, field))
    };
    items(claim, "status.devices").iter().find(is_it)
}

fn true_condition<'a>(device: &'a Value, name: &str) -> Option<&'a Value> {
    let is_it = |condition: &&Value| text(condition, "type") == name && text(condition, "status") == "True";
    items(device, "conditions").iter().find(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(conditions: Value) -> Value {
        let id = json!({"driver": "d", "pool": "p", "device": "gpu-0"});
        let mut result = id.clone();
        result["bindingConditions"] = json!(["Attached", "Powered"]);
        result["bindingFailureConditions"] = json!(["Broken"]);
        let mut device = id;
        device["conditions"] = conditions;
        let allocation =
            json!({"devices": {"results": [result]}, "allocationTimestamp": "2026-01-01T00:00:00Z"});
        json!({"metadata": {"name": "c"}, "status": {"allocation": allocation, "devices": [device]}})
    }

    #[test]
    fn all_conditions_are_needed_and_one_failure_is_enough() {
        let is = |name: &str, status: &str| json!({"type": name, "status": status, "reason": "Because", "message": "of \"it\""});
        let failed =
            BindingFailed("claim c binding failed: reason=Because, message=\"of \\\"it\\\"\"".into());
        let cases = [
            (json!([]), Ok(false)),
            (json!([is("Attached", "True")]), Ok(false)),
            (json!([is("Attached", "True"), is("Powered", "False")]), Ok(false)),
            (json!([is("Attached", "True"), is("Powered", "True"), is("Broken", "False")]), Ok(true)),
            (json!([is("Attached", "True"), is("Powered", "True"), is("Broken", "True")]), Err(failed)),
        ];
        for (conditions, expected) in cases {
            assert_eq!(is_ready(&claim(conditions.clone())), expected, "{conditions}");
        }
        let mut unknown = claim(json!([is("Broken", "True")]));
        unknown["status"]["devices"][0]["device"] = "gpu-1".into();
        assert_eq!(is_ready(&unknown), Ok(false));
        assert_eq!(is_ready(&json!({"metadata": {"name": "c"}})), Ok(false));
        let quick = json!({"status": {"allocation": {"devices": {"results": [{"device": "a"}]}}}});
        assert_eq!(is_ready(&quick), Ok(true));
    }

    #[test]
    fn the_time_counts_from_the_allocation() {
        let at = |text: &str| time::parse(text).unwrap();
        let (claim, ten) = (claim(json!([])), Duration::from_secs(600));
        assert!(!is_timed_out(&claim, ten, at("2026-01-01T00:10:00Z")));
        assert!(is_timed_out(&claim, ten, at("2026-01-01T00:10:01Z")));
        let without = json!({"status": {"allocation": {"devices": {"results": [{"device": "a"}]},
            "allocationTimestamp": "2026-01-01T00:00:00Z"}}});
        assert!(!is_timed_out(&without, ten, at("2027-01-01T00:00:00Z")));
    }
}
