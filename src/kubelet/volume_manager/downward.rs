//! The downward API: what a pod may know of itself, as variables and as files (`pkg/fieldpath`,
//! `pkg/api/v1/resource`).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::volume_manager::facts::VolumeFacts;
use apimachinery::quantity::Quantity;
use apis::views::pod::{Container, Pod};

/// `fieldRef`: nothing for a path that is none.
pub(super) fn field(facts: &VolumeFacts<'_>, path: &str) -> Option<String> {
    let VolumeFacts { pod, metadata, annotations, pod_ips, host_ips, .. } = facts;
    let key = |list: &str| path.strip_prefix(list)?.strip_prefix("['")?.strip_suffix("']");
    if let Some(label) = key("metadata.labels") {
        return Some(metadata.labels.get(label).cloned().unwrap_or_default());
    }
    if let Some(annotation) = key("metadata.annotations") {
        return Some(annotations.get(annotation).cloned().unwrap_or_default());
    }
    Some(match path {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.clone(),
        "metadata.labels" => lines(&metadata.labels),
        "metadata.annotations" => lines(annotations),
        "spec.nodeName" => pod.spec.node_name.clone(),
        "spec.serviceAccountName" => pod.spec.service_account_name.clone(),
        "status.hostIP" => host_ips.first().cloned().unwrap_or_default(),
        "status.hostIPs" => host_ips.join(","),
        "status.podIP" => pod_ips.ip.clone(),
        "status.podIPs" => pod_ips.ips().collect::<Vec<_>>().join(","),
        _ => return None,
    })
}

/// `key="value"`, a line each.
fn lines(entries: &BTreeMap<String, String>) -> String {
    entries.iter().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join("\n")
}

/// `resourceFieldRef`: an amount of the container in units of the divisor, rounded up. A limit that is
/// not set is that of the pod as a whole, else what the node has for pods (`defaultPodLimitsForDownwardAPI`).
pub(super) fn resource(facts: &VolumeFacts<'_>, own: &Container, source: &Value) -> Option<String> {
    let container = match source["containerName"].as_str().filter(|name| !name.is_empty()) {
        Some(name) => container(facts.pod, name)?,
        None => own,
    };
    let (list, name) = source["resource"].as_str()?.split_once('.')?;
    let amounts = if list == "limits" { &container.resources.limits } else { &container.resources.requests };
    let amount = match amounts.get(name) {
        None if list == "limits" => usual_limit(facts, name),
        amount => amount,
    };
    let amount = amount.map_or("0", String::as_str);
    let divisor = source["divisor"].as_str().filter(|divisor| *divisor != "0").unwrap_or("1");
    let (amount, divisor) = (Quantity::parse(amount).ok()?, Quantity::parse(divisor).ok()?);
    let (amount, divisor) = match name {
        "cpu" => (amount.milli_value(), divisor.milli_value()),
        _ => (amount.value(), divisor.value()),
    };
    let divisor = divisor.max(1);
    Some(((amount + divisor - 1) / divisor).to_string())
}

fn usual_limit<'a>(facts: &'a VolumeFacts<'_>, name: &str) -> Option<&'a String> {
    let whole = facts.pod.spec.resources.as_ref().and_then(|whole| whole.limits.get(name));
    whole.or_else(|| facts.allocatable.get(name))
}

fn container<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let mut all = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    all.find(|container| container.name == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::container_runtime::sandbox_status::PodSandboxStatus;
    use crate::volume_manager::sources::Sources;
    use apimachinery::object::Object;
    use apis::views::pod_detail::PodDetail;

    #[test]
    fn a_limit_that_is_not_set_is_that_of_the_pod_or_the_node() {
        let containers = json!([{"name": "a", "resources": {"limits": {"cpu": "1"}}}, {"name": "b"}]);
        let spec = json!({"containers": containers, "resources": {"limits": {"cpu": "3"}}});
        let object = Object::from_value(&json!({"metadata": {"name": "web"}, "spec": spec}), vec![]).unwrap();
        let (pod, detail) = (object.view::<Pod>(), object.view::<PodDetail>());
        let allocatable =
            [("cpu", "8"), ("memory", "9")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        let facts = VolumeFacts {
            pod: &pod,
            metadata: &object.metadata,
            annotations: &pod.metadata.annotations,
            detail: &detail,
            sources: &Sources::new(),
            pod_ips: &PodSandboxStatus::default(),
            host_ips: &[],
            cluster_dns: "",
            allocatable: &allocatable.into(),
            memory_capacity: 0,
        };
        let limits = ["limits.cpu", "limits.memory", "requests.cpu"].map(|name| {
            let of = |own: &Container| resource(&facts, own, &json!({"resource": name})).unwrap();
            pod.spec.containers.iter().map(of).collect::<Vec<_>>()
        });
        assert_eq!(limits, [["1", "3"], ["9", "9"], ["0", "0"]]);
    }
}
