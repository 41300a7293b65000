//! Lease: who holds something, and until when.

use std::sync::LazyLock;

use crate::gated::Gated;
use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::text;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::qualified_name;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

const GATES: &[Gated] = &[
    Gated::new("CoordinatedLeaderElection", "spec.strategy").alone(),
    Gated::new("CoordinatedLeaderElection", "spec.preferredHolder").alone(),
];

/// `leases`
pub static LEASES: Builtin = LazyLock::new(|| {
    Kind::builtin("coordination.k8s.io", "v1", "Lease", "leases", "io.k8s.api.coordination.v1")
        .printed(columns(), cells)
        .gated("", GATES)
        .governed_by(Rules {
            allow_create_on_update: true,
            allow_unconditional_update: false,
            validate,
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let holder = Column::of("Holder", "string", "io.k8s.api.coordination.v1.LeaseSpec", "holderIdentity");
    vec![Column::name(), holder, Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), json!(text(&object.to_value(), "spec.holderIdentity")), age(object, now)]
}

fn validate(lease: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(lease, "spec");
    let (seconds, transitions) = (spec.child("leaseDurationSeconds"), spec.child("leaseTransitions"));
    if seconds.is_set() && seconds.number() <= 0 {
        seconds.invalid("must be greater than 0", errors);
    }
    transitions.nonnegative(errors);
    let strategy = spec.child("strategy");
    if strategy.is_set() {
        // Upstream says the field's name twice.
        let shown = strategy.shown_as("spec.strategy.strategy");
        match strategy.text() {
            "OldestEmulationVersion" => {}
            text if text.contains('/') => shown.invalid_each(qualified_name(text), errors),
            _ => shown.not_supported(&["OldestEmulationVersion"], errors),
        }
    }
    if !spec.child("preferredHolder").is_zero() && strategy.is_zero() {
        spec.child("preferredHolder").forbidden("may only be specified if `strategy` is defined", errors);
    }
}
