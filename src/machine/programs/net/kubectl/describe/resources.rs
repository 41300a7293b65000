//! Requests, limits and what they come to, as `kubectl describe` writes them.

use std::collections::BTreeMap;

use apimachinery::quantity::Quantity;
use serde_json::Value;

use super::metadata::{list, text};
use super::page::TabbedPage;

/// ResourceAmounts by their names.
pub(super) type ResourceAmounts = BTreeMap<String, Quantity>;

/// Limits and requests, where there are any.
pub(super) fn of_container(page: &mut TabbedPage, resources: &Value, level: usize) {
    for (title, field) in [("Limits", "limits"), ("Requests", "requests")] {
        let amounts = amounts(&resources[field]);
        if amounts.is_empty() {
            continue;
        }
        page.line(level, format!("{title}:"));
        for (name, amount) in amounts {
            page.field(level + 1, &name, amount.to_string());
        }
    }
}

pub(super) fn amounts(map: &Value) -> ResourceAmounts {
    let members = map.as_object().into_iter().flatten();
    members.filter_map(|(name, value)| Some((name.clone(), parse(value)?))).collect()
}

fn parse(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        other => Quantity::parse(&other.to_string()).ok(),
    }
}

/// The amount that a variable has (`resourceFieldRef`): in units of its divisor, rounded up.
pub(super) fn of_variable(container: &Value, from: &Value) -> String {
    let (field, name) = text(from, "resource").split_once('.').unwrap_or_default();
    let amount = parse(&container["resources"][field][name]);
    let divisor = parse(&from["divisor"]).filter(|divisor| !divisor.is_zero());
    let is_cpu = name == "cpu";
    let Some(amount) = amount else {
        let is_the_nodes = field == "limits" && matches!(name, "cpu" | "memory");
        return if is_the_nodes { "node allocatable" } else { "0" }.to_owned();
    };
    let of = |amount: &Quantity| if is_cpu { amount.milli_value() } else { amount.value() };
    let divisor = divisor.map_or(if is_cpu { 1000 } else { 1 }, |divisor| of(&divisor)).max(1);
    ((of(&amount) + divisor - 1) / divisor).to_string()
}

fn add(to: &mut ResourceAmounts, from: ResourceAmounts) {
    for (name, amount) in from {
        match to.get_mut(&name) {
            Some(sum) => sum.add(&amount),
            None => drop(to.insert(name, amount)),
        }
    }
}

fn raise(to: &mut ResourceAmounts, from: &ResourceAmounts) {
    for (name, amount) in from {
        let is_more = to.get(name).is_none_or(|own| own.milli_value() < amount.milli_value());
        if is_more {
            to.insert(name.clone(), amount.clone());
        }
    }
}

/// What a pod requests, or its limits (`resourcehelper.PodRequests`): those of all its containers together,
/// or of the init container that wants most at its turn, and what running it costs.
pub(super) fn of_pod(pod: &Value, field: &str) -> ResourceAmounts {
    let spec = &pod["spec"];
    let mut sum = ResourceAmounts::new();
    list(&spec["containers"]).iter().for_each(|own| add(&mut sum, amounts(&own["resources"][field])));
    let mut beside = ResourceAmounts::new();
    let mut first = ResourceAmounts::new();
    for init in list(&spec["initContainers"]) {
        let mut own = amounts(&init["resources"][field]);
        if init["restartPolicy"] == "Always" {
            add(&mut sum, own.clone());
            add(&mut beside, own);
            own = beside.clone();
        } else {
            add(&mut own, beside.clone());
        }
        raise(&mut first, &own);
    }
    raise(&mut sum, &first);
    // What the pod says of itself as a whole goes before that.
    let own = amounts(&spec["resources"][field]);
    own.into_iter().for_each(|(name, amount)| drop(sum.insert(name, amount)));
    let overhead = amounts(&spec["overhead"]);
    let is_there = |name: &String| field == "requests" || sum.contains_key(name);
    let overhead = overhead.into_iter().filter(|(name, _)| is_there(name)).collect();
    add(&mut sum, overhead);
    sum
}

/// What pods request together, or their limits.
pub(super) fn of_pods(pods: &[Value], field: &str) -> ResourceAmounts {
    let mut sum = ResourceAmounts::new();
    pods.iter().for_each(|pod| add(&mut sum, of_pod(pod, field)));
    sum
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_requests_what_most_of_it_wants_at_once() {
        let own = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = own("50m");
        sidecar["restartPolicy"] = "Always".into();
        let pod = |init: Value| json!({"spec": {"containers": [own("100m"), own("100m")], "initContainers": [sidecar, init]}});
        let cpu = |pod: &Value| of_pod(pod, "requests")["cpu"].to_string();
        assert_eq!((cpu(&pod(own("10m"))), cpu(&pod(own("1")))), ("250m".to_owned(), "1050m".to_owned()));
        let container = json!({"resources": {"limits": {"cpu": "1500m", "memory": "64Mi"}}});
        let of = |resource: &str, divisor: &str| {
            of_variable(&container, &json!({"resource": resource, "divisor": divisor}))
        };
        assert_eq!((of("limits.cpu", "0"), of("limits.cpu", "1m")), ("2".to_owned(), "1500".to_owned()));
        assert_eq!(of("limits.memory", "1Mi"), "64");
        assert_eq!(of("requests.memory", "1Mi"), "0");
    }
}
