//! PriorityClass: which pods go first.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::name;
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use serde_json::{Value, json};

/// `priorityclasses`
pub static PRIORITY_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "io.k8s.api.scheduling.v1")
        .cluster_scoped()
        .short(&["pc"])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(|tree| set_if_unset(tree, "preemptionPolicy", "PreemptLowerPriority"))
        .into()
});

const DEFINITION: &str = "io.k8s.api.scheduling.v1.PriorityClass";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Value", "integer", DEFINITION, "value"),
        Column::of("Global-Default", "boolean", DEFINITION, "globalDefault"),
        Column::age(),
        Column::of("PreemptionPolicy", "string", DEFINITION, "preemptionPolicy"),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    vec![
        name(object),
        number(&tree, "value").into(),
        flag(&tree, "globalDefault").into(),
        age(object, now),
        json!(text(&tree, "preemptionPolicy")),
    ]
}
