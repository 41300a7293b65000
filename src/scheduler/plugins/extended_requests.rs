//! What a claim for extended resources asks for: a request for each container that needs devices, and which
//! container uses which request (`createRequestsAndMappings` of `plugins/dynamicresources`).
//!
//! Init containers that end before others begin take the devices that those will have, and only what is
//! missing then is asked for besides: once for all of them, as much as the greediest needs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use apimachinery::quantity::Quantity;
use apis::views::pod::{Container, Pod};

/// The classes whose devices are given out as extended resources, by the resource.
pub(super) type DeviceResources = BTreeMap<String, String>;

/// The requests of a claim, and `v1.ContainerExtendedResourceRequest`s for the pod's status.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExtendedRequests {
    /// `resourceapi.DeviceRequest`s, by their names in order.
    pub requests: Vec<Value>,
    /// Which container uses which.
    pub mappings: Vec<Value>,
}

/// What one container asks for that nobody else has.
#[derive(Clone, Debug)]
struct DeviceShare {
    request: String,
    count: i64,
}

/// A container uses a request.
struct DeviceUse<'a> {
    container: &'a str,
    request: String,
}

/// The requests of a pod for these resources.
pub(super) fn requests_of(pod: &Pod, resources: &DeviceResources) -> ExtendedRequests {
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    let mut mappings = Vec::new();
    for (resource, class) in resources {
        let (shares, uses) = of_resource(pod, resource);
        for share in shares {
            let exactly =
                json!({"deviceClassName": class, "allocationMode": "ExactCount", "count": share.count});
            let request = json!({"name": share.request, "exactly": exactly});
            named.insert(share.request, request);
        }
        mappings.extend(uses.into_iter().map(
            |it| json!({"containerName": it.container, "resourceName": resource, "requestName": it.request}),
        ));
    }
    ExtendedRequests { requests: named.into_values().collect(), mappings }
}

fn of_resource<'a>(pod: &'a Pod, resource: &str) -> (Vec<DeviceShare>, Vec<DeviceUse<'a>>) {
    let all = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let containers: Vec<(usize, &Container)> = all.enumerate().collect();
    let ends = |place: usize, container: &Container| {
        place < pod.spec.init_containers.len() && container.restart_policy.as_deref() != Some("Always")
    };
    let mut lasting: Vec<Option<DeviceShare>> = vec![None; containers.len()];
    let mut uses = Vec::new();
    for (place, container) in containers.iter().filter(|(place, it)| !ends(*place, it)) {
        let (share, used) = of_container(*place, container, resource, &[]);
        lasting[*place] = share;
        uses.extend(used);
    }
    let mut shares: Vec<DeviceShare> = Vec::new();
    let mut passing = Vec::new();
    for (place, container) in containers.iter().filter(|(place, it)| ends(*place, it)) {
        let (share, used) = of_container(*place, container, resource, &lasting[*place..]);
        shares.extend(share);
        passing.extend(used);
    }
    let most = greediest(shares, &mut passing);
    uses.extend(passing);
    (most.into_iter().chain(lasting.into_iter().flatten()).collect(), uses)
}

/// Of several shares that are not needed at the same time the biggest, the first of equal ones; whoever uses
/// one of them uses that.
fn greediest(shares: Vec<DeviceShare>, uses: &mut [DeviceUse<'_>]) -> Option<DeviceShare> {
    let names: BTreeSet<String> = shares.iter().map(|share| share.request.clone()).collect();
    let bigger = |most: DeviceShare, it: DeviceShare| if it.count > most.count { it } else { most };
    let most = shares.into_iter().reduce(bigger)?;
    for used in uses.iter_mut().filter(|used| names.contains(&used.request)) {
        used.request.clone_from(&most.request);
    }
    Some(most)
}

/// What a container asks for beside what it may use of others, and all that it uses.
fn of_container<'a>(
    place: usize,
    container: &'a Container,
    resource: &str,
    of_others: &[Option<DeviceShare>],
) -> (Option<DeviceShare>, Vec<DeviceUse<'a>>) {
    let asked = &container.resources.requests;
    let amount = asked.get(resource).and_then(|text| Quantity::parse(text).ok());
    let wanted = amount.map_or(0, |amount| amount.value());
    let mut missing = wanted;
    let mut uses = Vec::new();
    for share in of_others.iter().flatten() {
        if missing <= 0 {
            break;
        }
        missing -= share.count;
        uses.push(DeviceUse { container: &container.name, request: share.request.clone() });
    }
    if missing <= 0 {
        return (None, uses);
    }
    // Requests are counted in the order of their names, whatever they are for.
    let number = asked.keys().position(|name| name == resource).unwrap_or_default();
    let request = format!("container-{place}-request-{number}");
    uses.push(DeviceUse { container: &container.name, request: request.clone() });
    (Some(DeviceShare { request, count: missing }), uses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(name: &str, requests: Value) -> Value {
        json!({"name": name, "resources": {"requests": requests}})
    }

    fn of(spec: Value) -> ExtendedRequests {
        let pod: Pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
        let resources = [("x.io/gpu", "gpu"), ("x.io/nic", "nic")];
        requests_of(&pod, &resources.map(|(name, class)| (name.to_owned(), class.to_owned())).into())
    }

    fn names_and_counts(found: &ExtendedRequests) -> Vec<(&str, i64)> {
        let one = |it: &Value| it["exactly"]["count"].as_i64().unwrap();
        found.requests.iter().map(|it| (text(it, "name"), one(it))).collect()
    }

    fn uses(found: &ExtendedRequests) -> Vec<[&str; 2]> {
        found.mappings.iter().map(|it| ["containerName", "requestName"].map(|name| text(it, name))).collect()
    }

    fn text<'a>(value: &'a Value, name: &str) -> &'a str {
        value[name].as_str().unwrap()
    }

    #[test]
    fn requests_are_named_by_the_places_of_container_and_resource() {
        let found = of(json!({"containers": [
            container("none", json!({"cpu": "1", "x.io/gpu": "0"})),
            container("both", json!({"cpu": "1", "x.io/gpu": "2", "x.io/nic": "1", "y.io/other": "3"}))]}));
        assert_eq!(
            found.requests[0],
            json!({"name": "container-1-request-1",
                "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}})
        );
        assert_eq!(names_and_counts(&found), [("container-1-request-1", 2), ("container-1-request-2", 1)]);
        let gpu = json!({"containerName": "both", "resourceName": "x.io/gpu",
            "requestName": "container-1-request-1"});
        assert_eq!((found.mappings.len(), &found.mappings[0]), (2, &gpu));
    }

    #[test]
    fn init_containers_use_what_others_will_have_and_share_the_rest() {
        let gpus = |name: &str, count: &str| container(name, json!({ "x.io/gpu": count }));
        let mut sidecar = gpus("sidecar", "1");
        sidecar["restartPolicy"] = "Always".into();
        let found = of(json!({
            "initContainers": [gpus("first", "5"), sidecar, gpus("second", "2"), gpus("third", "4")],
            "containers": [gpus("main", "2")]}));
        // The first may use the sidecar's and the main container's, the others only the latter.
        let expected =
            [("container-0-request-0", 2), ("container-1-request-0", 1), ("container-4-request-0", 2)];
        assert_eq!(names_and_counts(&found), expected);
        let expected = [
            ["sidecar", "container-1-request-0"],
            ["main", "container-4-request-0"],
            ["first", "container-1-request-0"],
            ["first", "container-4-request-0"],
            ["first", "container-0-request-0"],
            ["second", "container-4-request-0"],
            ["third", "container-4-request-0"],
            ["third", "container-0-request-0"],
        ];
        assert_eq!(uses(&found), expected);
    }
}
