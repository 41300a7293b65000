//! EndpointSlice: some of the addresses behind a service.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::{name, or, with_more};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use serde_json::{Value, json};

/// `endpointslices`
pub static ENDPOINT_SLICES: Builtin = LazyLock::new(|| {
    Kind::builtin("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "io.k8s.api.discovery.v1")
        .with_generation()
        .printed(columns(), cells)
        .defaulted(defaults)
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
