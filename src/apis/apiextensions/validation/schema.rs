//! `openAPIV3Schema` (`ValidateCustomResourceDefinitionOpenAPISchema`): what a schema may say, and that its
//! defaults are what it says.

use serde_json::{Value, json};

use crate::apiextensions::structural::Structural;
use apimachinery::field_error::FieldErrors;

const UNSUPPORTED: [&str; 7] =
    ["$ref", "additionalItems", "definitions", "dependencies", "externalSchema", "id", "patternProperties"];

/// Everything but structure, defaults and rules.
pub(super) fn validate(schema: &Value, path: &str, errors: &mut FieldErrors) {
    unsupported(schema, path, errors);
    extensions(schema, path, errors);
    lists(schema, path, errors);
    for (path, inner) in nested(schema, path) {
        validate(inner, &path, errors);
    }
}

/// The schemas in a schema, with their paths.
pub(super) fn nested<'a>(schema: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    let mut found = vec![];
    if schema["additionalProperties"].is_object() {
        found.push((format!("{path}.additionalProperties"), &schema["additionalProperties"]));
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        found.push((format!("{path}.properties[{name}]"), inner));
    }
    if schema["not"].is_object() {
        found.push((format!("{path}.not"), &schema["not"]));
    }
    for member in ["allOf", "oneOf", "anyOf"] {
        for (at, inner) in schema[member].as_array().into_iter().flatten().enumerate() {
            found.push((format!("{path}.{member}[{at}]"), inner));
        }
    }
    if schema["items"].is_object() {
        found.push((format!("{path}.items"), &schema["items"]));
    }
    found
}

fn unsupported(schema: &Value, path: &str, errors: &mut FieldErrors) {
    for member in UNSUPPORTED.into_iter().filter(|member| !schema[*member].is_null()) {
        errors.forbidden(format!("{path}.{member}"), format!("{member} is not supported"));
    }
    if schema["type"] == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.forbidden(format!("{path}.type"), detail);
    }
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    if let Some(name) = schema["type"].as_str().filter(|name| !name.is_empty() && *name != "null")
        && !TYPES.contains(&name)
    {
        errors.not_supported(format!("{path}.type"), &json!(name), &TYPES);
    }
    if schema["items"].is_array() {
        let detail = "items must be a schema object and not an array";
        errors.forbidden(format!("{path}.items"), detail);
    }
    if schema["uniqueItems"] == true {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.forbidden(format!("{path}.uniqueItems"), detail);
    }
    let has_properties = schema["properties"].as_object().is_some_and(|properties| !properties.is_empty());
    let additional = &schema["additionalProperties"];
    if has_properties && (additional.is_object() || *additional == false) {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.forbidden(format!("{path}.additionalProperties"), detail);
    }
}

fn extensions(schema: &Value, path: &str, errors: &mut FieldErrors) {
    let of_type = schema["type"].as_str().unwrap_or_default();
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let path = format!("{path}.x-kubernetes-preserve-unknown-fields");
        errors.invalid(path, &json!(false), "must be true or undefined");
    }
    let mut wants = |extension: &str, wanted: &str, known: &[&str]| {
        let Some(given) = schema[extension].as_str() else { return };
        if of_type != wanted {
            let detail = format!("must be {wanted} if {extension} is specified");
            match of_type {
                "" => errors.required(format!("{path}.type"), &detail),
                other => errors.invalid(format!("{path}.type"), &json!(other), detail),
            }
        }
        if !known.contains(&given) {
            errors.not_supported(format!("{path}.{extension}"), &json!(given), known);
        }
    };
    wants("x-kubernetes-map-type", "object", &["atomic", "granular"]);
    wants("x-kubernetes-list-type", "array", &["atomic", "set", "map"]);
}

fn lists(schema: &Value, path: &str, errors: &mut FieldErrors) {
    let (list_type, items) = (schema["x-kubernetes-list-type"].as_str(), &schema["items"]);
    let keys = schema["x-kubernetes-list-map-keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    if list_type == Some("set") {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let inner = items["x-kubernetes-list-type"].as_str();
        if items["type"] == "array" && inner.is_some_and(|inner| inner != "atomic") {
            errors.invalid(format!("{path}.items.x-kubernetes-list-type"), &json!(inner), detail);
        }
        let inner = items["x-kubernetes-map-type"].as_str();
        if items["type"] == "object" && inner != Some("atomic") {
            errors.invalid(format!("{path}.items.x-kubernetes-map-type"), &json!(inner), detail);
        }
    }
    if !keys.is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        let path = format!("{path}.x-kubernetes-list-type");
        match list_type {
            None => errors.required(path, detail),
            Some(other) => errors.invalid(path, &json!(other), detail),
        }
    }
    if list_type == Some("map") {
        list_map(schema, keys, path, errors);
    }
}

fn list_map(schema: &Value, keys: &[Value], path: &str, errors: &mut FieldErrors) {
    let (items, keys_path) = (&schema["items"], format!("{path}.x-kubernetes-list-map-keys"));
    if keys.is_empty() {
        errors.required(keys_path.clone(), "must not be empty if x-kubernetes-list-type is map");
    }
    if items.is_null() {
        errors.required(format!("{path}.items"), "must have a schema if x-kubernetes-list-type is map");
        return;
    }
    if items["type"] != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let given = items["type"].as_str().unwrap_or_default();
        errors.invalid(format!("{path}.items.type"), &json!(given), detail);
        return;
    }
    let required = items["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        let Some(of_key) = items["properties"].get(name) else {
            let detail = "entries must all be names of item properties";
            errors.invalid(keys_path.clone(), &json!(keys), detail);
            continue;
        };
        let property = format!("{path}.items.properties[{name}]");
        if matches!(of_key["type"].as_str(), Some("array" | "object")) {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.invalid(format!("{property}.type"), &items["type"], detail);
        }
        if of_key["nullable"] == true {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.forbidden(format!("{property}.nullable"), detail);
        }
        if of_key["default"].is_null() && !required.contains(key) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                 property";
            errors.required(format!("{property}.default"), detail);
        }
        if keys[..at].contains(key) {
            errors.invalid(keys_path.clone(), &json!(keys), "must not contain duplicate entries");
        }
    }
}

/// Defaults must be what their schema allows, and hold nothing that would be pruned.
pub(super) fn validate_defaults(schema: &Value, path: &str, errors: &mut FieldErrors) {
    if let Some(default) = schema.get("default") {
        let of = Structural::read(schema, false);
        let at = format!("{path}.default");
        let mut pruned = default.clone();
        of.prune(&mut pruned);
        if pruned != *default {
            errors.invalid(at.clone(), default, "must not have unknown fields");
        } else if default.is_null() && schema["nullable"] != true {
            let detail = "must not be null if nullable is not true";
            errors.invalid(at, default, detail);
        } else {
            // As it stands: the defaults of what it holds are not filled in.
            let before = errors.0.len();
            of.validate_part(&at, default, None, errors);
            if errors.0.len() == before {
                let mut found = FieldErrors::default();
                of.validate_rules(default, Some(default), &mut found);
                if found.is_empty() {
                    of.validate_rules(default, None, &mut found);
                }
                for mut error in found.0 {
                    error.path =
                        if error.path == "<nil>" { at.clone() } else { format!("{at}.{}", error.path) };
                    errors.0.push(error);
                }
            }
        }
    }
    for (path, inner) in nested(schema, path) {
        validate_defaults(inner, &path, errors);
    }
}
