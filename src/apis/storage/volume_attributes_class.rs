//! VolumeAttributesClass: attributes of a volume that may change while it is used.

use std::sync::LazyLock;

use super::storage_class::{self, provisioner};
use crate::kind::{Builtin, Kind};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::{annotation, text};
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `volumeattributesclasses`
pub static VOLUME_ATTRIBUTES_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "storage.k8s.io",
        "v1",
        "VolumeAttributesClass",
        "volumeattributesclasses",
        "io.k8s.api.storage.v1",
    )
    .cluster_scoped()
    .short(&["vac"])
    .printed(columns(), cells)
    .governed_by(Rules { validate, validate_update, ..RULES })
    .into()
});

/// `ValidateVolumeAttributesClass`
fn validate(class: &Value, errors: &mut FieldErrors) {
    provisioner(&Field::of(class, "driverName"), errors);
    let parameters = Field::of(class, "parameters");
    storage_class::parameters(&parameters, errors);
    if parameters.is_zero() {
        parameters.required("must contain at least one key/value pair", errors);
    }
}

/// `ValidateVolumeAttributesClassUpdate`
fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    for field in ["driverName", "parameters"] {
        if new[field] != old[field] {
            errors.forbidden(field, format!("updates to {field} are forbidden."));
        }
    }
}

fn columns() -> Vec<Column> {
    let definition = "io.k8s.api.storage.v1.VolumeAttributesClass";
    vec![Column::name(), Column::of("DriverName", "string", definition, "driverName"), Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let is_default =
        annotation(&tree, "volumeattributesclass.alpha.kubernetes.io/is-default-class") == "true";
    let mark = if is_default { " (default)" } else { "" };
    let name = format!("{}{mark}", object.metadata.name);
    vec![name.into(), json!(text(&tree, "driverName")), age(object, now)]
}
