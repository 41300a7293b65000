//! Endpoints: the addresses behind a service, all in one object.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::print::{name, with_more};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use crate::validation::texts;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain, qualified_name};
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// `endpoints`
pub static ENDPOINTS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Endpoints", "endpoints", "io.k8s.api.core.v1")
        .short(&["ep"])
        .etcd_key("services/endpoints")
        .deprecated("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules { allow_create_on_update: true, validate, ..RULES })
        .into()
});

fn columns() -> Vec<Column> {
    let subsets = Column::of("Endpoints", "string", "io.k8s.api.core.v1.Endpoints", "subsets");
    vec![Column::name(), subsets, Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), endpoints(&object.to_value()).into(), age(object, now)]
}

fn endpoints(tree: &Value) -> String {
    let subsets = items(tree, "subsets");
    if subsets.is_empty() {
        return "<none>".into();
    }
    let of_subset = |subset: &Value| -> Vec<String> {
        let addresses = items(subset, "addresses").iter().map(|address| text(address, "ip"));
        match items(subset, "ports") {
            // A headless service may have no ports.
            [] => addresses.map(str::to_owned).collect(),
            ports => ports
                .iter()
                .flat_map(|port| addresses.clone().map(|address| host_port(address, number(port, "port"))))
                .collect(),
        }
    };
    with_more(&subsets.iter().flat_map(of_subset).collect::<Vec<_>>(), 3, ",")
}

fn host_port(address: &str, port: i64) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

fn defaults(endpoints: &mut Value) {
    for subset in items_mut(endpoints, "subsets") {
        for port in items_mut(subset, "ports") {
            set_if_zero(port, "protocol", "TCP");
        }
    }
}

fn validate(endpoints: &Value, errors: &mut FieldErrors) {
    for subset in Field::of(endpoints, "subsets").items() {
        let (ready, others) = (subset.each("addresses"), subset.each("notReadyAddresses"));
        if ready.is_empty() && others.is_empty() {
            subset.required("must specify `addresses` or `notReadyAddresses`", errors);
        }
        ready.iter().chain(&others).for_each(|address| endpoint_address(address, errors));
        let ports = subset.each("ports");
        ports.iter().for_each(|port| endpoint_port(port, ports.len() > 1, errors));
    }
}

fn endpoint_address(address: &Field, errors: &mut FieldErrors) {
    let ip = address.child("ip");
    ip.invalid_each(texts::ip(ip.text()), errors);
    address.child("hostname").follows(dns1123_label, errors);
    let node_name = address.child("nodeName");
    if node_name.is_set() {
        node_name.invalid_each(dns1123_subdomain(node_name.text()), errors);
    }
    ip.invalid_each(texts::non_special_ip(ip.text()), errors);
}

fn endpoint_port(port: &Field, needs_name: bool, errors: &mut FieldErrors) {
    let (name, number) = (port.child("name"), port.child("port"));
    if needs_name {
        name.require(errors);
    }
    name.follows(dns1123_label, errors);
    number.invalid_each(texts::port_number(number.number()), errors);
    port.child("protocol").one_of(&["SCTP", "TCP", "UDP"], errors);
    let protocol = port.child("appProtocol");
    if protocol.is_set() {
        protocol.invalid_each(qualified_name(protocol.text()), errors);
    }
}
