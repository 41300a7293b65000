//! ResourceClaim and ResourceClaimTemplate: the wish for devices, and what was given.

use std::sync::LazyLock;

use super::allocation::validate_status_update;
use super::devices::{claim, default_claim};
use super::group::{DEFINITIONS, GROUP};
use crate::gated::Gated;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::name;
use crate::quota::devices::DEVICES;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use crate::validation::texts::template_metadata;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// Keeps a claim that has devices (`resourceapi.Finalizer`).
pub const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// Of a claim, and of what a template makes.
const GATES: &[Gated] = &[
    Gated::new("DRAConsumableCapacity", "spec.devices.constraints[].distinctAttribute"),
    Gated::new("DRAConsumableCapacity", "spec.devices.requests[].exactly.capacity"),
    Gated::new("DRAConsumableCapacity", "spec.devices.requests[].firstAvailable[].capacity"),
    Gated::new("DRAConsumableCapacity", "status.allocation.devices.results[].consumedCapacity"),
    Gated::new("DRAConsumableCapacity", "status.allocation.devices.results[].shareID"),
    Gated::new("DRAConsumableCapacity", "status.devices[].shareID"),
];

/// `resourceclaims`
pub static RESOURCE_CLAIMS: Builtin = LazyLock::new(|| {
    let state = "A summary of the current state (allocated, pending, reserved, etc.).";
    Kind::builtin(GROUP, "v1", "ResourceClaim", "resourceclaims", DEFINITIONS)
        .with(&[Subresource::Status])
        .status_leaves_metadata()
        .measured(&DEVICES)
        .gated("", GATES)
        .printed(vec![Column::name(), Column::new("State", "string", state), Column::age()], cells)
        .defaulted(|claim| default_claim(claim, "spec"))
        .governed_by(Rules {
            validate_create: |new, errors| claim(&Field::of(new, "spec.devices"), errors),
            validate_update: |new, old, errors| {
                Field::of(new, "spec").immutable(&Field::of(old, "spec"), errors);
            },
            validate_status_update,
            ..RULES
        })
        .into()
});

/// `resourceclaimtemplates`
pub static RESOURCE_CLAIM_TEMPLATES: Builtin = LazyLock::new(|| {
    Kind::builtin(GROUP, "v1", "ResourceClaimTemplate", "resourceclaimtemplates", DEFINITIONS)
        .gated("/spec", GATES)
        .printed(vec![Column::name(), Column::age()], |object, now| vec![name(object), age(object, now)])
        .defaulted(|template| default_claim(template, "spec.spec"))
        .governed_by(Rules {
            validate_create: |new, errors| {
                template_metadata(&Field::of(new, "spec.metadata"), errors);
                claim(&Field::of(new, "spec.spec.devices"), errors);
            },
            validate_update: |new, old, errors| {
                Field::of(new, "spec").immutable(&Field::of(old, "spec"), errors);
            },
            ..RULES
        })
        .into()
});

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), state(object, &object.to_value()).into(), age(object, now)]
}

/// `resourceClaimState`: `allocated,reserved`
fn state(object: &Object, tree: &Value) -> String {
    let mut states = Vec::new();
    if object.is_deleting() {
        states.push("deleted");
    }
    if !is_set(tree, "status.allocation") {
        if !object.is_deleting() {
            states.push("pending");
        }
    } else {
        states.push("allocated");
        if count(tree, "status.reservedFor") > 0 {
            states.push("reserved");
        }
    }
    states.join(",")
}
