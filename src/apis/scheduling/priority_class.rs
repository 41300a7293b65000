//! PriorityClass: which pods go first.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind, StartingObjects};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `priorityclasses`
pub static PRIORITY_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "io.k8s.api.scheduling.v1")
        .cluster_scoped()
        .short(&["pc"])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(|tree| set_if_unset(tree, "preemptionPolicy", "PreemptLowerPriority"))
        .governed_by(Rules {
            validate_create,
            validate: |class, errors| Field::of(class, "preemptionPolicy").one_of(POLICIES, errors),
            validate_update,
            ..RULES
        })
        .starting_with(&STARTING)
        .into()
});

static STARTING: StartingObjects = StartingObjects {
    name: "priorityclasses",
    manager: "kube-apiserver",
    objects: || StartingObjects::read(&PRIORITY_CLASSES, TEXT),
};
const TEXT: &str = include_str!("../../../manifests/bootstrap/priority-classes.yaml");

const DEFINITION: &str = "io.k8s.api.scheduling.v1.PriorityClass";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Value", "integer", DEFINITION, "value"),
        Column::of("Global-Default", "boolean", DEFINITION, "globalDefault"),
        Column::age(),
        Column::of("PreemptionPolicy", "string", DEFINITION, "preemptionPolicy"),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    vec![
        name(object),
        number(&tree, "value").into(),
        flag(&tree, "globalDefault").into(),
        age(object, now),
        json!(text(&tree, "preemptionPolicy")),
    ]
}

const POLICIES: &[&str] = &["PreemptLowerPriority", "Never"];
const MOST: i64 = 1_000_000_000;
const SYSTEM: [(&str, i64); 2] =
    [("system-node-critical", 2 * MOST + 1000), ("system-cluster-critical", 2 * MOST)];

/// Names and values of the system are the system's.
fn validate_create(class: &Value, errors: &mut FieldErrors) {
    const WORDS: &str =
        "priority class names with 'system-' prefix are reserved for system use only. error: ";
    let (name, value) = (Field::of(class, "metadata.name"), Field::of(class, "value"));
    if !name.text().starts_with("system-") {
        if value.number() > MOST {
            value.forbidden(format!("maximum allowed value of a user defined priority is {MOST}"), errors);
        }
        return;
    }
    match SYSTEM.iter().find(|(system, _)| *system == name.text()) {
        None => {
            name.forbidden(format!("{WORDS}{} is not a known system priority class", name.text()), errors)
        }
        Some((known, priority)) if *priority != value.number() => {
            name.forbidden(format!("{WORDS}value of {known} PriorityClass must be {priority}"), errors);
        }
        Some((known, _)) if flag(class, "globalDefault") => {
            name.forbidden(format!("{WORDS}globalDefault of {known} PriorityClass must be false"), errors);
        }
        Some(_) => {}
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    if number(new, "value") != number(old, "value") {
        errors.forbidden("value", "may not be changed in an update.");
    }
    Field::of(new, "preemptionPolicy").immutable(&Field::of(old, "preemptionPolicy"), errors);
}
