//! StorageClass: how volumes are made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::print::or;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::qualified_name;
use apimachinery::object::Object;
use apimachinery::repeats::repeats;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `storageclasses`
pub static STORAGE_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("storage.k8s.io", "v1", "StorageClass", "storageclasses", "io.k8s.api.storage.v1")
        .cluster_scoped()
        .short(&["sc"])
        .returns_deleted()
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules { validate, validate_update, ..RULES })
        .into()
});

const DEFINITION: &str = "io.k8s.api.storage.v1.StorageClass";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Provisioner", "string", DEFINITION, "provisioner"),
        Column::of("ReclaimPolicy", "string", DEFINITION, "reclaimPolicy"),
        Column::of("VolumeBindingMode", "string", DEFINITION, "volumeBindingMode"),
        Column::of("AllowVolumeExpansion", "string", DEFINITION, "allowVolumeExpansion"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let is_default = |name: &str| annotation(&tree, name) == "true";
    let mark = if is_default("storageclass.kubernetes.io/is-default-class")
        || is_default("storageclass.beta.kubernetes.io/is-default-class")
    {
        " (default)"
    } else {
        ""
    };
    vec![
        format!("{}{mark}", object.metadata.name).into(),
        json!(text(&tree, "provisioner")),
        json!(or(text(&tree, "reclaimPolicy"), "Delete")),
        json!(or(text(&tree, "volumeBindingMode"), "Immediate")),
        flag(&tree, "allowVolumeExpansion").into(),
        age(object, now),
    ]
}

fn defaults(class: &mut Value) {
    set_if_unset(class, "reclaimPolicy", "Delete");
    set_if_unset(class, "volumeBindingMode", "Immediate");
}

fn validate(class: &Value, errors: &mut FieldErrors) {
    provisioner(&Field::of(class, "provisioner"), errors);
    parameters(&Field::of(class, "parameters"), errors);
    Field::of(class, "reclaimPolicy").one_of_if_set(&["Delete", "Retain"], errors);
    let mode = Field::of(class, "volumeBindingMode");
    if mode.is_set() {
        mode.one_of_if_set(&["Immediate", "WaitForFirstConsumer"], errors)
    } else {
        mode.required("", errors)
    }
    allowed_topologies(&Field::of(class, "allowedTopologies"), errors);
}

/// `validateProvisioner`, which shows the name in small letters.
pub(super) fn provisioner(name: &Field, errors: &mut FieldErrors) {
    let small = json!(name.text().to_lowercase());
    let name = Field { path: name.path.clone(), value: &small };
    name.must_follow(qualified_name, errors);
}

/// `validateParameters`; also of a VolumeAttributesClass.
pub(super) fn parameters(parameters: &Field, errors: &mut FieldErrors) {
    const MOST: usize = 512;
    const MOST_BYTES: usize = 256 * 1024;
    let all = parameters.members();
    if all.len() > MOST {
        return errors.too_long(parameters.path.as_str(), MOST);
    }
    if all.iter().any(|(name, _)| name.is_empty()) {
        errors.invalid(parameters.path.as_str(), &json!(""), "field can not be empty.");
    }
    if all.iter().map(|(name, value)| name.len() + value.text().len()).sum::<usize>() > MOST_BYTES {
        errors.too_long(parameters.path.as_str(), MOST_BYTES);
    }
}

/// `validateAllowedTopologies`: terms that differ, each with labels that differ, each with values that do.
fn allowed_topologies(topologies: &Field, errors: &mut FieldErrors) {
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![];
    for term in topologies.items() {
        let mut labels = BTreeMap::new();
        let expressions = term.each("matchLabelExpressions");
        for expression in &expressions {
            let (key, values) = (expression.child("key"), expression.child("values"));
            let all: BTreeSet<&str> = values.items().iter().map(Field::text).collect();
            values.require(errors);
            let is_again = repeats(values.items().iter().map(|one| one.text()));
            for (at, value) in values.items().iter().enumerate() {
                if is_again[at] {
                    value.duplicate(errors);
                }
            }
            key.invalid_each(qualified_name(key.text()), errors);
            if labels.insert(key.text(), all).is_some() {
                key.duplicate(errors);
            }
        }
        if seen.contains(&labels) || labels.is_empty() {
            errors.duplicate(format!("{}.matchLabelExpressions", term.path), &json!(""));
        }
        seen.push(labels);
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        Field::of(new, field).immutable(&Field::of(old, field), errors);
    }
}
