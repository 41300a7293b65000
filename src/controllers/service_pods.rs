//! Services and their pods, as both endpoint controllers see them (`k8s.io/endpointslice/util`).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::controller::{Change, Enqueue};
use apimachinery::int_or_string::IntOrString;
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::meta::condition;
use apis::views::pod::Pod;
use apis::views::service::{Service, ServicePort};
use client_go::lister::Lister;
use sync::Mutex;

/// When the change came about that led to this state of the endpoints, for measuring how long that took.
pub(crate) const LAST_CHANGE_TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// On the endpoints of services without a cluster IP.
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";

/// A port of a pod behind a port of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodPort {
    /// The service port's.
    pub name: String,
    /// The pod's.
    pub port: i64,
    /// `TCP`, `UDP`, `SCTP`.
    pub protocol: String,
    /// As `kubernetes.io/h2c`.
    pub app_protocol: Option<String>,
}

/// Whether the endpoints of a service are ours to keep: without a selector they are somebody else's.
pub(crate) fn has_managed_endpoints(service: &Service) -> bool {
    !service.spec.selector.is_empty() && service.spec.service_type != "ExternalName"
}

/// Whether a service has no address of its own.
pub(crate) fn is_headless(service: &Service) -> bool {
    matches!(service.spec.cluster_ip.as_str(), "" | "None")
}

/// The IP families of a service, its first one before the other.
pub(crate) fn address_types(service: &Service) -> Vec<&'static str> {
    let families = service.spec.ip_families.iter();
    let types: Vec<&'static str> = families
        .filter_map(|family| match family.as_str() {
            "IPv4" => Some("IPv4"),
            "IPv6" => Some("IPv6"),
            _ => None,
        })
        .collect();
    if !types.is_empty() {
        types
    } else if service.spec.cluster_ip.contains(':') {
        vec!["IPv6"]
    } else {
        vec!["IPv4"]
    }
}

/// The addresses of a pod that are of one family.
pub(crate) fn pod_addresses(pod: &Pod, address_type: &str) -> Vec<String> {
    let is_of_type = |ip: &str| ip.contains(':') == (address_type == "IPv6");
    let all = pod.status.pod_ips.iter().map(|it| it.ip.as_str());
    let first = Some(pod.status.pod_ip.as_str()).filter(|ip| !ip.is_empty() && pod.status.pod_ips.is_empty());
    all.chain(first).filter(|ip| is_of_type(ip)).map(str::to_owned).collect()
}

/// Sets or removes [`HEADLESS`].
pub(crate) fn put_headless_label(service: &Service, labels: &mut BTreeMap<String, String>) {
    if is_headless(service) {
        labels.insert(HEADLESS.into(), String::new());
    } else {
        labels.remove(HEADLESS);
    }
}

/// Whether a pod can have an endpoint at all (`ShouldPodBeInEndpoints`).
pub(crate) fn is_endpoint(object: &Object, includes_terminating: bool) -> bool {
    let pod = object.view::<Pod>();
    let has_address = !pod.status.pod_ip.is_empty() || !pod.status.pod_ips.is_empty();
    has_address && !pod.is_terminal() && (includes_terminating || !object.is_deleting())
}

/// Where a service's port leads on a pod; none where a named port does not exist there (`FindPort`).
pub(crate) fn pod_port(port: &ServicePort, pod: &Pod) -> Option<PodPort> {
    let protocol = if port.protocol.is_empty() { "TCP" } else { &port.protocol };
    let number = match &port.target_port {
        None => port.port,
        Some(IntOrString::Int(0)) => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => named_port(pod, name, protocol)?,
    };
    let (name, app_protocol) = (port.name.clone(), port.app_protocol.clone());
    Some(PodPort { name, port: number, protocol: protocol.into(), app_protocol })
}

/// The name that the headless service `service` gives a pod that asks for one.
pub(crate) fn hostname(service: &Object, object: &Object, pod: &Pod) -> Option<String> {
    let is_subdomain = pod.spec.subdomain == service.metadata.name;
    let is_near = object.metadata.namespace == service.metadata.namespace;
    (!pod.spec.hostname.is_empty() && is_subdomain && is_near).then(|| pod.spec.hostname.clone())
}

/// Puts the services whose endpoints a change of a pod may touch into the queue.
pub(crate) fn enqueue_services(services: &Lister, change: &Change<'_>, enqueue: &Enqueue) {
    if change.old().is_some_and(|old| !has_endpoint_changes(old, change.object())) {
        return;
    }
    let object = change.object();
    for service in services.list(&object.metadata.namespace, &Selector::everything()) {
        let view = service.view::<Service>();
        let matches = |pod: &Object| Selector::from_labels(&view.spec.selector).matches(&pod.metadata.labels);
        if has_managed_endpoints(&view) && (matches(object) || change.old().is_some_and(|old| matches(old))) {
            enqueue.batched(service.key());
        }
    }
}

/// Whether what endpoints are made of differs (`podEndpointsChanged`).
fn has_endpoint_changes(old: &Object, new: &Object) -> bool {
    let (old_pod, new_pod) = (old.view::<Pod>(), new.view::<Pod>());
    let ips = |pod: &Pod| pod.status.pod_ips.iter().map(|it| it.ip.clone()).collect::<Vec<_>>();
    old.metadata.labels != new.metadata.labels
        || old.is_deleting() != new.is_deleting()
        || old_pod.is_ready() != new_pod.is_ready()
        || old_pod.is_terminal() != new_pod.is_terminal()
        || old_pod.spec.node_name != new_pod.spec.node_name
        || old_pod.status.pod_ip != new_pod.status.pod_ip
        || ips(&old_pod) != ips(&new_pod)
}

fn named_port(pod: &Pod, name: &str, protocol: &str) -> Option<i64> {
    let sidecars =
        pod.spec.init_containers.iter().filter(|it| it.restart_policy.as_deref() == Some("Always"));
    let ports = pod.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    let mut found =
        ports.filter(|port| port.name == name && (port.protocol == protocol || port.protocol.is_empty()));
    found.next().map(|port| i64::from(port.container_port))
}

/// When the latest changes of services and pods came about (`TriggerTimeTracker`).
/// Bound: one entry a service, forgotten with it.
#[derive(Default)]
pub(crate) struct TriggerTimes(Mutex<HashMap<String, SeenPods>>);

#[derive(Default)]
struct SeenPods {
    service: Option<Time>,
    pods: HashMap<String, Time>,
}

impl TriggerTimes {
    /// The earliest of the times that were not there when last asked about `key`; none when nothing is newer.
    pub(crate) fn changed(&self, key: &str, service: &Object, pods: &[Arc<Object>]) -> Option<Time> {
        let now = SeenPods {
            service: service.metadata.creation_timestamp,
            pods: pods
                .iter()
                .filter_map(|pod| Some((pod.metadata.name.clone(), pod_trigger_time(pod)?)))
                .collect(),
        };
        let mut all = self.0.lock();
        let before = all.get(key);
        let is_new = |name: &str, time: &Time| {
            before.is_none_or(|before| before.pods.get(name).is_none_or(|seen| seen < time))
        };
        let changed_pods = now.pods.iter().filter(|(name, time)| is_new(name, time)).map(|(_, time)| *time);
        let changed_service = now.service.filter(|time| before.is_none_or(|it| it.service < Some(*time)));
        let earliest = changed_pods.chain(changed_service).min();
        all.insert(key.to_owned(), now);
        earliest
    }

    /// The service is gone.
    pub(crate) fn forget(&self, key: &str) {
        self.0.lock().remove(key);
    }
}

fn pod_trigger_time(pod: &Object) -> Option<Time> {
    if let Some(deleted) = pod.metadata.deletion_timestamp {
        return Some(deleted);
    }
    condition(&pod.view::<Pod>().status.conditions, "Ready").and_then(|ready| ready.last_transition_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Value, json};

    #[test]
    fn target_ports_are_found_by_number_and_by_name() {
        let container =
            json!({"name": "c", "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]});
        let pod = Pod::deserialize(json!({"spec": {"containers": [container]}})).unwrap();
        let find =
            |port: Value| pod_port(&ServicePort::deserialize(port).unwrap(), &pod).map(|port| port.port);
        assert_eq!(find(json!({"port": 80})), Some(80));
        assert_eq!(find(json!({"port": 80, "targetPort": 81})), Some(81));
        assert_eq!(find(json!({"port": 80, "targetPort": "http"})), Some(8080));
        assert_eq!(find(json!({"port": 80, "targetPort": "http", "protocol": "UDP"})), None);
        assert_eq!(find(json!({"port": 80, "targetPort": "admin"})), None);
    }
}
