//! Deployment: ReplicaSets, one revision after the other.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::core::pod::defaults::pod_spec;
use crate::apis::core::pod::strategy::template_warnings;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{container_cells, container_columns, name, selector};
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::number;
use crate::apis::tree::*;
use serde_json::{Value, json};

/// `deployments`
pub static DEPLOYMENTS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "Deployment", "deployments", "io.k8s.api.apps.v1")
        .short(&["deploy"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "spec.template"),
            prepare_for_update,
            ..RULES
        })
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

fn defaults(deployment: &mut Value) {
    set_if_unset(deployment, "spec.replicas", 1);
    set_if_zero(deployment, "spec.strategy.type", "RollingUpdate");
    if text(deployment, "spec.strategy.type") == "RollingUpdate" {
        set_if_unset(deployment, "spec.strategy.rollingUpdate.maxUnavailable", "25%");
        set_if_unset(deployment, "spec.strategy.rollingUpdate.maxSurge", "25%");
    }
    set_if_unset(deployment, "spec.revisionHistoryLimit", 10);
    set_if_unset(deployment, "spec.progressDeadlineSeconds", 600);
    pod_spec(deployment, "spec.template.spec");
}

/// A change of annotations counts as a new generation: rollbacks are asked for in one.
fn prepare_for_update(new: &mut Value, old: &Value) {
    if at(new, "metadata.annotations") != at(old, "metadata.annotations") {
        set(new, "metadata.generation", number(old, "metadata.generation") + 1);
    }
}
