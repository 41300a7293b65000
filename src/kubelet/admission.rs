//! What a kubelet refuses although it was bound to its node (`pkg/kubelet/lifecycle/predicate.go`): a pod
//! whose host ports are taken, or that asks for more than is left. Pods that the scheduler placed fit;
//! those that name their node themselves may not.

use std::collections::BTreeMap;

use super::kuberuntime::state::is_sidecar;
use apimachinery::object::ObjectMeta;
use apimachinery::quantity::Quantity;
use apis::views::meta;
use apis::views::node_affinity::{NodeAffinity, has_labels};
use apis::views::pod::{Container, ContainerPort, Pod};

/// What is counted: the name, and the reason of a pod for which there is not enough.
const RESOURCES: [(&str, &str); 4] = [
    ("pods", "OutOfpods"),
    ("cpu", "OutOfcpu"),
    ("memory", "OutOfmemory"),
    ("ephemeral-storage", "OutOfephemeral-storage"),
];

/// Whether that is a reason which others give up their place for (`InsufficientResourceError`).
pub(crate) fn is_shortage(rejection: &Rejection) -> bool {
    RESOURCES.iter().any(|(_, reason)| *reason == rejection.reason)
}

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
    allocatable: &BTreeMap<String, String>,
) -> Option<Rejection> {
    let resources = short_of(pod, others.clone(), allocatable);
    let resources = resources.or_else(|| devices(pod, others.clone(), allocatable));
    if resources.is_some() {
        return resources;
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

/// What of the countable is not left for a pod beside the others.
pub(crate) fn short_of<'a>(
    pod: &Pod,
    others: impl Iterator<Item = &'a Pod> + Clone,
    allocatable: &BTreeMap<String, String>,
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
    None
}

/// That a pod asks for more than the node would have without any other.
pub(crate) fn over_capacity(pod: &Pod, allocatable: &BTreeMap<String, String>) -> Option<String> {
    ["memory", "cpu"].into_iter().find_map(|name| {
        let capacity = allocatable.get(name).map(|text| amount(name, text))?;
        let requested = requests(pod, name);
        (requested > capacity).then(|| {
            format!("Node didn't have enough capacity: {name}, requested: {requested}, capacity: {capacity}")
        })
    })
}

/// That a pod is made for another kind of node (`rejectPodAdmissionBasedOnOSField`).
pub(crate) fn wrong_system(pod: &Pod, operating_system: &str) -> Option<Rejection> {
    let wanted = pod.spec.os.as_ref()?;
    let message = "Failed to admit pod as the OS field doesn't match node OS".into();
    (wanted.name != operating_system).then_some(Rejection { reason: "PodOSNotSupported", message })
}

/// Whether it has to be known what the node is like now: of a pod that names it itself, and says what nodes
/// it is for. The scheduler has looked at all others.
pub(crate) fn asks_of_node(pod: &Pod) -> bool {
    let spec = &pod.spec;
    pod.status.start_time.is_none()
        && (!spec.node_selector.is_empty() || spec.affinity.is_some())
        && meta::condition(&pod.status.conditions, "PodScheduled").is_none()
}

/// That the node is none of those that a pod is for (`RequiredNodeAffinity`).
pub(crate) fn wrong_node(pod: &Pod, node: &ObjectMeta) -> Option<Rejection> {
    let required = NodeAffinity::of(pod).required;
    let is_right =
        has_labels(node, &pod.spec.node_selector) && required.is_none_or(|required| required.matches(node));
    (!is_right).then(|| Rejection {
        reason: "NodeAffinity",
        message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector".into(),
    })
}

/// Extended resources, as the device manager has them (`devicesToAllocate`): those that the node knows.
fn devices<'a>(
    pod: &Pod,
    others: impl Iterator<Item = &'a Pod> + Clone,
    allocatable: &BTreeMap<String, String>,
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

/// What the pod as a whole says; else the sum of what runs together, or the most that there is before
/// (`PodRequests`).
pub(crate) fn requests(pod: &Pod, name: &str) -> i64 {
    if name == "pods" {
        return 1;
    }
    let overhead = pod.spec.overhead.get(name).map_or(0, |text| amount(name, text));
    if let Some(text) = pod.spec.resources.as_ref().and_then(|whole| whole.requests.get(name)) {
        return amount(name, text) + overhead;
    }
    let of =
        |container: &Container| container.resources.requests.get(name).map_or(0, |text| amount(name, text));
    let mut sidecars = 0;
    let mut most = 0;
    for container in &pod.spec.init_containers {
        let own = of(container);
        most = most.max(sidecars + own);
        sidecars += if is_sidecar(container) { own } else { 0 };
    }
    let together: i64 = pod.spec.containers.iter().map(of).sum();
    most.max(together + sidecars) + overhead
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

    #[test]
    fn sidecars_and_the_pod_as_a_whole_count() {
        let resources = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let container = |cpu: &str| json!({"name": "c", "resources": resources(cpu)});
        let mut sidecar = container("2");
        sidecar["restartPolicy"] = "Always".into();
        let spec = json!({"initContainers": [sidecar, container("4")], "containers": [container("3")]});
        let before = pod(spec.clone());
        assert_eq!(requests(&before, "cpu"), 6000, "the second runs beside the first");
        let mut whole = spec;
        whole["resources"] = resources("8");
        assert_eq!(requests(&pod(whole.clone()), "cpu"), 8000);
        let allocatable = BTreeMap::from([("cpu".to_owned(), "7".to_owned())]);
        assert_eq!(over_capacity(&before, &allocatable), None);
        let why = "Node didn't have enough capacity: cpu, requested: 8000, capacity: 7000";
        assert_eq!(over_capacity(&pod(whole), &allocatable).as_deref(), Some(why));
    }

    #[test]
    fn pods_for_other_nodes_are_refused() {
        let mut node = ObjectMeta { name: "n".into(), ..ObjectMeta::default() };
        node.labels.insert("disk".into(), "ssd".into());
        let reason = |pod: &Pod| wrong_node(pod, &node).map(|rejection| rejection.reason);
        let selecting = |value: &str| pod(json!({"containers": [], "nodeSelector": {"disk": value}}));
        assert_eq!([reason(&selecting("ssd")), reason(&selecting("hdd"))], [None, Some("NodeAffinity")]);
        let expression = json!({"key": "disk", "operator": "DoesNotExist"});
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
        let drawn = pod(json!({"containers": [], "affinity": affinity}));
        assert_eq!(reason(&drawn), Some("NodeAffinity"));
        assert!(asks_of_node(&drawn) && !asks_of_node(&pod(json!({"containers": []}))));
        let placed = json!({"spec": {"nodeSelector": {"a": "b"}}, "status": {"conditions": [{"type": "PodScheduled"}]}});
        assert!(!asks_of_node(&Pod::deserialize(placed).unwrap()), "the scheduler has looked");
        let windows = pod(json!({"containers": [], "os": {"name": "windows"}}));
        assert_eq!(wrong_system(&windows, "linux").unwrap().reason, "PodOSNotSupported");
        assert_eq!(wrong_system(&windows, "windows"), None);
    }
}
