//! Secret: bytes that are not for everybody.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::name;
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

/// `secrets`
pub static SECRETS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Secret", "secrets", "io.k8s.api.core.v1")
        .selectable_by(&["type"])
        .printed(columns(), cells)
        .defaulted(defaults)
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

/// The type; and `stringData`, which is for writing only, goes into `data`.
fn defaults(secret: &mut Value) {
    if let Some(Value::Object(given)) = remove(secret, "stringData") {
        for (key, value) in given {
            let encoded = BASE64.encode(value.as_str().unwrap_or(""));
            object_mut(secret, "data").insert(key, encoded.into());
        }
    }
    set_if_zero(secret, "type", "Opaque");
}
