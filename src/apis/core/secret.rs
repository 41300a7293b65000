//! Secret: bytes that are not for everybody.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::name;
use crate::apis::table::{Column, age};
use crate::apis::tree::{count, text};
use serde_json::{Value, json};

/// `secrets`
pub static SECRETS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Secret", "secrets", "io.k8s.api.core.v1")
        .selectable_by(&["type"])
        .printed(columns(), cells)
        .into()
});

const DEFINITION: &str = "io.k8s.api.core.v1.Secret";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Type", "string", DEFINITION, "type"),
        Column::of("Data", "string", DEFINITION, "data"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    vec![name(object), json!(text(&tree, "type")), count(&tree, "data").into(), age(object, now)]
}
