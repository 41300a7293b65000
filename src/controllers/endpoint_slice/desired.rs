//! Which endpoints a service should have, by address type and ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::service_pods::{address_types, hostname, is_endpoint, pod_addresses, pod_port};
use apimachinery::object::Object;
use apis::core::node_labels::ZONE;
use apis::views::endpoints::{
    Endpoint, EndpointConditions, EndpointHints, EndpointPort, NamedHint, TargetRef,
};
use apis::views::pod::Pod;
use apis::views::service::Service;
use client_go::lister::Lister;

/// The older name of the annotation comes first, if it is there.
const ANNOTATIONS: [&str; 2] =
    ["service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"];

/// What all endpoints of a slice share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndpointGroup {
    /// `IPv4` or `IPv6`.
    pub address_type: &'static str,
    /// The ports, sorted.
    pub ports: Vec<EndpointPort>,
}

/// Whether a service asks for hints by zone (`hintsEnabled`); then its `trafficDistribution` means nothing.
pub(super) fn asks_for_zones(annotations: &BTreeMap<String, String>) -> bool {
    let value = ANNOTATIONS.iter().find_map(|name| annotations.get(*name));
    value.is_some_and(|value| value == "Auto" || value == "auto")
}

/// The endpoints of each group. Every address type of the service has at least one group, so that a service
/// without pods has a slice all the same.
pub(crate) fn groups(
    object: &Object,
    service: &Service,
    pods: &[Arc<Object>],
    nodes: &Lister,
) -> BTreeMap<EndpointGroup, Vec<Endpoint>> {
    let mut groups: BTreeMap<EndpointGroup, Vec<Endpoint>> = BTreeMap::new();
    let distribution = service.spec.traffic_distribution.as_deref();
    let distribution = distribution.filter(|_| !asks_for_zones(&service.metadata.annotations));
    for address_type in address_types(service) {
        let mut is_empty = true;
        for pod in pods.iter().filter(|pod| is_endpoint(pod, true)) {
            let view = pod.view::<Pod>();
            let addresses = pod_addresses(&view, address_type);
            if addresses.is_empty() {
                continue;
            }
            let group = EndpointGroup { address_type, ports: ports(service, &view) };
            groups.entry(group).or_default().push(endpoint(
                object,
                service,
                distribution,
                pod,
                &view,
                addresses,
                nodes,
            ));
            is_empty = false;
        }
        if is_empty {
            groups.insert(EndpointGroup { address_type, ports: vec![] }, vec![]);
        }
    }
    groups
}

fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let found = service.spec.ports.iter().filter_map(|port| pod_port(port, pod));
    let mut ports: Vec<EndpointPort> = found
        .map(|port| EndpointPort {
            name: port.name,
            port: Some(port.port),
            protocol: port.protocol,
            app_protocol: port.app_protocol,
        })
        .collect();
    ports.sort();
    ports
}

/// Who should use an endpoint that is ready, as the service says (`trafficdist.ReconcileHints`).
fn hints(distribution: Option<&str>, zone: Option<&String>, node: Option<&String>) -> Option<EndpointHints> {
    let distribution = distribution?;
    let named =
        |name: Option<&String>| name.map(|name| NamedHint { name: name.clone() }).into_iter().collect();
    let hints = match distribution {
        "PreferClose" | "PreferSameZone" => EndpointHints { for_zones: named(zone), for_nodes: vec![] },
        "PreferSameNode" => EndpointHints { for_zones: named(zone), for_nodes: named(node) },
        _ => return None,
    };
    Some(hints).filter(|hints| *hints != EndpointHints::default())
}

/// A pod on its way out never is ready, unless the service publishes whatever there is; but it may still
/// serve.
fn endpoint(
    object: &Object,
    service: &Service,
    distribution: Option<&str>,
    pod: &Object,
    view: &Pod,
    addresses: Vec<String>,
    nodes: &Lister,
) -> Endpoint {
    let (serving, terminating) = (view.is_ready(), pod.is_deleting());
    let node_name = Some(view.spec.node_name.clone()).filter(|name| !name.is_empty());
    let node = node_name.as_deref().and_then(|name| nodes.get("", name));
    let metadata = &pod.metadata;
    let zone = node.and_then(|node| node.metadata.labels.get(ZONE).cloned());
    let is_ready = service.spec.publish_not_ready_addresses || (serving && !terminating);
    let hints = if is_ready { hints(distribution, zone.as_ref(), node_name.as_ref()) } else { None };
    Endpoint {
        addresses,
        conditions: EndpointConditions {
            ready: Some(is_ready),
            serving: Some(serving),
            terminating: Some(terminating),
        },
        hostname: hostname(object, pod, view),
        zone,
        hints,
        node_name,
        target_ref: Some(TargetRef {
            kind: "Pod".into(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            ..TargetRef::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Upstream's `TestReconcileHints_trafficDistribution`, in short.
    #[test]
    fn hints_are_as_the_service_distributes() {
        let zone = "zone-a".to_owned();
        let node = "node-1".to_owned();
        let of = |distribution: Option<&str>| json!(hints(distribution, Some(&zone), Some(&node)));
        let zones = json!({"forZones": [{"name": "zone-a"}]});
        assert_eq!([of(Some("PreferClose")), of(Some("PreferSameZone"))], [zones.clone(), zones]);
        let both = json!({"forZones": [{"name": "zone-a"}], "forNodes": [{"name": "node-1"}]});
        assert_eq!(
            [of(Some("PreferSameNode")), of(None), of(Some("Other"))],
            [both, Value::Null, Value::Null]
        );
        assert_eq!(hints(Some("PreferSameZone"), None, Some(&node)), None);
    }

    #[test]
    fn the_older_annotation_comes_first() {
        let asked = |annotations: Value| asks_for_zones(&serde_json::from_value(annotations).unwrap());
        assert!(asked(json!({ANNOTATIONS[1]: "Auto"})) && asked(json!({ANNOTATIONS[0]: "auto"})));
        assert!(!asked(json!({ANNOTATIONS[0]: "Disabled", ANNOTATIONS[1]: "Auto"})));
        assert!(!asked(json!({})) && !asked(json!({ANNOTATIONS[1]: "AUTO"})));
    }
}
