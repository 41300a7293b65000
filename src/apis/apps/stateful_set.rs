//! StatefulSet: pods with names and storage of their own.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{container_cells, container_columns, name};
use crate::apis::table::{Column, age};
use crate::apis::tree::number;
use serde_json::Value;

/// `statefulsets`
pub static STATEFUL_SETS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "StatefulSet", "statefulsets", "io.k8s.api.apps.v1")
        .short(&["sts"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .with_generation()
        .printed(columns(), cells)
        .into()
});

fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        Column::new("Ready", "string", "Number of the pod with ready state"),
        Column::age(),
        containers,
        images,
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let [names, images] = container_cells(&tree, "spec.template.spec");
    let ready = format!("{}/{}", number(&tree, "status.readyReplicas"), number(&tree, "spec.replicas"));
    vec![name(object), ready.into(), age(object, now), names, images]
}
