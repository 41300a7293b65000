//! PodDisruptionBudget: how many pods may be taken away at once.

use std::sync::LazyLock;

use crate::apimachinery::names;
use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{int_or_string, name};
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::{at, number};
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
