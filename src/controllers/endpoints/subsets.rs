//! Subsets: addresses that share their ports (`endpoints.RepackSubsets`). Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::service_pods::{
    PodPort, address_types, hostname, is_endpoint, is_headless, pod_addresses, pod_port,
};
use apimachinery::object::Object;
use apis::views::pod::Pod;
use apis::views::service::Service;

/// Upstream's `maxCapacity`: more addresses are left out, ready ones last.
const MAX_CAPACITY: usize = 1000;

/// Of a subset: name, number, protocol, application protocol.
type Ports = BTreeSet<PodPort>;

/// The subsets of a service's pods, and whether some had to be left out.
pub(super) fn of(object: &Object, service: &Service, pods: &[Arc<Object>]) -> (Value, bool) {
    let tolerates = service.spec.publish_not_ready_addresses;
    let mut by_ports: BTreeMap<Ports, [Vec<Value>; 2]> = BTreeMap::new();
    let family = address_types(service)[0];
    let mut addresses: Vec<(Ports, bool, Value)> = pods
        .iter()
        .filter(|pod| is_endpoint(pod, tolerates))
        .filter_map(|pod| {
            let view = pod.view::<Pod>();
            // A pod without an address of the service's first family has none here.
            let ip = pod_addresses(&view, family).into_iter().next()?;
            let ports = ports(service, &view)?;
            Some((ports, tolerates || view.is_ready(), address(object, pod, &view, &ip)))
        })
        .collect();
    // Ready ones first, so that they are the last to be left out; then by address.
    addresses.sort_by_key(|(_, is_ready, address)| (!is_ready, address["ip"].as_str().map(str::to_owned)));
    let is_truncated = addresses.len() > MAX_CAPACITY;
    for (ports, is_ready, address) in addresses.into_iter().take(MAX_CAPACITY) {
        by_ports.entry(ports).or_default()[usize::from(!is_ready)].push(address);
    }
    (by_ports.into_iter().map(subset).collect(), is_truncated)
}

/// None for a pod that has none of the ports; a headless service may have no ports at all.
fn ports(service: &Service, pod: &Pod) -> Option<Ports> {
    let ports: Ports = service.spec.ports.iter().filter_map(|port| pod_port(port, pod)).collect();
    let needs_none = service.spec.ports.is_empty() && is_headless(service);
    (needs_none || !ports.is_empty()).then_some(ports)
}

fn address(service: &Object, object: &Object, pod: &Pod, ip: &str) -> Value {
    let metadata = &object.metadata;
    let target = json!({
        "kind": "Pod",
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
    });
    let mut address = json!({"ip": ip, "targetRef": target});
    if !pod.spec.node_name.is_empty() {
        address["nodeName"] = pod.spec.node_name.as_str().into();
    }
    if let Some(hostname) = hostname(service, object, pod) {
        address["hostname"] = hostname.into();
    }
    address
}

fn subset((ports, [ready, not_ready]): (Ports, [Vec<Value>; 2])) -> Value {
    let mut subset = json!({});
    for (name, addresses) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
        if !addresses.is_empty() {
            subset[name] = addresses.into();
        }
    }
    if !ports.is_empty() {
        subset["ports"] = ports.iter().map(port).collect();
    }
    subset
}

fn port(port: &PodPort) -> Value {
    let mut value = json!({"port": port.port, "protocol": port.protocol});
    if !port.name.is_empty() {
        value["name"] = port.name.as_str().into();
    }
    if let Some(protocol) = &port.app_protocol {
        value["appProtocol"] = protocol.as_str().into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(tree: Value) -> Arc<Object> {
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    fn pod(name: &str, ip: &str, ready: &str, ports: Value) -> Arc<Object> {
        object(json!({
            "metadata": {"name": name, "namespace": "a", "uid": name},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": ports}]},
            "status": {"podIP": ip, "phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
        }))
    }

    fn subsets(spec: Value, pods: &[Arc<Object>]) -> Value {
        let service = object(json!({"metadata": {"name": "web", "namespace": "a"}, "spec": spec}));
        of(&service, &service.view::<Service>(), pods).0
    }

    fn ips(addresses: &Value) -> Vec<&str> {
        addresses.as_array().into_iter().flatten().filter_map(|address| address["ip"].as_str()).collect()
    }

    #[test]
    fn ready_and_unready_stand_apart() {
        let named = json!([{"name": "http", "containerPort": 8080, "protocol": "TCP"}]);
        let pods = [
            pod("b", "10.0.0.2", "True", named.clone()),
            pod("a", "10.0.0.1", "True", named.clone()),
            pod("c", "10.0.0.3", "False", named.clone()),
            pod("d", "", "False", named.clone()),
            pod("e", "10.0.0.5", "True", json!([])),
        ];
        let port = json!({"port": 80, "targetPort": "http", "protocol": "TCP"});
        let found = subsets(json!({"ports": [port], "clusterIP": "10.96.0.9"}), &pods);
        assert_eq!(found.as_array().unwrap().len(), 1);
        assert_eq!(ips(&found[0]["addresses"]), ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(ips(&found[0]["notReadyAddresses"]), ["10.0.0.3"]);
        assert_eq!(found[0]["ports"], json!([{"port": 8080, "protocol": "TCP"}]));
        let all = subsets(json!({"ports": [port], "publishNotReadyAddresses": true}), &pods);
        assert_eq!(ips(&all[0]["addresses"]).len(), 3);
    }

    #[test]
    fn addresses_are_of_the_first_family_of_the_service() {
        let ips = |ips: &[&str]| ips.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>();
        let pod = |name: &str, all: &[&str]| {
            object(json!({
                "metadata": {"name": name, "namespace": "a", "uid": name},
                "status": {"podIP": all[0], "podIPs": ips(all), "conditions": [{"type": "Ready", "status": "True"}]},
            }))
        };
        let pods = [pod("both", &["10.0.0.1", "fd00::1"]), pod("four", &["10.0.0.2"])];
        let of = |families: Value| {
            let spec = json!({"ports": [{"port": 80}], "ipFamilies": families});
            let found = subsets(spec, &pods);
            self::ips(&found[0]["addresses"]).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of(json!(["IPv6"])), ["fd00::1"]);
        assert_eq!(of(json!(["IPv6", "IPv4"])), ["fd00::1"]);
        assert_eq!(of(json!(["IPv4", "IPv6"])), ["10.0.0.1", "10.0.0.2"]);
    }

    #[test]
    fn pods_with_other_ports_are_another_subset() {
        let with = |number| json!([{"name": "http", "containerPort": number, "protocol": "TCP"}]);
        let pods = [pod("a", "10.0.0.1", "True", with(1)), pod("b", "10.0.0.2", "True", with(2))];
        let port = json!({"port": 80, "targetPort": "http", "protocol": "TCP", "name": "web"});
        let found = subsets(json!({"ports": [port]}), &pods);
        assert_eq!(found.as_array().unwrap().len(), 2);
        assert_eq!(found[1]["ports"], json!([{"name": "web", "port": 2, "protocol": "TCP"}]));
    }

    #[test]
    fn a_headless_service_needs_no_ports() {
        let pods = [pod("a", "10.0.0.1", "True", json!([]))];
        assert_eq!(ips(&subsets(json!({"clusterIP": "None"}), &pods)[0]["addresses"]), ["10.0.0.1"]);
        assert_eq!(subsets(json!({"clusterIP": "10.96.0.1"}), &pods), json!([]));
    }
}
