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
/// not set is what the node has for pods.
pub(super) fn resource(facts: &VolumeFacts<'_>, own: &Container, source: &Value) -> Option<String> {
    let container = match source["containerName"].as_str().filter(|name| !name.is_empty()) {
        Some(name) => container(facts.pod, name)?,
        None => own,
    };
    let (list, name) = source["resource"].as_str()?.split_once('.')?;
    let amounts = if list == "limits" { &container.resources.limits } else { &container.resources.requests };
    let allocatable = || facts.allocatable.get(name).filter(|_| list == "limits");
    let amount = amounts.get(name).or_else(allocatable).map_or("0", String::as_str);
    let divisor = source["divisor"].as_str().filter(|divisor| *divisor != "0").unwrap_or("1");
    let (amount, divisor) = (Quantity::parse(amount).ok()?, Quantity::parse(divisor).ok()?);
    let (amount, divisor) = match name {
        "cpu" => (amount.milli_value(), divisor.milli_value()),
        _ => (amount.value(), divisor.value()),
    };
    let divisor = divisor.max(1);
    Some(((amount + divisor - 1) / divisor).to_string())
}

fn container<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let mut all = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    all.find(|container| container.name == name)
}
