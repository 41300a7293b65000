//! ConfigMap: configuration as text, keyed.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::name;
use crate::apis::table::{Column, age};
use crate::apis::tree::count;
use serde_json::Value;

/// `configmaps`
pub static CONFIG_MAPS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ConfigMap", "configmaps", "io.k8s.api.core.v1")
        .short(&["cm"])
        .printed(columns(), cells)
        .into()
});

fn columns() -> Vec<Column> {
    let data = Column::of("Data", "string", "io.k8s.api.core.v1.ConfigMap", "data");
    vec![Column::name(), data, Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    vec![name(object), (count(&tree, "data") + count(&tree, "binaryData")).into(), age(object, now)]
}
