//! What a kubelet refuses although it was bound to its node (`pkg/kubelet/lifecycle/predicate.go`): a pod
//! whose host ports are taken, or that asks for more than is left. Pods that the scheduler placed fit;
//! those that name their node themselves may not.

use apimachinery::quantity::Quantity;
use apis::views::pod::{ContainerPort, Pod};

/// What is counted: the name, and the reason of a pod for which there is not enough.
const RESOURCES: [(&str, &str); 4] = [
    ("pods", "OutOfpods"),
    ("cpu", "OutOfcpu"),
    ("memory", "OutOfmemory"),
    ("ephemeral-storage", "OutOfephemeral-storage"),
];

/// Why a pod is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Whether a pod that is new on the node is refused, given the others that have not ended.
pub(crate) fn rejection<'a>(
    pod: &Pod,
    others: impl Iterator<Item = &'a Pod> + Clone,
    allocatable: &std::collections::BTreeMap<String, String>,
) -> Option<Rejection> {
    for (name, reason) in RESOURCES {
        let requested = requests(pod, name);
        let Some(capacity) = allocatable.get(name).map(|text| amount(name, text)).filter(|_| requested > 0)
        else {
            continue;
        };
        let used: i64 = others.clone().map(|other| requests(other, name)).sum();
        if requested + used > capacity {
            let message = format!(
                "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
            );
            return Some(Rejection { reason, message });
        }
    }
    if let Some(rejection) = devices(pod, others.clone(), allocatable) {
        return Some(rejection);
    }
    let mut wanted = host_ports(pod).peekable();
    wanted.peek()?;
    let taken: Vec<&ContainerPort> = others.flat_map(host_ports).collect();
    wanted.any(|port| taken.iter().any(|taken| conflict(port, taken))).then(|| Rejection {
        reason: "NodePorts",
        message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
            .into(),
    })
}

/// Extended resources, as the device manager has them (`devicesToAllocate`): those that the node knows.
fn devices<'a>(
    pod: &Pod,
    others: impl Iterator<Item = &'a Pod> + Clone,
    allocatable: &std::collections::BTreeMap<String, String>,
) -> Option<Rejection> {
    let extended = allocatable.iter().filter(|(name, _)| name.contains('/'));
    for (name, capacity) in extended {
        let requested = requests(pod, name);
        let used: i64 =
            if requested > 0 { others.clone().map(|other| requests(other, name)).sum() } else { 0 };
        let available = amount(name, capacity) - used;
        if requested > available.max(0) {
            let message = format!(
                "Allocate failed due to requested number of devices unavailable for {name}. Requested: \
                 {requested}, Available: {available}, which is unexpected"
            );
            return Some(Rejection { reason: "UnexpectedAdmissionError", message });
        }
    }
    None
}

/// The sum of the containers, or the most that an init container asks for.
fn requests(pod: &Pod, name: &str) -> i64 {
    if name == "pods" {
        return 1;
    }
    let of = |container: &apis::views::pod::Container| {
        container.resources.requests.get(name).map_or(0, |text| amount(name, text))
    };
    let together: i64 = pod.spec.containers.iter().map(of).sum();
    let first = pod.spec.init_containers.iter().map(of).max().unwrap_or(0);
    let overhead = pod.spec.overhead.get(name).map_or(0, |text| amount(name, text));
    together.max(first) + overhead
}

/// CPUs are counted by the thousandth.
fn amount(name: &str, text: &str) -> i64 {
    let Ok(quantity) = Quantity::parse(text) else { return 0 };
    if name == "cpu" { quantity.milli_value() } else { quantity.value() }
}

fn host_ports(pod: &Pod) -> impl Iterator<Item = &ContainerPort> {
    pod.spec.containers.iter().flat_map(|container| &container.ports).filter(|port| port.host_port != 0)
}

fn conflict(a: &ContainerPort, b: &ContainerPort) -> bool {
    let any = |port: &ContainerPort| matches!(port.host_ip.as_str(), "" | "0.0.0.0");
    a.host_port == b.host_port && a.protocol == b.protocol && (any(a) || any(b) || a.host_ip == b.host_ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn pod(spec: serde_json::Value) -> Pod {
        Pod::deserialize(json!({"spec": spec})).unwrap()
    }

    fn asking(name: &str, amount: &str) -> Pod {
        pod(json!({"containers": [{"name": "c", "resources": {"requests": {name: amount}}}]}))
    }

    #[test]
    fn devices_and_pods_run_out() {
        let allocatable =
            BTreeMap::from([("nvidia.com/gpu".into(), "2".into()), ("pods".into(), "2".into())]);
        let (one, two) = (asking("nvidia.com/gpu", "1"), asking("nvidia.com/gpu", "2"));
        assert_eq!(rejection(&two, std::iter::empty(), &allocatable), None);
        let refused = rejection(&two, [&one].into_iter(), &allocatable).unwrap();
        assert_eq!(refused.reason, "UnexpectedAdmissionError");
        assert!(
            refused.message.contains("nvidia.com/gpu. Requested: 2, Available: 1"),
            "{}",
            refused.message
        );
        let none = asking("cpu", "0");
        assert_eq!(rejection(&none, [&none, &none].into_iter(), &allocatable).unwrap().reason, "OutOfpods");
    }
}
