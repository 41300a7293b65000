//! Deployment: ReplicaSets, one revision after the other.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{container_cells, container_columns, name, selector};
use crate::apis::table::{Column, age};
use crate::apis::tree::number;
use serde_json::{Value, json};

/// `deployments`
pub static DEPLOYMENTS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "Deployment", "deployments", "io.k8s.api.apps.v1")
        .short(&["deploy"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .with_generation()
        .printed(columns(), cells)
        .into()
});

const SPEC: &str = "io.k8s.api.apps.v1.DeploymentSpec";
const STATUS: &str = "io.k8s.api.apps.v1.DeploymentStatus";

fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        Column::new("Ready", "string", "Number of the pod with ready state"),
        Column::of("Up-to-date", "string", STATUS, "updatedReplicas"),
        Column::of("Available", "string", STATUS, "availableReplicas"),
        Column::age(),
        containers,
        images,
        Column::of("Selector", "string", SPEC, "selector").wide(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let [names, images] = container_cells(&tree, "spec.template.spec");
    let ready = format!("{}/{}", number(&tree, "status.readyReplicas"), number(&tree, "spec.replicas"));
    vec![
        name(object),
        ready.into(),
        number(&tree, "status.updatedReplicas").into(),
        number(&tree, "status.availableReplicas").into(),
        age(object, now),
        names,
        images,
        json!(selector(&tree, "spec.selector").unwrap_or_else(|_| "<invalid>".into())),
    ]
}
