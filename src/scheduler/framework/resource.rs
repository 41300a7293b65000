//! Amounts of resources as numbers, and what a pod asks for (`framework.Resource`,
//! `component-helpers/resource`).

use std::collections::BTreeMap;

use apimachinery::quantity::Quantity;
use apis::views::pod::{Container, Pod};

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
/// container with the sidecars that started before it; and its overhead.
pub fn pod_requests(pod: &Pod) -> Resource {
    requests(pod, |container| Resource::of(&container.resources.requests))
}

/// What a pod asks for, where a container that asks for no CPU or no memory counts for a little of it: what
/// spreads pods that ask for nothing.
pub fn non_zero_requests(pod: &Pod) -> Resource {
    requests(pod, |container| {
        let requests = &container.resources.requests;
        let mut resource = Resource::of(requests);
        if !requests.contains_key("cpu") {
            resource.milli_cpu = DEFAULT_MILLI_CPU;
        }
        if !requests.contains_key("memory") {
            resource.memory = DEFAULT_MEMORY;
        }
        resource
    })
}

fn requests(pod: &Pod, of: impl Fn(&Container) -> Resource) -> Resource {
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
    total.add(&Resource::of(&pod.spec.overhead), 1);
    total
}

#[cfg(test)]
mod tests {
    use super::*;
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
            assert_eq!(pod_requests(&pod).milli_cpu, milli_cpu, "{spec}");
        }
    }

    #[test]
    fn a_container_that_asks_for_nothing_counts_for_a_little() {
        let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [
            {}, {"resources": {"requests": {"cpu": "0", "memory": "1Gi"}}}]}}))
        .unwrap();
        let requests = non_zero_requests(&pod);
        assert_eq!((requests.milli_cpu, requests.memory), (100, (1 << 30) + DEFAULT_MEMORY));
    }
}
