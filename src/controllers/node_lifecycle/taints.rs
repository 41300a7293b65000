//! The taints that a node's conditions call for. Pure.

use serde_json::{Value, json};

use apimachinery::time::{Time, rfc3339};
use apis::views::meta::condition;
use apis::views::node::{Node, Taint};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Condition, and the taint that keeps pods away while it is true.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

/// All taints that the node should have, those of others as they are; none when it has them. Pods are driven
/// out (`NoExecute`) only if `evicts`.
pub(super) fn desired(node: &Node, evicts: bool, now: Time) -> Option<Vec<Taint>> {
    let wanted = wanted(node, evicts);
    let is_ours = |taint: &Taint| match taint.effect.as_str() {
        "NoSchedule" => {
            matches!(taint.key.as_str(), NOT_READY | UNREACHABLE | UNSCHEDULABLE)
                || PRESSURES.iter().any(|(_, key)| taint.key == *key)
        }
        "NoExecute" => matches!(taint.key.as_str(), NOT_READY | UNREACHABLE),
        _ => false,
    };
    let is_wanted = |taint: &Taint| wanted.contains(&(taint.key.as_str(), taint.effect.as_str()));
    let has = |(key, effect): &(&str, &str)| {
        node.spec.taints.iter().any(|it| it.key == *key && it.effect == *effect)
    };
    let mut taints = node.spec.taints.clone();
    taints.retain(|taint| !is_ours(taint) || is_wanted(taint));
    let missing = wanted.iter().filter(|wanted| !has(wanted));
    taints.extend(missing.map(|(key, effect)| Taint {
        key: (*key).into(),
        effect: (*effect).into(),
        time_added: Some(now),
        ..Taint::default()
    }));
    (taints != node.spec.taints).then_some(taints)
}

/// Whether its pods have to leave already.
pub(super) fn is_leaving(node: &Node) -> bool {
    let drives_out =
        |taint: &Taint| taint.effect == "NoExecute" && matches!(taint.key.as_str(), NOT_READY | UNREACHABLE);
    node.spec.taints.iter().any(drives_out)
}

/// As they are written: times in whole seconds.
pub(super) fn value(taints: &[Taint]) -> Value {
    let value = |taint: &Taint| {
        let mut value = json!({"key": taint.key, "effect": taint.effect});
        if !taint.value.is_empty() {
            value["value"] = taint.value.as_str().into();
        }
        if let Some(time) = taint.time_added {
            value["timeAdded"] = rfc3339(time).into();
        }
        value
    };
    taints.iter().map(value).collect()
}

fn wanted(node: &Node, evicts: bool) -> Vec<(&'static str, &'static str)> {
    let mut wanted = Vec::new();
    let conditions = &node.status.conditions;
    let not_ready = match condition(conditions, "Ready").map(|ready| ready.status.as_str()) {
        Some("True") => None,
        Some("False") => Some(NOT_READY),
        Some(_) => Some(UNREACHABLE),
        // Not heard of yet: what it registered with stands.
        None => Some(NOT_READY),
    };
    wanted.extend(not_ready.map(|key| (key, "NoSchedule")));
    let is_true = |name: &str| condition(conditions, name).is_some_and(|it| it.status == "True");
    wanted.extend(PRESSURES.iter().filter(|(name, _)| is_true(name)).map(|(_, key)| (*key, "NoSchedule")));
    wanted.extend(node.spec.unschedulable.then_some((UNSCHEDULABLE, "NoSchedule")));
    let has_spoken = condition(conditions, "Ready").is_some();
    wanted.extend(not_ready.filter(|_| evicts && has_spoken).map(|key| (key, "NoExecute")));
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use serde::Deserialize;

    fn node(ready: &str, taints: Value) -> Node {
        let status = json!({"conditions": [{"type": "Ready", "status": ready}]});
        Node::deserialize(json!({"spec": {"taints": taints}, "status": status})).unwrap()
    }

    fn named(taints: Option<Vec<Taint>>) -> Vec<String> {
        let text =
            |taint: Taint| format!("{}:{}", taint.key.replace("node.kubernetes.io/", ""), taint.effect);
        taints.unwrap_or_default().into_iter().map(text).collect()
    }

    #[test]
    fn conditions_become_taints_and_leave_again() {
        let now = DateTime::from_timestamp(7, 0).unwrap();
        let unreachable = ["unreachable:NoSchedule", "unreachable:NoExecute"];
        assert_eq!(named(desired(&node("Unknown", json!([])), true, now)), unreachable);
        assert_eq!(named(desired(&node("Unknown", json!([])), false, now)), ["unreachable:NoSchedule"]);
        assert_eq!(named(desired(&node("False", json!([])), false, now)), ["not-ready:NoSchedule"]);
        let others =
            json!([{"key": "dedicated", "effect": "NoSchedule"}, {"key": NOT_READY, "effect": "NoSchedule"}]);
        assert_eq!(named(desired(&node("True", others), true, now)), ["dedicated:NoSchedule"]);
        assert_eq!(desired(&node("True", json!([])), true, now), None);
        let cordoned = Node {
            spec: Node::deserialize(json!({"spec": {"unschedulable": true}})).unwrap().spec,
            ..node("True", json!([]))
        };
        assert_eq!(named(desired(&cordoned, true, now)), ["unschedulable:NoSchedule"]);
    }
}
