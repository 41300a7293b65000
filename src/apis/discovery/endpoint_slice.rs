//! EndpointSlice: some of the addresses behind a service.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::print::{name, or, with_more};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::labels::labels;
use crate::validation::{Field, at_most, texts};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain, label_value, qualified_name};
use apimachinery::object::Object;
use apimachinery::repeats::repeats;
use apimachinery::time::Time;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// `endpointslices`
pub static ENDPOINT_SLICES: Builtin = LazyLock::new(|| {
    Kind::builtin("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "io.k8s.api.discovery.v1")
        .with_generation()
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            validate,
            validate_update: |new, old, errors| {
                Field::of(new, "addressType").immutable(&Field::of(old, "addressType"), errors)
            },
            ..RULES
        })
        .into()
});

const DEFINITION: &str = "io.k8s.api.discovery.v1.EndpointSlice";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("AddressType", "string", DEFINITION, "addressType"),
        Column::of("Ports", "string", DEFINITION, "ports"),
        Column::of("Endpoints", "string", DEFINITION, "endpoints"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let port = |port: &Value| match (at(port, "port").as_i64(), at(port, "name").as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    };
    let addresses =
        |endpoint: &Value| texts(endpoint, "addresses").into_iter().map(str::to_owned).collect::<Vec<_>>();
    let ports: Vec<String> = items(&tree, "ports").iter().map(port).collect();
    let endpoints: Vec<String> = items(&tree, "endpoints").iter().flat_map(addresses).collect();
    let shown = |list: &[String]| json!(or(&with_more(list, 3, ","), "<unset>"));
    vec![name(object), json!(text(&tree, "addressType")), shown(&ports), shown(&endpoints), age(object, now)]
}

fn defaults(slice: &mut Value) {
    for port in items_mut(slice, "ports") {
        set_if_unset(port, "name", "");
        set_if_unset(port, "protocol", "TCP");
    }
}

fn validate(slice: &Value, errors: &mut FieldErrors) {
    let kind = Field::of(slice, "addressType");
    kind.one_of(&["FQDN", "IPv4", "IPv6"], errors);
    let ports = at_most(&Field::of(slice, "ports"), 20_000, errors);
    let mut names = BTreeSet::new();
    for port in ports {
        let name = port.child("name");
        name.follows(dns1123_label, errors);
        if !names.insert(name.text()) {
            name.duplicate(errors);
        }
        port.child("protocol").one_of(&["SCTP", "TCP", "UDP"], errors);
        let number = port.child("port");
        if number.is_set() {
            number.invalid_each(texts::port_number(number.number()), errors);
        }
        let protocol = port.child("appProtocol");
        if protocol.is_set() {
            protocol.invalid_each(qualified_name(protocol.text()), errors);
        }
    }
    for endpoint in at_most(&Field::of(slice, "endpoints"), 1000, errors) {
        one_endpoint(&endpoint, kind.text(), errors);
    }
}

/// What is wrong with a text.
type EndpointRule = fn(&str) -> Vec<String>;

fn one_endpoint(endpoint: &Field, kind: &str, errors: &mut FieldErrors) {
    let addresses = endpoint.child("addresses");
    let list = addresses.items();
    if list.is_empty() {
        addresses.required("must contain at least 1 address", errors);
    } else if list.len() > 100 {
        errors.too_many(addresses.path.as_str(), list.len(), 100);
    }
    let is_again = repeats(list.iter().map(|one| one.text()));
    for (at, address) in list.iter().enumerate() {
        if is_again[at] {
            address.duplicate(errors);
        }
        match (kind, address.text().parse::<IpAddr>()) {
            ("IPv4", Ok(IpAddr::V4(_))) | ("IPv6", Ok(IpAddr::V6(_))) => {
                address.invalid_each(texts::non_special_ip(address.text()), errors);
            }
            ("IPv4", _) => address.invalid("must be a valid IPv4 address", errors),
            ("IPv6", _) => address.invalid("must be a valid IPv6 address", errors),
            _ => address.invalid_each(dns1123_subdomain(address.text()), errors),
        }
    }
    let topology = endpoint.child("deprecatedTopology");
    if topology.members().len() > 16 {
        errors.too_many(topology.path.as_str(), topology.members().len(), 16);
    }
    let rules: [(&str, EndpointRule); 2] = [("nodeName", dns1123_subdomain), ("hostname", dns1123_label)];
    for (name, rule) in rules {
        let field = endpoint.child(name);
        if field.is_set() {
            field.invalid_each(rule(field.text()), errors);
        }
        if name == "nodeName" {
            labels(&topology, errors);
        }
    }
    hints(&endpoint.child("hints"), errors);
}

/// For whom an endpoint is: zones and nodes, each once.
fn hints(hints: &Field, errors: &mut FieldErrors) {
    let lists: [(&str, EndpointRule); 2] = [("forZones", label_value), ("forNodes", dns1123_subdomain)];
    for (list, rule) in lists {
        let given = at_most(&hints.child(list), 8, errors);
        let is_again = repeats(given.iter().map(|one| one.child("name").text()));
        for (at, hint) in given.iter().enumerate() {
            let name = hint.child("name");
            if is_again[at] {
                name.duplicate(errors);
            }
            name.invalid_each(rule(name.text()), errors);
        }
    }
}
