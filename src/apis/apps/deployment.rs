//! Deployment: ReplicaSets, one revision after the other.

use std::sync::LazyLock;

use crate::apps::replica_set::{replicated_template, selector_is_immutable};
use crate::core::pod::defaults::pod_spec;
use crate::core::pod::gates::POD_GATES;
use crate::core::pod::strategy::template_warnings;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{container_cells, container_columns, name, selector};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::number;
use crate::tree::*;
use crate::validation::Field;
use crate::validation::labels::workload_selector;
use crate::validation::texts::{at_most_100_percent, number_or_percent, number_or_percent_value};
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `deployments`
pub static DEPLOYMENTS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "Deployment", "deployments", "io.k8s.api.apps.v1")
        .short(&["deploy"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .status_resets(&["spec", "metadata.labels"])
        .with_generation()
        .gated("/spec/template/spec", POD_GATES)
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "spec.template"),
            prepare_for_update,
            prepare_for_status_update,
            validate,
            validate_update: selector_is_immutable,
            validate_status_update,
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

fn validate(deployment: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(deployment, "spec");
    spec.child("replicas").nonnegative(errors);
    workload_selector(&spec.child("selector"), "deployment", errors);
    replicated_template(&spec, errors);
    strategy(&spec.child("strategy"), errors);
    spec.all_nonnegative(&["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"], errors);
    let deadline = spec.child("progressDeadlineSeconds");
    if deadline.is_set() && deadline.number() <= spec.child("minReadySeconds").number() {
        deadline.invalid("must be greater than minReadySeconds", errors);
    }
}

fn strategy(strategy: &Field, errors: &mut FieldErrors) {
    let rolling = strategy.child("rollingUpdate");
    match strategy.child("type").text() {
        "Recreate" if rolling.is_set() => {
            rolling.forbidden("may not be specified when strategy `type` is 'Recreate'", errors);
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_update(&rolling, errors),
        // Upstream shows the whole strategy here.
        _ => strategy.not_supported(&["Recreate", "RollingUpdate"], errors),
    }
}

fn rolling_update(rolling: &Field, errors: &mut FieldErrors) {
    let (unavailable, surge) = (rolling.child("maxUnavailable"), rolling.child("maxSurge"));
    number_or_percent(&unavailable, errors);
    number_or_percent(&surge, errors);
    if number_or_percent_value(&unavailable) == 0 && number_or_percent_value(&surge) == 0 {
        unavailable.invalid("may not be 0 when `maxSurge` is 0", errors);
    }
    at_most_100_percent(&unavailable, errors);
}

/// Nobody gives a Deployment labels with its status, as upstream has it for this kind.
fn prepare_for_status_update(new: &mut Value, old: &Value) {
    match old["metadata"].get("labels") {
        Some(labels) => new["metadata"]["labels"] = labels.clone(),
        None => drop(new["metadata"].as_object_mut().map(|metadata| metadata.remove("labels"))),
    }
}

fn validate_status_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let status = Field::of(new, "status");
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    status.all_nonnegative(&["observedGeneration", "replicas"], errors);
    status.all_nonnegative(&parts, errors);
    status.all_nonnegative(&["unavailableReplicas", "collisionCount"], errors);
    status.at_most(&parts, "replicas", "cannot be greater than status.replicas", errors);
    status.at_most(&["availableReplicas"], "readyReplicas", "cannot be greater than readyReplicas", errors);
    not_decremented(&status, &Field::of(old, "status"), errors);
}

/// Hashes of templates that collided stay counted.
pub fn not_decremented(status: &Field, old: &Field, errors: &mut FieldErrors) {
    let (new, old) = (status.child("collisionCount"), old.child("collisionCount"));
    if old.is_set() && new.number() < old.number() {
        errors.invalid(new.path.as_str(), &json!(new.number()), "cannot be decremented");
    }
}
