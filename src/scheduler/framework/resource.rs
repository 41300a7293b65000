//! Amounts of resources as numbers, and what a pod asks for (`framework.Resource`,
//! `component-helpers/resource`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use apimachinery::object::{Object, nullable};
use apimachinery::quantity::Quantity;
use apis::views::meta::{self, Condition};
use apis::views::pod::{Container, Pod, Resources};

/// What a container counts for that asks for no CPU: a tenth of one, in thousandths.
const DEFAULT_MILLI_CPU: i64 = 100;
/// What a container counts for that asks for no memory, in bytes.
const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// An amount of every resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Thousandths of a CPU.
    pub milli_cpu: i64,
    /// Bytes of memory.
    pub memory: i64,
    /// Bytes of the node's disk.
    pub ephemeral_storage: i64,
    /// How many pods; of nodes only.
    pub allowed_pods: i64,
    /// Whatever else there is, as `example.com/gpu`.
    pub scalar: BTreeMap<String, i64>,
}

impl Resource {
    /// Reads amounts as they stand in an object; what is no quantity counts as nothing.
    pub fn of(amounts: &BTreeMap<String, String>) -> Resource {
        let mut resource = Resource::default();
        for (name, amount) in amounts {
            let Ok(quantity) = Quantity::parse(amount) else { continue };
            match name.as_str() {
                "cpu" => resource.milli_cpu = quantity.milli_value(),
                "memory" => resource.memory = quantity.value(),
                "ephemeral-storage" => resource.ephemeral_storage = quantity.value(),
                "pods" => resource.allowed_pods = quantity.value(),
                _ => {
                    resource.scalar.insert(name.clone(), quantity.value());
                }
            }
        }
        resource
    }

    /// Adds `other` `times` (1, or -1 to take it away).
    pub fn add(&mut self, other: &Resource, times: i64) {
        self.combine(other, |own, other| own.saturating_add(other.saturating_mul(times)));
    }

    /// The bigger of each.
    pub fn set_max(&mut self, other: &Resource) {
        self.combine(other, i64::max);
    }

    /// How much of one there is, CPU in thousandths.
    pub fn amount(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.milli_cpu,
            "memory" => self.memory,
            "ephemeral-storage" => self.ephemeral_storage,
            other => self.scalar.get(other).copied().unwrap_or(0),
        }
    }

    /// Whether it is nothing at all.
    pub fn is_zero(&self) -> bool {
        let Resource { milli_cpu, memory, ephemeral_storage, .. } = self;
        *milli_cpu == 0 && *memory == 0 && *ephemeral_storage == 0 && self.scalar.is_empty()
    }

    fn combine(&mut self, other: &Resource, combine: impl Fn(i64, i64) -> i64) {
        self.milli_cpu = combine(self.milli_cpu, other.milli_cpu);
        self.memory = combine(self.memory, other.memory);
        self.ephemeral_storage = combine(self.ephemeral_storage, other.ephemeral_storage);
        for (name, amount) in &other.scalar {
            let own = self.scalar.entry(name.clone()).or_default();
            *own = combine(*own, *amount);
        }
    }
}

/// What a pod asks for (`PodRequests`): its containers and sidecars together or, if that is more, an init
/// container with the sidecars that started before it; instead of that, what it asks for as a whole; and its
/// overhead. While it is resized, the larger of what it has and what it shall have.
pub fn pod_requests(pod: &Pod, resized: Option<&ResizedPod>) -> Resource {
    requests(pod, resized, false)
}

/// What a pod asks for, where a container that asks for no CPU or no memory counts for a little of it: what
/// spreads pods that ask for nothing.
pub fn non_zero_requests(pod: &Pod, resized: Option<&ResizedPod>) -> Resource {
    requests(pod, resized, true)
}

fn requests(pod: &Pod, resized: Option<&ResizedPod>, at_least_a_little: bool) -> Resource {
    let of = |container: &Container| {
        let mut resource = container_requests(container, resized);
        let asked = &container.resources.requests;
        if at_least_a_little && !asked.contains_key("cpu") {
            resource.milli_cpu = resource.milli_cpu.max(DEFAULT_MILLI_CPU);
        }
        if at_least_a_little && !asked.contains_key("memory") {
            resource.memory = resource.memory.max(DEFAULT_MEMORY);
        }
        resource
    };
    let mut total = of_containers(pod, of);
    if let Some(whole) = pod.spec.resources.as_deref() {
        take_instead(&mut total, &of_pod_level(whole, resized));
    }
    total.add(&Resource::of(&pod.spec.overhead), 1);
    total
}

fn of_containers(pod: &Pod, of: impl Fn(&Container) -> Resource) -> Resource {
    let mut total = Resource::default();
    for container in &pod.spec.containers {
        total.add(&of(container), 1);
    }
    let mut sidecars = Resource::default();
    let mut most = Resource::default();
    for container in &pod.spec.init_containers {
        let mut own = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            total.add(&own, 1);
            sidecars.add(&own, 1);
            own = sidecars.clone();
        } else {
            own.add(&sidecars, 1);
        }
        most.set_max(&own);
    }
    total.set_max(&most);
    total
}

/// `determineContainerReqs`
fn container_requests(container: &Container, resized: Option<&ResizedPod>) -> Resource {
    let spec = Resource::of(&container.resources.requests);
    let Some(resized) = resized else { return spec };
    match resized.status.container(&container.name) {
        Some(status) => resized.larger(spec, &status.resources, &status.allocated_resources),
        None => spec,
    }
}

/// What a pod says as a whole; only CPU, memory and huge pages can be said so.
fn of_pod_level(whole: &Resources, resized: Option<&ResizedPod>) -> BTreeMap<String, i64> {
    let asked = Resource::of(&whole.requests);
    let asked = match resized {
        Some(resized) => {
            let ResizedStatus { resources, allocated_resources, .. } = &resized.status;
            resized.larger(asked, resources, allocated_resources)
        }
        None => asked,
    };
    let may_be_said =
        |name: &&String| matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-");
    let names = whole.requests.keys().filter(may_be_said);
    names.map(|name| (name.clone(), asked.amount(name))).collect()
}

fn take_instead(total: &mut Resource, whole: &BTreeMap<String, i64>) {
    for (name, amount) in whole {
        match name.as_str() {
            "cpu" => total.milli_cpu = *amount,
            "memory" => total.memory = *amount,
            _ => drop(total.scalar.insert(name.clone(), *amount)),
        }
    }
}

/// A pod whose resources may differ from what its spec says: somebody has changed it since it was made.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResizedPod {
    status: ResizedStatus,
}

/// What the kubelet says of the resources that a pod has.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResizedStatus {
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
    resources: Resources,
    #[serde(deserialize_with = "nullable")]
    allocated_resources: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    container_statuses: Vec<ResizedContainer>,
    #[serde(deserialize_with = "nullable")]
    init_container_statuses: Vec<ResizedContainer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResizedContainer {
    name: String,
    resources: Resources,
    #[serde(deserialize_with = "nullable")]
    allocated_resources: BTreeMap<String, String>,
}

impl ResizedPod {
    /// None of a pod whose spec is as it was made: its status says nothing else.
    pub fn of(object: &Object) -> Option<Arc<ResizedPod>> {
        (object.metadata.generation > 1).then(|| object.view::<ResizedPod>())
    }

    /// The largest; of what is asked for nothing when the node will never have that much.
    fn larger(&self, asked: Resource, actual: &Resources, allocated: &BTreeMap<String, String>) -> Resource {
        let pending = meta::condition(&self.status.conditions, "PodResizePending");
        let is_hopeless = pending.is_some_and(|it| it.status == "True" && it.reason == "Infeasible");
        let has_any = !actual.requests.is_empty() || !allocated.is_empty();
        let mut most = if is_hopeless && has_any { Resource::default() } else { asked };
        most.set_max(&Resource::of(&actual.requests));
        most.set_max(&Resource::of(allocated));
        most
    }
}

impl ResizedStatus {
    fn container(&self, name: &str) -> Option<&ResizedContainer> {
        let mut all = self.container_statuses.iter().chain(&self.init_container_statuses);
        all.find(|status| status.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::pod_info::PodInfo;
    use serde_json::json;

    #[test]
    fn init_containers_count_one_by_one_and_sidecars_with_the_rest() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let sidecar = |cpu: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
        let cases = [
            (json!({"containers": [container("1"), container("500m")]}), 1500),
            (
                json!({"containers": [container("1")], "initContainers": [container("3"), container("2")]}),
                3000,
            ),
            (json!({"containers": [container("1")], "initContainers": [sidecar("2"), container("3")]}), 5000),
            (json!({"containers": [container("2")], "initContainers": [container("3"), sidecar("2")]}), 4000),
            (json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}), 1250),
            (json!({"containers": [{}]}), 0),
        ];
        for (spec, milli_cpu) in cases {
            let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
            assert_eq!(pod_requests(&pod, None).milli_cpu, milli_cpu, "{spec}");
        }
    }

    #[test]
    fn a_container_that_asks_for_nothing_counts_for_a_little() {
        let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [
            {}, {"resources": {"requests": {"cpu": "0", "memory": "1Gi"}}}]}}))
        .unwrap();
        let requests = non_zero_requests(&pod, None);
        assert_eq!((requests.milli_cpu, requests.memory), (100, (1 << 30) + DEFAULT_MEMORY));
    }

    #[test]
    fn what_a_pod_asks_for_as_a_whole_counts_instead() {
        let cases = [
            (json!({"requests": {"cpu": "3"}}), (3000, 1 << 30)),
            (json!({"requests": {"cpu": "100m", "memory": "2Gi"}}), (100, 2 << 30)),
            (json!({"requests": {"ephemeral-storage": "1Gi"}}), (1000, 1 << 30)),
            (json!({"limits": {"cpu": "3"}}), (1000, 1 << 30)),
        ];
        for (resources, expected) in cases {
            let container = json!({"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}});
            let spec = json!({"containers": [container], "resources": resources, "overhead": {"cpu": "1m"}});
            let pod: Pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
            let requests = pod_requests(&pod, None);
            assert_eq!((requests.milli_cpu - 1, requests.memory), expected, "{spec}");
        }
    }

    #[test]
    fn while_a_pod_is_resized_the_larger_counts() {
        let cases =
            [("1", "2", "Deferred", 2000), ("3", "2", "Deferred", 3000), ("3", "2", "Infeasible", 2000)];
        for (asked, has, reason, expected) in cases {
            let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
            let condition = json!({"type": "PodResizePending", "status": "True", "reason": reason});
            let status = json!({"name": "a", "resources": requests(has), "allocatedResources": {"cpu": has}});
            let tree = json!({
                "metadata": {"name": "a", "generation": 2},
                "spec": {"containers": [{"name": "a", "resources": requests(asked)}]},
                "status": {"conditions": [condition], "containerStatuses": [status]},
            });
            let info = PodInfo::new(crate::fixtures::object(tree));
            assert_eq!(info.requests.milli_cpu, expected, "{asked} {has} {reason}");
        }
    }
}
