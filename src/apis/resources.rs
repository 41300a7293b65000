//! Amounts of resources, and what a pod as a whole asks for (`k8s.io/component-helpers/resource`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::tree::{count, items, members, text};
use apimachinery::quantity::Quantity;

/// By resource (`v1.ResourceList`).
pub type Amounts = BTreeMap<String, Quantity>;

/// The amounts at `path`; what is no quantity is left out.
pub fn amounts(tree: &Value, path: &str) -> Amounts {
    let parse = |(name, value): (&String, &Value)| {
        let quantity = match value {
            Value::String(text) => Quantity::parse(text).ok()?,
            number => Quantity::parse(&number.to_string()).ok()?,
        };
        Some((name.clone(), quantity))
    };
    members(tree, path).filter_map(parse).collect()
}

/// What a pod requests: its containers and sidecars together or, where that is more, an init container with
/// the sidecars before it; or what it says of itself as a whole; and its overhead.
pub fn pod_requests(pod: &Value) -> Amounts {
    let mut total = total(pod, "requests");
    add(&mut total, &amounts(pod, "spec.overhead"));
    total
}

/// What a pod is limited to, in the same way. Overhead is added to what is limited only.
pub fn pod_limits(pod: &Value) -> Amounts {
    let mut total = total(pod, "limits");
    for (name, overhead) in amounts(pod, "spec.overhead") {
        if let Some(limit) = total.get_mut(&name) {
            limit.add(&overhead);
        }
    }
    total
}

/// Adds each amount.
pub fn add(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        total.entry(name.clone()).and_modify(|own| own.add(amount)).or_insert_with(|| amount.clone());
    }
}

fn total(pod: &Value, field: &str) -> Amounts {
    let path = format!("resources.{field}");
    let mut total = Amounts::new();
    for container in items(pod, "spec.containers") {
        add(&mut total, &amounts(container, &path));
    }
    let mut sidecars = Amounts::new();
    let mut most = Amounts::new();
    for container in items(pod, "spec.initContainers") {
        let mut own = amounts(container, &path);
        if text(container, "restartPolicy") == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            own = sidecars.clone();
        } else {
            add(&mut own, &sidecars);
        }
        set_max(&mut most, own);
    }
    set_max(&mut total, most);
    if count(pod, "spec.resources") > 0 {
        total.extend(amounts(pod, &format!("spec.{path}")));
    }
    total
}

fn set_max(total: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        let own = total.entry(name).or_insert_with(|| amount.clone());
        if amount > *own {
            *own = amount;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn init_containers_count_one_by_one_and_sidecars_with_the_rest() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}});
        let sidecar = |cpu: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
        let cases = [
            (json!({"containers": [container("1"), container("500m")]}), "1500m"),
            (
                json!({"containers": [container("1")], "initContainers": [container("3"), container("2")]}),
                "3",
            ),
            (json!({"containers": [container("1")], "initContainers": [sidecar("2"), container("3")]}), "5"),
            (json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}), "1250m"),
            (json!({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}), "4"),
        ];
        for (spec, cpu) in cases {
            assert_eq!(pod_requests(&json!({"spec": spec}))["cpu"].to_string(), cpu, "{spec}");
        }
        let pod =
            json!({"spec": {"containers": [container("1")], "overhead": {"cpu": "1", "memory": "1Gi"}}});
        let limits = pod_limits(&pod);
        assert_eq!((limits["cpu"].to_string(), limits.get("memory")), ("2".to_owned(), None));
    }
}
