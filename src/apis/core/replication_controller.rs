//! ReplicationController: the ancestor of the ReplicaSet.

use std::sync::LazyLock;

use crate::apps::replica_set::replica_counts;
use crate::core::pod::defaults::pod_spec;
use crate::core::pod::gates::POD_GATES;
use crate::core::pod::strategy::template_warnings;
use crate::core::pod::validation::{lasting_template, template};
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{container_cells, container_columns, labels, name};
use crate::quota::measure::ByBareName;
use crate::rules::{RULES, Rules};
use crate::strategy::GarbageCollectionPolicy;
use crate::table::{Column, age};
use crate::tree::number;
use crate::tree::*;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `replicationcontrollers`
pub static REPLICATION_CONTROLLERS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ReplicationController", "replicationcontrollers", "io.k8s.api.core.v1")
        .short(&["rc"])
        .etcd_key("controllers")
        .measured(&ByBareName("replicationcontrollers"))
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .selectable_as("status.replicas", "status.replicas", "0")
        .with_generation()
        .gated("/spec/template/spec", POD_GATES)
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "spec.template"),
            default_garbage_collection: GarbageCollectionPolicy::Orphan,
            validate,
            validate_status_update: |new, _, errors| replica_counts(&Field::of(new, "status"), errors),
            ..RULES
        })
        .into()
});

const SPEC: &str = "io.k8s.api.core.v1.ReplicationControllerSpec";
const STATUS: &str = "io.k8s.api.core.v1.ReplicationControllerStatus";

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
        json!(labels(&tree, "spec.selector")),
    ]
}

fn defaults(controller: &mut Value) {
    set_if_unset(controller, "spec.replicas", 1);
    let labels = at(controller, "spec.template.metadata.labels").clone();
    if !is_zero(&labels) {
        set_if_zero(controller, "spec.selector", labels.clone());
        set_if_zero(controller, "metadata.labels", labels);
    }
    if is_set(controller, "spec.template") {
        pod_spec(controller, "spec.template.spec");
    }
}

fn validate(controller: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(controller, "spec");
    spec.child("minReadySeconds").nonnegative(errors);
    spec.child("selector").require(errors);
    spec.child("replicas").nonnegative(errors);
    let pods = spec.child("template");
    if !pods.is_set() {
        return pods.required("", errors);
    }
    let selected = Selector::from_labels(&string_map(controller, "spec.selector"));
    if !selected.matches(&string_map(controller, "spec.template.metadata.labels")) {
        pods.child("metadata.labels").invalid("`selector` does not match template `labels`", errors);
    }
    template(&pods, errors);
    lasting_template(&pods, "ReplicationController", errors);
}
