//! `manifests/schemas/protobuf.tsv`: the numbers of fields, from the tags of Go's types, which say what
//! `generated.proto` says and, beyond it, what hangs on pointers.

use serde_json::Value;

use crate::checkout::{Checkout, Problem};
use crate::definitions::{self, Definitions};
use crate::go::{Expr, GoField, Kind};
use crate::go_facts::is_named_list;
use crate::table::Table;

/// Types that decode by rules of their own.
const BY_RULE: &str = "manifests/schemas/types.tsv";

/// Versions that are published no more.
const LEGACY: &str = "manifests/schemas/legacy.json";

/// # Errors
/// No definitions, or no Go's types.
pub(crate) fn make(checkout: &Checkout, before: &str) -> Result<String, Problem> {
    let all = definitions::own(checkout)?;
    let by_rule = checkout.own(BY_RULE)?;
    let mut names: Vec<String> = all.keys().cloned().chain(legacy(checkout)?).collect();
    names.retain(|name| !by_rule.lines().any(|line| line.split('\t').next() == Some(name)));
    let mut table = Table::with_head_of(before);
    table.keep(before, |definition| checkout.packages.fields_of(definition).is_none());
    let mut is_any_known = false;
    for name in &names {
        let Some(fields) = checkout.packages.fields_of(name) else { continue };
        is_any_known = true;
        for (field, path) in numbers(checkout, &fields, "") {
            if is_published(&all, name, &field) {
                table.add(&[name, &field, &path]);
            }
        }
    }
    match is_any_known {
        true => Ok(table.to_string()),
        false => Err(Problem::Missing("staging/src/k8s.io/api with Go's types".into())),
    }
}

/// The names of definitions that are made from others.
fn legacy(checkout: &Checkout) -> Result<Vec<String>, Problem> {
    let Ok(text) = checkout.own(LEGACY) else { return Ok(Vec::new()) };
    let versions: Value =
        serde_json::from_str(&text).map_err(|error| Problem::bad(LEGACY, error.to_string()))?;
    let names_of = |version: &Value| {
        let to = version["to"].as_str().unwrap_or_default().to_owned();
        let types = version["types"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let own = version["own"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        types.chain(own).map(|name| format!("{to}.{name}")).collect::<Vec<_>>()
    };
    Ok(versions.as_array().into_iter().flatten().flat_map(names_of).collect())
}

/// Of a definition that is not published, all fields count.
fn is_published(all: &Definitions, definition: &str, field: &str) -> bool {
    all.get(definition).is_none_or(|schema| schema["properties"].get(field).is_some())
}

/// Each field with the numbers that lead to it.
fn numbers(checkout: &Checkout, fields: &[GoField], before: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for field in fields {
        let Some(number) = field.number else { continue };
        let path = format!("{before}{number}");
        if field.json.is_empty() {
            let inner = checkout.packages.fields(&field.of).unwrap_or_default();
            found.extend(numbers(checkout, &inner, &format!("{path}.")));
        } else {
            found.push((field.json.clone(), format!("{path}{}", suffix(checkout, &field.of))));
        }
    }
    found
}

/// A list with a name is a message with one field; what hangs on a pointer has a question mark.
fn suffix(checkout: &Checkout, of: &Expr) -> &'static str {
    if is_named_list(checkout, of) {
        return ".1";
    }
    match checkout.packages.kind(of) {
        Some(Kind::Pointer) => "?",
        _ => "",
    }
}
