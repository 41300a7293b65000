//! What is true of a cluster that was left alone for long enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubarium::apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use kubarium::apis::kind::Kind;
use kubarium::kinds::{NODES, PODS, REPLICA_SETS, SERVICES};
use kubarium::{Cluster, ListOptions};
use serde_json::Value;

use super::script::{ThereInTheEnd, kind};

/// What is not true of it.
pub(crate) async fn broken(cluster: &Cluster, expected: &ThereInTheEnd) -> Vec<String> {
    let mut wrong = vec![];
    let resources = ["deployments", "statefulsets", "daemonsets", "jobs", "services", "configmaps"];
    let mut owners = BTreeSet::new();
    for resource in resources {
        let found = list(cluster, kind(resource)).await;
        let names: BTreeSet<&str> = found.iter().map(name).collect();
        let wanted = expected.keys().filter(|(of, _)| *of == resource);
        wrong.extend(
            wanted.filter(|(_, name)| !names.contains(&**name)).map(|one| format!("{one:?} is gone")),
        );
        for object in &found {
            owners.insert(uid(object));
            wrong.extend(is_there(resource, object, expected));
        }
    }
    let sets = list(cluster, &REPLICA_SETS).await;
    owners.extend(sets.iter().map(uid));
    let pods = list(cluster, &PODS).await;
    for dependent in sets.iter().chain(&pods) {
        let owner = dependent["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default();
        if !owners.contains(owner) {
            wrong.push(format!("{} has no owner any more", name(dependent)));
        }
    }
    for pod in &pods {
        let why = pod_is_wrong(pod);
        let told = || cluster.flow().trace("pods", "default", name(pod)).render();
        wrong.extend(why.map(|why| format!("{why}\n{}", told())));
    }
    wrong.extend(addresses_are_wrong(&pods));
    wrong.extend(services_are_wrong(cluster, &pods).await);
    wrong.extend(list(cluster, &NODES).await.iter().filter_map(node_is_wrong));
    wrong
}

/// Of the namespace `default`, or of the cluster.
async fn list(cluster: &Cluster, kind: &Arc<Kind>) -> Vec<Value> {
    let namespace = if kind.namespaced { "default" } else { "" };
    let list = cluster.client().list(kind, namespace, &ListOptions::default()).await.unwrap();
    list.items.iter().map(|object| object.to_value()).collect()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// An object as it is to be; none when it is.
fn is_there(resource: &'static str, object: &Value, expected: &ThereInTheEnd) -> Option<String> {
    let name = name(object);
    // What every cluster has.
    if matches!(name, "kubernetes" | "kube-root-ca.crt") {
        return None;
    }
    let Some(pods) = expected.get(&(resource, name.to_owned())) else {
        return Some(format!("{resource} {name} was deleted, and is there"));
    };
    let status = &object["status"];
    let number = |field: &str| status[field].as_u64().unwrap_or_default();
    let found = match resource {
        "deployments" => [number("availableReplicas"), number("updatedReplicas"), number("replicas")],
        "statefulsets" => [number("readyReplicas"), number("updatedReplicas"), number("replicas")],
        "daemonsets" => ["numberReady", "updatedNumberScheduled", "desiredNumberScheduled"].map(number),
        "jobs" => [number("succeeded"); 3],
        _ => return None,
    };
    let wanted = match resource {
        "daemonsets" => 2,
        "jobs" => pods + 1,
        _ => *pods,
    };
    let generation = &object["metadata"]["generation"];
    let is_seen = resource == "jobs" || status["observedGeneration"] == *generation;
    let is_well = found == [wanted; 3] && is_seen && object["metadata"]["deletionTimestamp"].is_null();
    (!is_well).then(|| format!("{resource} {name} has {found:?} of {wanted} pods: {status}"))
}

fn pod_is_wrong(pod: &Value) -> Option<String> {
    let is_of_job = pod["metadata"]["ownerReferences"][0]["kind"] == "Job";
    let is_done = is_of_job && pod["status"]["phase"] == "Succeeded";
    let stays = pod["metadata"]["deletionTimestamp"].is_null();
    (!stays || !(is_done || is_ready(pod)))
        .then(|| format!("pod {} on {} is {}", name(pod), pod["spec"]["nodeName"], pod["status"]))
}

/// Nobody shares an address.
fn addresses_are_wrong(pods: &[Value]) -> Vec<String> {
    let mut by_address: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod["status"]["phase"] == "Running") {
        by_address.entry(pod["status"]["podIP"].as_str().unwrap_or_default()).or_default().push(name(pod));
    }
    let shared = by_address.into_iter().filter(|(_, pods)| pods.len() > 1);
    shared.map(|(address, pods)| format!("{address} is shared by {pods:?}")).collect()
}

/// A Service leads to the pods that it selects, and to no others.
async fn services_are_wrong(cluster: &Cluster, pods: &[Value]) -> Vec<String> {
    let slices = list(cluster, &ENDPOINT_SLICES).await;
    let is_selected = |pod: &&Value| pod["metadata"]["labels"]["of"] == "deployments" && is_ready(pod);
    let wanted: BTreeSet<&str> =
        pods.iter().filter(is_selected).filter_map(|pod| pod["status"]["podIP"].as_str()).collect();
    let services = list(cluster, &SERVICES).await;
    let own = services.iter().filter(|service| name(service) != "kubernetes");
    let mut wrong = vec![];
    for service in own {
        let of_service = slices.iter().filter(|slice| {
            slice["metadata"]["labels"]["kubernetes.io/service-name"] == service["metadata"]["name"]
        });
        let endpoints = of_service.flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
        let found: BTreeSet<&str> = endpoints.filter_map(|one| one["addresses"][0].as_str()).collect();
        if found != wanted {
            wrong.push(format!("service {} leads to {found:?} and not to {wanted:?}", name(service)));
        }
    }
    wrong
}

fn node_is_wrong(node: &Value) -> Option<String> {
    let is_well = is_ready(node) && node["spec"]["taints"].is_null();
    (!is_well)
        .then(|| format!("node {} is {} with {}", name(node), node["status"]["conditions"], node["spec"]))
}
