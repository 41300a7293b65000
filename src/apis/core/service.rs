//! Service: one stable address for many pods.

use std::sync::LazyLock;

use super::service_traffic::is_external;
use super::service_validation;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{labels, load_balancer, name, or};
use crate::quota::services::SERVICE_USAGE;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use apimachinery::names;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `services`
pub static SERVICES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Service", "services", "io.k8s.api.core.v1")
        .short(&["svc"])
        .in_categories(&["all"])
        .with(&[Subresource::Proxy, Subresource::Status])
        .returns_deleted()
        .etcd_key("services/specs")
        .measured(&SERVICE_USAGE)
        .selectable_by(&["spec.clusterIP", "spec.type"])
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            allow_create_on_update: true,
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
