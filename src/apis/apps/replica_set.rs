//! ReplicaSet: so many pods of one template.

use std::sync::LazyLock;

use crate::core::pod::defaults::pod_spec;
use crate::core::pod::gates::POD_GATES;
use crate::core::pod::strategy::template_warnings;
use crate::core::pod::validation::{lasting_template, template};
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{container_cells, container_columns, label_selector, name};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::number;
use crate::tree::*;
use crate::validation::Field;
use crate::validation::labels::{selected_template, workload_selector};
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `replicasets`
pub static REPLICA_SETS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "ReplicaSet", "replicasets", "io.k8s.api.apps.v1")
        .short(&["rs"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .selectable_as("status.replicas", "status.replicas", "0")
        .with_generation()
        .gated("/spec/template/spec", POD_GATES)
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "spec.template"),
            validate,
            validate_update: selector_is_immutable,
            validate_status_update: |new, _, errors| replica_counts(&Field::of(new, "status"), errors),
            ..RULES
        })
        .into()
});

const SPEC: &str = "io.k8s.api.apps.v1.ReplicaSetSpec";
const STATUS: &str = "io.k8s.api.apps.v1.ReplicaSetStatus";

fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        Column::of("Desired", "integer", SPEC, "replicas"),
        Column::of("Current", "integer", STATUS, "replicas"),
        Column::of("Ready", "integer", STATUS, "readyReplicas"),
        Column::age(),
        containers,
        images,
        Column::of("Selector", "string", SPEC, "selector").wide(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let [names, images] = container_cells(&tree, "spec.template.spec");
    vec![
        name(object),
        number(&tree, "spec.replicas").into(),
        number(&tree, "status.replicas").into(),
        number(&tree, "status.readyReplicas").into(),
        age(object, now),
        names,
        images,
        json!(label_selector(&tree, "spec.selector")),
    ]
}

fn defaults(set: &mut Value) {
    set_if_unset(set, "spec.replicas", 1);
    pod_spec(set, "spec.template.spec");
}

fn validate(set: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(set, "spec");
    spec.all_nonnegative(&["replicas", "minReadySeconds"], errors);
    // Upstream's words for both kinds.
    workload_selector(&spec.child("selector"), "deployment", errors);
    replicated_template(&spec, errors);
}

/// `ValidatePodTemplateSpecForReplicaSet`: the template of a ReplicaSet or a Deployment.
pub fn replicated_template(spec: &Field, errors: &mut FieldErrors) {
    let pods = spec.child("template");
    selected_template(&spec.child("selector"), &pods, errors);
    template(&pods, errors);
    lasting_template(&pods, "ReplicaSet", errors);
}

/// The selector of a workload never changes.
pub fn selector_is_immutable(new: &Value, old: &Value, errors: &mut FieldErrors) {
    Field::of(new, "spec.selector").immutable(&Field::of(old, "spec.selector"), errors);
}

/// `ValidateReplicaSetStatus`; a ReplicationController counts the same.
pub fn replica_counts(status: &Field, errors: &mut FieldErrors) {
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    status.all_nonnegative(&["replicas"], errors);
    status.all_nonnegative(&parts, errors);
    status.all_nonnegative(&["observedGeneration"], errors);
    status.at_most(&parts, "replicas", "cannot be greater than status.replicas", errors);
    status.at_most(&["availableReplicas"], "readyReplicas", "cannot be greater than readyReplicas", errors);
}
