//! ConfigMap: configuration as text, keyed.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::quota::measure::ByBareName;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::count;
use crate::tree::{at, flag};
use crate::validation::texts::config_map_key;
use crate::validation::{Field, equal};
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// `configmaps`
pub static CONFIG_MAPS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ConfigMap", "configmaps", "io.k8s.api.core.v1")
        .short(&["cm"])
        .measured(&ByBareName("configmaps"))
        .printed(columns(), cells)
        .governed_by(Rules {
            validate,
            validate_update: |new, old, errors| immutable(new, old, &["data", "binaryData"], errors),
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let data = Column::of("Data", "string", "io.k8s.api.core.v1.ConfigMap", "data");
    vec![Column::name(), data, Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    vec![name(object), (count(&tree, "data") + count(&tree, "binaryData")).into(), age(object, now)]
}

/// The most bytes that all values together may have.
pub const MAX_BYTES: usize = 1024 * 1024;

fn validate(config_map: &Value, errors: &mut FieldErrors) {
    let mut size = 0;
    for (key, value) in Field::of(config_map, "data").members() {
        key_is_right(key, &value, errors);
        if config_map["binaryData"].get(key).is_some() {
            errors.invalid(value.path.as_str(), &key.into(), "duplicate of key present in binaryData");
        }
        size += value.text().len();
    }
    for (key, value) in Field::of(config_map, "binaryData").members() {
        key_is_right(key, &value, errors);
        size += decoded_bytes(value.text());
    }
    if size > MAX_BYTES {
        errors.too_long("[]", MAX_BYTES);
    }
}

/// A key of a ConfigMap or a Secret.
pub fn key_is_right(key: &str, value: &Field, errors: &mut FieldErrors) {
    for wrong in config_map_key(key) {
        errors.invalid(value.path.as_str(), &key.into(), wrong);
    }
}

/// How many bytes a base64 text stands for.
pub fn decoded_bytes(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

/// What was once declared immutable stays as it is, the declaration too.
pub fn immutable(new: &Value, old: &Value, fields: &[&str], errors: &mut FieldErrors) {
    const WORDS: &str = "field is immutable when `immutable` is set";
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        errors.forbidden("immutable", WORDS);
    }
    for field in fields.iter().filter(|field| !equal(at(new, field), at(old, field))) {
        errors.forbidden(*field, WORDS);
    }
}
