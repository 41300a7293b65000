//! The devices of extended resources that a node has by its config, as if a device plugin had registered them
//! (`pkg/kubelet/cm/devicemanager`): which of them a container has been given.
//!
//! How many are free is counted at admission; here each has a name, which the status of its container tells.
//! Whatever else stands in a node's capacity was written there by somebody, and has no plugin.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use apimachinery::object::Object;
use apimachinery::quantity::Quantity;
use apis::tree::{items, text};
use apis::validation::resources::is_extended;
use apis::views::pod::{Container as Spec, Pod};
use sync::Mutex;

/// As many devices of a resource as have names; of a node that has more nobody is told which they are.
const MAX_DEVICES: i64 = 512;

/// The devices of a node, and who has them.
#[derive(Default)]
pub struct DevicePlugins {
    /// How many there are, by resource.
    resources: BTreeMap<String, i64>,
    /// The pod that has a device, by resource and device. Bound: the devices that there are.
    given: Mutex<BTreeMap<(String, String), String>>,
}

/// What a container has of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenDevices {
    pub(crate) container: String,
    pub(crate) resource: String,
    /// As `gpu-0`.
    pub(crate) ids: Vec<String>,
}

impl DevicePlugins {
    /// Of a node with this capacity.
    pub(crate) fn of(capacity: &BTreeMap<String, String>) -> DevicePlugins {
        let count = |(name, amount): (&String, &String)| {
            let count = Quantity::parse(amount).ok()?.value();
            (is_extended(name) && count <= MAX_DEVICES).then(|| (name.clone(), count))
        };
        DevicePlugins { resources: capacity.iter().filter_map(count).collect(), given: Mutex::default() }
    }

    /// Gives the containers of a pod what they ask for, but for what a driver gives by a claim. Those that a
    /// kubelet before this one gave stay with it. An init container's devices go to those that come after.
    pub(crate) fn give(&self, pod: &Object, view: &Pod) -> Vec<GivenDevices> {
        let is_asked =
            |spec: &Spec| spec.resources.limits.keys().any(|name| self.resources.contains_key(name));
        if self.resources.is_empty() || !view.spec.containers.iter().any(is_asked) {
            return vec![];
        }
        let tree = pod.to_value();
        let mut all = Vec::new();
        for spec in &view.spec.containers {
            for (resource, amount) in &spec.resources.limits {
                if !self.resources.contains_key(resource) || is_claimed(&tree, &spec.name, resource) {
                    continue;
                }
                let had = had(&tree, &spec.name, resource);
                let count = Quantity::parse(amount).map_or(0, |amount| amount.value());
                let ids = self.take(&pod.metadata.uid, resource, had, count);
                all.push(GivenDevices { container: spec.name.clone(), resource: resource.clone(), ids });
            }
        }
        all
    }

    /// Those that it had, and the first that are free.
    fn take(&self, uid: &str, resource: &str, had: Vec<String>, count: i64) -> Vec<String> {
        let mut given = self.given.lock();
        let all = self.resources.get(resource).copied().unwrap_or_default();
        let mut ids: BTreeSet<(usize, String)> = had.into_iter().map(in_order).collect();
        for id in (0..all).map(|number| device(resource, number)) {
            let is_enough = i64::try_from(ids.len()).is_ok_and(|got| got >= count);
            if is_enough {
                break;
            }
            if !given.contains_key(&(resource.to_owned(), id.clone())) {
                ids.insert(in_order(id));
            }
        }
        for (_, id) in &ids {
            given.insert((resource.to_owned(), id.clone()), uid.to_owned());
        }
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// What a pod has is free again.
    pub(crate) fn free(&self, uid: &str) {
        self.given.lock().retain(|_, of| of != uid);
    }
}

/// `nvidia.com/gpu` has `gpu-0`, `gpu-1` and on.
fn device(resource: &str, number: i64) -> String {
    let name = resource.rsplit('/').next().unwrap_or(resource);
    format!("{name}-{number}")
}

/// `gpu-2` before `gpu-10`.
fn in_order(id: String) -> (usize, String) {
    (id.len(), id)
}

/// Whether a claim that the scheduler has made gives a container this resource.
fn is_claimed(pod: &Value, container: &str, resource: &str) -> bool {
    let mut mappings = items(pod, "status.extendedResourceClaimStatus.requestMappings").iter();
    mappings.any(|mapping| {
        text(mapping, "containerName") == container && text(mapping, "resourceName") == resource
    })
}

/// The devices that its status says a container has.
fn had(pod: &Value, container: &str, resource: &str) -> Vec<String> {
    let statuses = items(pod, "status.containerStatuses").iter();
    let told = statuses.filter(|status| text(status, "name") == container);
    let told = told.flat_map(|status| items(status, "allocatedResourcesStatus"));
    let own = told.filter(|told| text(told, "name") == resource);
    own.flat_map(|told| items(told, "resources"))
        .map(|device| text(device, "resourceID").to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(uid: &str, count: &str, status: Value) -> Object {
        let containers = json!([{"name": "c", "resources": {"limits": {"a.io/gpu": count, "cpu": "1"}}}]);
        let pod = json!({"metadata": {"name": uid, "uid": uid}, "spec": {"containers": containers}, "status": status});
        Object::from_value(&pod, vec![]).unwrap()
    }

    fn ids(plugins: &DevicePlugins, pod: &Object) -> Vec<String> {
        plugins.give(pod, &pod.view::<Pod>()).into_iter().flat_map(|given| given.ids).collect()
    }

    fn node(count: &str) -> DevicePlugins {
        let capacity = [("a.io/gpu", count), ("cpu", "8"), ("pods", "110")];
        DevicePlugins::of(&capacity.into_iter().map(|(name, amount)| (name.into(), amount.into())).collect())
    }

    #[test]
    fn the_first_devices_that_are_free_are_given_until_their_pod_has_ended() {
        let plugins = node("4");
        assert_eq!(ids(&plugins, &pod("p", "2", json!({}))), ["gpu-0", "gpu-1"]);
        assert_eq!(ids(&plugins, &pod("q", "1", json!({}))), ["gpu-2"]);
        plugins.free("p");
        assert_eq!(ids(&plugins, &pod("r", "3", json!({}))), ["gpu-0", "gpu-1", "gpu-3"]);
    }

    #[test]
    fn a_pod_keeps_what_an_earlier_kubelet_gave_it() {
        let plugins = node("16");
        let told =
            json!([{"name": "a.io/gpu", "resources": [{"resourceID": "gpu-10"}, {"resourceID": "gpu-9"}]}]);
        let status = json!({"containerStatuses": [{"name": "c", "allocatedResourcesStatus": told}]});
        assert_eq!(ids(&plugins, &pod("p", "2", status)), ["gpu-9", "gpu-10"]);
    }

    #[test]
    fn what_a_claim_gives_or_nobody_can_count_is_no_plugins() {
        let mapping = json!({"containerName": "c", "resourceName": "a.io/gpu", "requestName": "r"});
        let status = json!({"extendedResourceClaimStatus": {"requestMappings": [mapping]}});
        assert!(ids(&node("4"), &pod("p", "2", status)).is_empty());
        assert!(ids(&node("513"), &pod("p", "2", json!({}))).is_empty());
        assert_eq!(ids(&node("512"), &pod("p", "1", json!({}))), ["gpu-0"]);
    }
}
