//! Endpoints: the addresses behind a service, all in one object.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::{name, with_more};
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use serde_json::Value;

/// `endpoints`
pub static ENDPOINTS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Endpoints", "endpoints", "io.k8s.api.core.v1")
        .short(&["ep"])
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules { allow_create_on_update: true, ..RULES })
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
