//! Amounts of resources, and what a pod as a whole asks for (`k8s.io/component-helpers/resource`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::tree::{count, items, members, text};
use super::views::pod::{Container, Pod, Resources};
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
    add_where_limited(&mut total, amounts(pod, "spec.overhead"));
    total
}

fn add_where_limited(total: &mut Amounts, overhead: Amounts) {
    for (name, overhead) in overhead {
        if let Some(limit) = total.get_mut(&name) {
            limit.add(&overhead);
        }
    }
}

/// Adds each amount.
pub fn add(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        total.entry(name.clone()).and_modify(|own| own.add(amount)).or_insert_with(|| amount.clone());
    }
}

/// What the containers of a pod request, whatever it says of itself as a whole.
pub fn requests_of_containers(pod: &Pod) -> Amounts {
    of_view(pod, |resources| &resources.requests)
}

/// What [`pod_requests`] says of a pod that has been read.
pub fn requests_of(pod: &Pod) -> Amounts {
    let mut total = requests_of_containers(pod);
    total.extend(pod.spec.resources.iter().flat_map(|whole| parsed(&whole.requests)));
    add(&mut total, &parsed(&pod.spec.overhead));
    total
}

/// What [`pod_limits`] says of a pod that has been read.
pub fn limits_of(pod: &Pod) -> Amounts {
    let mut total = of_view(pod, |resources| &resources.limits);
    total.extend(pod.spec.resources.iter().flat_map(|whole| parsed(&whole.limits)));
    add_where_limited(&mut total, parsed(&pod.spec.overhead));
    total
}

fn parsed(amounts: &BTreeMap<String, String>) -> Amounts {
    let parse = |(name, text): (&String, &String)| Some((name.clone(), Quantity::parse(text).ok()?));
    amounts.iter().filter_map(parse).collect()
}

fn of_view(pod: &Pod, of: fn(&Resources) -> &BTreeMap<String, String>) -> Amounts {
    let own = |container: &Container| parsed(of(&container.resources));
    let init = pod.spec.init_containers.iter();
    let init = init.map(|init| (own(init), init.restart_policy.as_deref() == Some("Always")));
    together(pod.spec.containers.iter().map(own), init)
}

fn total(pod: &Value, field: &str) -> Amounts {
    let path = format!("resources.{field}");
    let own = |container: &Value| amounts(container, &path);
    let init = items(pod, "spec.initContainers").iter();
    let init = init.map(|init| (own(init), text(init, "restartPolicy") == "Always"));
    let mut total = together(items(pod, "spec.containers").iter().map(own), init);
    if count(pod, "spec.resources") > 0 {
        total.extend(amounts(pod, &format!("spec.{path}")));
    }
    total
}

/// The most that containers need at one time; of those that come first with whether it is a sidecar.
fn together(
    containers: impl Iterator<Item = Amounts>,
    init: impl Iterator<Item = (Amounts, bool)>,
) -> Amounts {
    let mut total = Amounts::new();
    for own in containers {
        add(&mut total, &own);
    }
    let mut sidecars = Amounts::new();
    let mut most = Amounts::new();
    for (mut own, is_sidecar) in init {
        if is_sidecar {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            own = sidecars.clone();
        } else {
            add(&mut own, &sidecars);
        }
        set_max(&mut most, own);
    }
    set_max(&mut total, most);
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
            let pod = json!({"spec": spec});
            assert_eq!(pod_requests(&pod)["cpu"].to_string(), cpu, "{spec}");
            assert_eq!(requests_of(&serde_json::from_value(pod).unwrap())["cpu"].to_string(), cpu, "{spec}");
        }
        let pod =
            json!({"spec": {"containers": [container("1")], "overhead": {"cpu": "1", "memory": "1Gi"}}});
        let limits = pod_limits(&pod);
        assert_eq!((limits["cpu"].to_string(), limits.get("memory")), ("2".to_owned(), None));
        assert_eq!(limits_of(&serde_json::from_value(pod).unwrap()), limits);
    }
}
