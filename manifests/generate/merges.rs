//! How lists and maps merge and patch, from the published document: two tables of facts, and the table that
//! the tests of managed fields hold against them.

use serde_json::Value;

use crate::checkout::{Checkout, Problem};
use crate::definitions::{Definitions, published as read};
use crate::table::Table;

/// Of server-side apply.
const OF_APPLY: [&str; 4] =
    ["x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-unions"];

/// Of strategic merge patches.
const OF_PATCHES: [&str; 2] = ["x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy"];

/// The columns of the table of the tests.
const COLUMNS: [&str; 5] = [
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
];

/// # Errors
/// No published document.
pub(crate) fn list_types(checkout: &Checkout, before: &str) -> Result<String, Problem> {
    Ok(facts(&read(checkout)?, before, &OF_APPLY))
}

/// # Errors
/// No published document.
pub(crate) fn patch(checkout: &Checkout, before: &str) -> Result<String, Problem> {
    Ok(facts(&read(checkout)?, before, &OF_PATCHES))
}

/// # Errors
/// No published document.
pub(crate) fn published(checkout: &Checkout, before: &str) -> Result<String, Problem> {
    let mut table = Table::with_head_of(before);
    each(&read(checkout)?, &mut |definition, field, schema| {
        let cells = COLUMNS.map(|column| cell(&schema[column]));
        if cells.iter().any(|cell| !cell.is_empty()) {
            let [list_type, keys, map_type, strategy, merge_key] = cells.each_ref().map(String::as_str);
            table.add(&[definition, field, list_type, keys, map_type, strategy, merge_key]);
        }
    });
    Ok(table.to_string())
}

fn facts(definitions: &Definitions, before: &str, names: &[&str]) -> String {
    let mut table = Table::with_head_of(before);
    each(definitions, &mut |definition, field, schema| {
        for name in names {
            if let Some(value) = schema.get(*name) {
                table.add(&[definition, field, name, &value.to_string()]);
            }
        }
    });
    table.to_string()
}

/// Each type, as the field `-`, and each of its fields.
fn each(definitions: &Definitions, visit: &mut dyn FnMut(&str, &str, &Value)) {
    for (name, definition) in definitions {
        visit(name, "-", definition);
        for (field, schema) in definition["properties"].as_object().into_iter().flatten() {
            visit(name, field, schema);
        }
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        _ => String::new(),
    }
}
