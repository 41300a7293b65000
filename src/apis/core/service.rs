//! Service: one stable address for many pods.

use std::sync::LazyLock;

use super::service_validation;
use crate::apimachinery::names;
use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{labels, load_balancer, name, or};
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use serde_json::{Value, json};

/// `services`
pub static SERVICES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Service", "services", "io.k8s.api.core.v1")
        .short(&["svc"])
        .in_categories(&["all"])
        .with(&[Subresource::Proxy, Subresource::Status])
        .selectable_by(&["spec.clusterIP", "spec.type"])
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            prepare_for_create: cluster_ips,
            prepare_for_update,
            validate_name: names::dns1123_label,
            validate: service_validation::validate,
            validate_update: service_validation::validate_update,
            validate_status_update: service_validation::validate_status_update,
            ..RULES
        })
        .into()
});

const SPEC: &str = "io.k8s.api.core.v1.ServiceSpec";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Type", "string", SPEC, "type"),
        Column::of("Cluster-IP", "string", SPEC, "clusterIP"),
        Column::of("External-IP", "string", SPEC, "externalIPs"),
        Column::of("Port(s)", "string", SPEC, "ports"),
        Column::age(),
        Column::of("Selector", "string", SPEC, "selector").wide(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let cluster_ips = texts(&tree, "spec.clusterIPs");
    vec![
        name(object),
        json!(text(&tree, "spec.type")),
        json!(cluster_ips.first().unwrap_or(&"<none>")),
        external_ip(&tree).into(),
        json!(or(&ports(&tree), "<none>")),
        age(object, now),
        json!(labels(&tree, "spec.selector")),
    ]
}

fn external_ip(tree: &Value) -> String {
    let mut addresses = texts(tree, "spec.externalIPs");
    let balancer = load_balancer(tree);
    match text(tree, "spec.type") {
        "ClusterIP" | "NodePort" => or(&addresses.join(","), "<none>").to_owned(),
        "LoadBalancer" => {
            if !balancer.is_empty() {
                addresses.insert(0, &balancer);
            }
            or(&addresses.join(","), "<pending>").to_owned()
        }
        "ExternalName" => text(tree, "spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn ports(tree: &Value) -> String {
    let piece = |port: &Value| match number(port, "nodePort") {
        0 => format!("{}/{}", number(port, "port"), text(port, "protocol")),
        node_port => format!("{}:{node_port}/{}", number(port, "port"), text(port, "protocol")),
    };
    items(tree, "spec.ports").iter().map(piece).collect::<Vec<_>>().join(",")
}

fn defaults(service: &mut Value) {
    set_if_zero(service, "spec.sessionAffinity", "None");
    match text(service, "spec.sessionAffinity") {
        "None" => drop(remove(service, "spec.sessionAffinityConfig")),
        "ClientIP" => set_if_unset(service, "spec.sessionAffinityConfig.clientIP.timeoutSeconds", 10_800),
        _ => {}
    }
    set_if_zero(service, "spec.type", "ClusterIP");
    for port in items_mut(service, "spec.ports") {
        set_if_zero(port, "protocol", "TCP");
        let number = at(port, "port").clone();
        set_if_zero(port, "targetPort", number);
    }
    let kind = text(service, "spec.type").to_owned();
    if is_external(service) {
        set_if_zero(service, "spec.externalTrafficPolicy", "Cluster");
    }
    if matches!(&*kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
        set_if_unset(service, "spec.internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set_if_unset(service, "spec.allocateLoadBalancerNodePorts", true);
        let with_ip = |ingress: &&mut Value| !text(ingress, "ip").is_empty();
        for ingress in items_mut(service, "status.loadBalancer.ingress").iter_mut().filter(with_ip) {
            set_if_unset(ingress, "ipMode", "VIP");
        }
    }
}

/// `clusterIP` is the first of `clusterIPs`; an old client knows only the former.
fn cluster_ips(service: &mut Value) {
    let single = text(service, "spec.clusterIP").to_owned();
    if !single.is_empty() {
        set_if_zero(service, "spec.clusterIPs", json!([single]));
    }
}

/// Keeps what was allocated when the client leaves it out, and drops it when the new type has no use for it
/// (`NormalizeClusterIPs`, `patchAllocatedValues`, `dropTypeDependentFields`).
fn prepare_for_update(new: &mut Value, old: &Value) {
    let same_list = at(new, "spec.clusterIPs") == at(old, "spec.clusterIPs");
    if text(new, "spec.clusterIP") != text(old, "spec.clusterIP") && same_list {
        // Only the single one was changed: the list follows, also into nothing.
        remove(new, "spec.clusterIPs");
    }
    if needs_cluster_ip(new) && needs_cluster_ip(old) {
        keep(new, old, "spec.clusterIP");
        if text(new, "spec.clusterIP") == text(old, "spec.clusterIP") {
            keep(new, old, "spec.clusterIPs");
        }
    }
    if needs_node_ports(new) && needs_node_ports(old) {
        keep_node_ports(new, old);
    }
    if needs_health_check(new) && needs_health_check(old) {
        keep(new, old, "spec.healthCheckNodePort");
    }
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            drop_unchanged(new, old, field);
        }
    }
    if needs_node_ports(old) && !needs_node_ports(new) {
        drop_node_ports(new, old);
    }
    if text(old, "spec.type") == "LoadBalancer" && text(new, "spec.type") != "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"] {
            drop_unchanged(new, old, field);
        }
    }
    if is_external(old) && !is_external(new) {
        drop_unchanged(new, old, "externalTrafficPolicy");
    }
    cluster_ips(new);
}

fn needs_cluster_ip(service: &Value) -> bool {
    matches!(text(service, "spec.type"), "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn needs_node_ports(service: &Value) -> bool {
    match text(service, "spec.type") {
        "NodePort" => true,
        "LoadBalancer" => at(service, "spec.allocateLoadBalancerNodePorts") != false,
        _ => false,
    }
}

/// `service.NeedsHealthCheck`
pub fn needs_health_check(service: &Value) -> bool {
    text(service, "spec.type") == "LoadBalancer" && text(service, "spec.externalTrafficPolicy") == "Local"
}

/// `service.ExternallyAccessible`
pub fn is_external(service: &Value) -> bool {
    match text(service, "spec.type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => count(service, "spec.externalIPs") > 0,
        _ => false,
    }
}

fn keep(new: &mut Value, old: &Value, path: &str) {
    if is_set(old, path) {
        set_if_zero(new, path, at(old, path).clone());
    }
}

/// Ports are known by their names; the rest of them may have changed.
fn keep_node_ports(new: &mut Value, old: &Value) {
    let used: Vec<i64> = items(new, "spec.ports").iter().map(|port| number(port, "nodePort")).collect();
    for port in items_mut(new, "spec.ports").iter_mut().filter(|port| number(port, "nodePort") == 0) {
        let is_same = |old: &&Value| text(old, "name") == text(port, "name");
        let node_port =
            items(old, "spec.ports").iter().rfind(is_same).map_or(0, |old| number(old, "nodePort"));
        if node_port != 0 && !used.contains(&node_port) {
            set(port, "nodePort", node_port);
        }
    }
}

fn drop_unchanged(new: &mut Value, old: &Value, field: &str) {
    let path = format!("spec.{field}");
    if at(new, &path) == at(old, &path) {
        remove(new, &path);
    }
}

fn drop_node_ports(new: &mut Value, old: &Value) {
    let ports = |service: &Value| -> Vec<i64> {
        items(service, "spec.ports").iter().map(|port| number(port, "nodePort")).collect()
    };
    if ports(new).iter().all(|port| *port == 0 || ports(old).contains(port)) {
        items_mut(new, "spec.ports").iter_mut().for_each(|port| drop(remove(port, "nodePort")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_keeps_what_was_allocated_and_drops_what_has_no_use_any_more() {
        let old = json!({"spec": {"type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
            "externalTrafficPolicy": "Cluster", "ports": [{"name": "a", "port": 80, "nodePort": 30001}]}});
        let ports = json!([{"name": "a", "port": 81}, {"name": "b", "port": 82}]);
        let kept = json!({"type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
            "ports": [{"name": "a", "port": 81, "nodePort": 30001}, {"name": "b", "port": 82}]});
        let external = json!({"type": "ExternalName", "ports": [{"name": "a", "port": 80}]});
        let given = json!({"type": "ExternalName", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
            "externalTrafficPolicy": "Cluster", "ports": [{"name": "a", "port": 80, "nodePort": 30001}]});
        for (new, wanted) in [(json!({"type": "NodePort", "ports": ports}), kept), (given, external)] {
            let mut new = json!({"spec": new});
            SERVICES.strategy.prepare_for_update(&mut new, &old);
            assert_eq!(new["spec"], wanted);
        }
    }

    #[test]
    fn an_old_client_knows_one_address_only() {
        let mut new = json!({"spec": {"clusterIP": "None"}});
        SERVICES.strategy.prepare_for_create(&mut new);
        assert_eq!(new["spec"]["clusterIPs"], json!(["None"]));
    }
}
