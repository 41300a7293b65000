//! DeviceClass: which devices somebody means by a name.

use std::sync::LazyLock;

use super::devices::class;
use super::group::{DEFINITIONS, GROUP};
use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::validation::Field;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// `deviceclasses`
pub static DEVICE_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin(GROUP, "v1", "DeviceClass", "deviceclasses", DEFINITIONS)
        .cluster_scoped()
        .with_generation()
        .printed(vec![Column::name(), Column::age()], cells)
        .governed_by(Rules {
            validate_create: |new, errors| class(&Field::of(new, "spec"), None, errors),
            validate_update: |new, old, errors| {
                class(&Field::of(new, "spec"), Some(&Field::of(old, "spec")), errors);
            },
            ..RULES
        })
        .into()
});

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), age(object, now)]
}
