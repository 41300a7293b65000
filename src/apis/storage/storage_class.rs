//! StorageClass: how volumes are made.

use std::sync::LazyLock;

use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::names::qualified_name;
use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::or;
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use crate::apis::validation::{Field, equal};
use serde_json::{Value, json};

/// `storageclasses`
pub static STORAGE_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("storage.k8s.io", "v1", "StorageClass", "storageclasses", "io.k8s.api.storage.v1")
        .cluster_scoped()
        .short(&["sc"])
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
    let mark = match is_default("storageclass.kubernetes.io/is-default-class")
        || is_default("storageclass.beta.kubernetes.io/is-default-class")
    {
        true => " (default)",
        false => "",
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
    let provisioner = Field::of(class, "provisioner");
    if provisioner.require(errors) {
        provisioner.invalid_each(qualified_name(&provisioner.text().to_lowercase()), errors);
    }
    let parameters = Field::of(class, "parameters");
    if parameters.members().len() > 512 {
        errors.too_long("parameters", 512);
    } else if parameters.members().iter().any(|(name, _)| name.is_empty()) {
        errors.invalid("parameters", &json!(""), "field can not be empty.");
    }
    Field::of(class, "reclaimPolicy").one_of_if_set(&["Delete", "Retain"], errors);
    let mode = Field::of(class, "volumeBindingMode");
    match mode.is_set() {
        true => mode.one_of_if_set(&["Immediate", "WaitForFirstConsumer"], errors),
        false => mode.required("", errors),
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    for field in ["parameters", "provisioner", "reclaimPolicy"] {
        if !equal(at(new, field), at(old, field)) {
            errors.forbidden(field, format!("updates to {field} are forbidden."));
        }
    }
    let mode = Field::of(new, "volumeBindingMode");
    mode.immutable(&Field::of(old, "volumeBindingMode"), errors);
}
