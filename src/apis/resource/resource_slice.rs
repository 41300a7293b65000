//! ResourceSlice: devices that a driver has to give.

use std::sync::LazyLock;

use super::group::{DEFINITIONS, GROUP};
use super::names::pool_name;
use super::slice_devices::{devices, ways};
use crate::gated::Gated;
use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use crate::validation::texts::csi_driver_name;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::{Time, rfc3339};
use serde_json::{Value, json};

const GATES: &[Gated] = &[
    Gated::new("DRAConsumableCapacity", "spec.devices[].allowMultipleAllocations"),
    Gated::new("DRAConsumableCapacity", "spec.devices[].capacity.*.requestPolicy"),
    Gated::new("DRAPartitionableDevices", "spec.sharedCounters"),
    Gated::new("DRAPartitionableDevices", "spec.perDeviceNodeSelection"),
    Gated::new("DRAPartitionableDevices", "spec.devices[].consumesCounters"),
    Gated::new("DRAPartitionableDevices", "spec.devices[].nodeName"),
    Gated::new("DRAPartitionableDevices", "spec.devices[].nodeSelector"),
    Gated::new("DRAPartitionableDevices", "spec.devices[].allNodes"),
    Gated::new("DRAListTypeAttributes", "spec.devices[].attributes.*.bools"),
    Gated::new("DRAListTypeAttributes", "spec.devices[].attributes.*.ints"),
    Gated::new("DRAListTypeAttributes", "spec.devices[].attributes.*.strings"),
    Gated::new("DRAListTypeAttributes", "spec.devices[].attributes.*.versions"),
    Gated::new("DRANodeAllocatableResources", "spec.devices[].nodeAllocatableResourceMappings"),
];

/// `resourceslices`
pub static RESOURCE_SLICES: Builtin = LazyLock::new(|| {
    Kind::builtin(GROUP, "v1", "ResourceSlice", "resourceslices", DEFINITIONS)
        .cluster_scoped()
        .with_generation()
        .gated("", GATES)
        .selectable_by(&["spec.nodeName", "spec.driver"])
        .printed(columns(), cells)
        .stamped(stamp_taints)
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

/// `SetDefaults_DeviceTaint`: a taint counts from the write that put it on.
fn stamp_taints(slice: &mut Value, now: Time) {
    for device in items_mut(slice, "spec.devices") {
        for taint in items_mut(device, "taints") {
            set_if_unset(taint, "timeAdded", rfc3339(now));
        }
    }
}

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
    csi_driver_name(&spec.child("driver"), errors);
    validate_pool(&spec.child("pool"), errors);
    validate_place(&spec, errors);
    if spec.child("sharedCounters").is_set() && spec.child("devices").is_set() {
        let words = "only one of `sharedCounters` or `devices` is allowed";
        errors.invalid("spec", &json!(""), words);
    }
    devices(&spec, errors);
}

fn validate_pool(pool: &Field, errors: &mut FieldErrors) {
    let (count, generation) = (pool.child("resourceSliceCount"), pool.child("generation"));
    pool_name(&pool.child("name"), errors);
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
    let empty = "must be either unset or set to a non-empty string";
    let ways = ways(&node, &selector, &all, Some(&each), empty, errors);
    let words = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match ways.len() {
        0 => spec.required(words, errors),
        1 => {}
        _ => {
            let shown = json!(format!("{{{}}}", ways.join(", ")));
            errors.invalid("spec", &shown, format!("{words}, but multiple fields are set"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taint_counts_from_the_write_that_put_it_on() {
        let since = "2026-01-01T00:00:00Z";
        let taints =
            json!([{"key": "new"}, {"key": "null", "timeAdded": null}, {"key": "old", "timeAdded": since}]);
        let mut slice = json!({"spec": {"devices": [{"name": "a"}, {"name": "b", "taints": taints}]}});
        for seconds in [100, 200] {
            (RESOURCE_SLICES.stamps)(&mut slice, Time::from_timestamp_nanos(seconds * 1_000_000_000 + 1));
            let at = |index: usize| &slice["spec"]["devices"][1]["taints"][index]["timeAdded"];
            let first = "1970-01-01T00:01:40Z";
            assert_eq!([at(0), at(1), at(2)], [first, first, since]);
        }
        assert_eq!(slice["spec"]["devices"][0], json!({"name": "a"}));
    }
}
