//! PodDisruptionBudget: how many pods may be taken away at once.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{int_or_string, name};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::{at, number};
use crate::validation::Field;
use crate::validation::conditions::conditions;
use crate::validation::labels::label_selector;
use crate::validation::texts::{at_most_100_percent, number_or_percent};
use apimachinery::field_error::FieldErrors;
use apimachinery::names;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `poddisruptionbudgets`
pub static POD_DISRUPTION_BUDGETS: Builtin = LazyLock::new(|| {
    Kind::builtin("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "io.k8s.api.policy.v1")
        .short(&["pdb"])
        .with(&[Subresource::Status])
        .with_generation()
        .printed(columns(), cells)
        .governed_by(Rules {
            allow_unconditional_update: false,
            validate_name: names::path_segment_name,
            validate,
            validate_status_update: |new, _, errors| {
                conditions(&Field::of(new, "status.conditions"), errors);
                Field::of(new, "status").all_nonnegative(COUNTS, errors);
            },
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let allowed = "Calculated number of pods that may be disrupted at this time.";
    vec![
        Column::name(),
        Column::new("Min Available", "string", "The minimum number of pods that must be available."),
        Column::new("Max Unavailable", "string", "The maximum number of pods that may be unavailable."),
        Column::new("Allowed Disruptions", "integer", allowed),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let bound = |path: &str| match at(&tree, path) {
        Value::Null => json!("N/A"),
        bound => int_or_string(bound).into(),
    };
    vec![
        name(object),
        bound("spec.minAvailable"),
        bound("spec.maxUnavailable"),
        number(&tree, "status.disruptionsAllowed").into(),
        age(object, now),
    ]
}

const COUNTS: &[&str] = &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];

fn validate(budget: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(budget, "spec");
    let bounds = ["minAvailable", "maxUnavailable"].map(|name| spec.child(name));
    if bounds.iter().all(Field::is_set) {
        spec.invalid("minAvailable and maxUnavailable cannot be both set", errors);
    }
    for bound in bounds.iter().filter(|bound| bound.is_set()) {
        number_or_percent(bound, errors);
        at_most_100_percent(bound, errors);
    }
    label_selector(&spec.child("selector"), errors);
    spec.child("unhealthyPodEvictionPolicy").one_of_if_set(&["AlwaysAllow", "IfHealthyBudget"], errors);
}
