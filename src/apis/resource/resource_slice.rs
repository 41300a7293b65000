//! ResourceSlice: devices that a driver has to give.

use std::sync::LazyLock;

use super::devices::{driver, set};
use super::{DEFINITIONS, GROUP};
use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::names::{dns1123_label, dns1123_subdomain};
use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::core::pod::validation::node_selector;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::name;
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use crate::apis::validation::Field;
use serde_json::{Value, json};

const MOST_DEVICES: usize = 128;

/// `resourceslices`
pub static RESOURCE_SLICES: Builtin = LazyLock::new(|| {
    Kind::builtin(GROUP, "v1", "ResourceSlice", "resourceslices", DEFINITIONS)
        .cluster_scoped()
        .with_generation()
        .selectable_by(&["spec.nodeName", "spec.driver"])
        .printed(columns(), cells)
        .governed_by(Rules {
            validate,
            validate_update: |new, old, errors| {
                for path in ["spec.driver", "spec.pool.name", "spec.nodeName"] {
                    Field::of(new, path).immutable(&Field::of(old, path), errors);
                }
            },
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let spec = "io.k8s.api.resource.v1.ResourceSliceSpec";
    vec![
        Column::name(),
        Column::of("Node", "string", spec, "nodeName"),
        Column::of("Driver", "string", spec, "driver"),
        Column::of("Pool", "string", "io.k8s.api.resource.v1.ResourcePool", "name"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let cell = |path: &str| json!(text(&tree, path));
    let [node, driver, pool] = ["spec.nodeName", "spec.driver", "spec.pool.name"].map(cell);
    vec![name(object), node, driver, pool, age(object, now)]
}

fn validate(slice: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(slice, "spec");
    driver(&spec.child("driver"), errors);
    validate_pool(&spec.child("pool"), errors);
    validate_place(&spec, errors);
    for device in set(&spec.child("devices"), MOST_DEVICES, "name", errors) {
        device.child("name").must_follow(dns1123_label, errors);
        for taint in device.each("taints") {
            taint.child("key").require(errors);
            taint.child("effect").one_of(&["NoExecute", "NoSchedule", "None"], errors);
        }
    }
}

fn validate_pool(pool: &Field, errors: &mut FieldErrors) {
    const MOST_BYTES: usize = 253;
    let (name, count, generation) =
        (pool.child("name"), pool.child("resourceSliceCount"), pool.child("generation"));
    if name.is_zero() {
        name.required("", errors);
    } else {
        if name.text().len() > MOST_BYTES {
            errors.too_long(name.path.as_str(), MOST_BYTES);
        }
        name.text().split('/').for_each(|part| name.invalid_each(dns1123_subdomain(part), errors));
    }
    if count.number() <= 0 {
        count.invalid("must be greater than zero", errors);
    }
    if generation.number() < 0 {
        generation.invalid("must be greater than or equal to zero", errors);
    }
}

/// Where the devices are: said in exactly one way.
fn validate_place(spec: &Field, errors: &mut FieldErrors) {
    let [node, selector, all, each] =
        ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"].map(|name| spec.child(name));
    let ways = [!node.is_zero(), selector.is_set(), all.flag(), each.flag()];
    let words = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match ways.iter().filter(|is_said| **is_said).count() {
        0 => spec.required(words, errors),
        1 => {}
        _ => {
            errors.invalid(spec.path.as_str(), &Value::Null, format!("{words}, but multiple fields are set"))
        }
    }
    node.follows(dns1123_subdomain, errors);
    if selector.is_set() {
        node_selector(&selector, errors);
    }
}
