//! Versions that Kubernetes no longer serves: made from today's definitions, as
//! `manifests/schemas/legacy.json` says, because nearly every field is still what it was. It also has the few
//! types of discovery that no generated source has.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Map, Value, json};

/// Adds the definitions of the old versions.
pub(crate) fn add(definitions: &mut BTreeMap<String, Value>) {
    let text =
        fs::read_to_string("../../manifests/schemas/legacy.json").expect("the file is part of the package");
    let versions: Vec<Value> = serde_json::from_str(&text).expect("legacy.json is JSON");
    for version in &versions {
        add_version(version, definitions);
    }
}

fn add_version(version: &Value, definitions: &mut BTreeMap<String, Value>) {
    let word = |name: &str| version[name].as_str().unwrap_or_else(|| panic!("{name} is a text"));
    let (from, to) = (word("from"), word("to"));
    let types: Vec<&str> =
        version["types"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for name in &types {
        let copied = definitions.get(&format!("{from}.{name}"));
        let mut copied = copied.unwrap_or_else(|| panic!("{from}.{name} is no definition")).clone();
        rename(&mut copied, &types, from, to);
        merge(&mut copied, &version["changes"][*name]);
        definitions.insert(format!("{to}.{name}"), copied);
    }
    for (name, own) in version["own"].as_object().into_iter().flatten() {
        definitions.insert(format!("{to}.{name}"), own.clone());
    }
    for name in version["kinds"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let kind = json!([{"group": word("group"), "kind": name, "version": word("version")}]);
        let definition = definitions.get_mut(&format!("{to}.{name}"));
        definition.unwrap_or_else(|| panic!("{to}.{name} is no definition"))["x-kubernetes-group-version-kind"] =
            kind;
    }
}

/// References among the copied types lead to the copies.
fn rename(schema: &mut Value, types: &[&str], from: &str, to: &str) {
    match schema {
        Value::Object(map) => map.values_mut().for_each(|value| rename(value, types, from, to)),
        Value::Array(list) => list.iter_mut().for_each(|value| rename(value, types, from, to)),
        Value::String(text) => {
            let prefix = format!("#/definitions/{from}.");
            if let Some(name) = text.strip_prefix(&prefix).filter(|name| types.contains(name)) {
                *text = format!("#/definitions/{to}.{name}");
            }
        }
        _ => {}
    }
}

/// Objects are merged, nulls take away, everything else is replaced.
fn merge(schema: &mut Value, change: &Value) {
    let Value::Object(change) = change else { return };
    if !schema.is_object() {
        *schema = Value::Object(Map::new());
    }
    for (name, value) in change {
        match value {
            Value::Object(_) => merge(&mut schema[name.as_str()], value),
            Value::Null => drop(schema.as_object_mut().and_then(|map| map.remove(name))),
            other => schema[name.as_str()] = other.clone(),
        }
    }
}
