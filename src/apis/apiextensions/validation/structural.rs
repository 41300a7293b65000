//! Structural schemas (`schema/validation.go`): every value has its type where it stands, conditions only
//! add to what the structure says.

use serde_json::{Value, json};

use super::super::structural::ValuePattern;
use apimachinery::field_error::FieldErrors;

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaLevel {
    Root,
    Item,
    Field,
}

/// The whole schema of a version.
pub(super) fn validate(schema: &Value, path: &str, errors: &mut FieldErrors) {
    structure(schema, SchemaLevel::Root, path, errors);
    complete(schema, schema, path, errors);
}

fn flag(schema: &Value, key: &str) -> bool {
    schema[key].as_bool().unwrap_or(false)
}

fn structure(schema: &Value, level: SchemaLevel, path: &str, errors: &mut FieldErrors) {
    if schema["type"] == "array" && !schema["items"].is_object() {
        errors.required(format!("{path}.items"), "must be specified");
    }
    if schema["items"].is_object() {
        structure(&schema["items"], SchemaLevel::Item, &format!("{path}.items"), errors);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        structure(inner, SchemaLevel::Field, &format!("{path}.properties[{name}]"), errors);
    }
    if schema["additionalProperties"].is_object() {
        let path = format!("{path}.additionalProperties");
        structure(&schema["additionalProperties"], SchemaLevel::Field, &path, errors);
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        for extension in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(schema, extension) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                errors.invalid(format!("{path}.{extension}"), &json!(true), detail);
            }
        }
    }
    conditions(schema, is_int_or_string(&schema["anyOf"]), path, errors);
    types(schema, level, path, errors);
    resource(schema, level, path, errors);
}

fn is_int_or_string(any_of: &Value) -> bool {
    *any_of == json!([{"type": "integer"}, {"type": "string"}])
}

fn types(schema: &Value, level: SchemaLevel, path: &str, errors: &mut FieldErrors) {
    let of_type = schema["type"].as_str().unwrap_or_default();
    let (embedded, at) = (flag(schema, "x-kubernetes-embedded-resource"), format!("{path}.type"));
    if embedded && of_type != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        match of_type {
            "" => errors.required(at, detail),
            other => errors.invalid(at, &json!(other), detail),
        }
    } else if of_type.is_empty()
        && !flag(schema, "x-kubernetes-int-or-string")
        && !flag(schema, "x-kubernetes-preserve-unknown-fields")
    {
        errors.required(
            at,
            match level {
                SchemaLevel::Root => "must not be empty at the root",
                SchemaLevel::Item => "must not be empty for specified array items",
                SchemaLevel::Field => "must not be empty for specified object fields",
            },
        );
    } else if level == SchemaLevel::Root && !of_type.is_empty() && of_type != "object" {
        errors.invalid(at, &json!(of_type), "must be object at the root");
    }
    if embedded && !schema["additionalProperties"].is_null() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.forbidden(format!("{path}.additionalProperties"), detail);
    }
}

/// Type and metadata of a resource are what they are everywhere.
fn resource(schema: &Value, level: SchemaLevel, path: &str, errors: &mut FieldErrors) {
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let properties = &schema["properties"];
    if level == SchemaLevel::Root || embedded {
        for (name, wanted) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
            let Some(given) = properties.get(name) else { continue };
            if given["type"] != wanted {
                let shown = given["type"].as_str().unwrap_or_default();
                let path = format!("{path}.properties[{name}].type");
                errors.invalid(path, &json!(shown), format!("must be {wanted}"));
            }
        }
    }
    if level == SchemaLevel::Root
        && let Some(metadata) = properties.get("metadata").and_then(Value::as_object)
    {
        let known =
            |name: &String| matches!(name.as_str(), "type" | "properties" | "default" | "description");
        let named = metadata.get("properties").and_then(Value::as_object);
        let only_names = named
            .is_none_or(|named| named.keys().all(|name| matches!(name.as_str(), "name" | "generateName")));
        if !only_names || !metadata.keys().all(known) || metadata.contains_key("description") {
            let detail = "must not specify anything other than name and generateName, but metadata is \
                          implicitly specified";
            errors.forbidden(format!("{path}.properties[metadata]"), detail);
        }
    }
    let has_properties = properties.as_object().is_some_and(|properties| !properties.is_empty());
    if embedded && !flag(schema, "x-kubernetes-preserve-unknown-fields") && !has_properties {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.required(format!("{path}.properties"), detail);
    }
}

/// `allOf`, `anyOf`, `oneOf`, `not`, and patterns.
fn conditions(schema: &Value, skip_any_of: bool, path: &str, errors: &mut FieldErrors) {
    for (member, skipped) in [("anyOf", skip_any_of), ("allOf", false), ("oneOf", false)] {
        let list = schema[member].as_array().into_iter().flatten();
        for (at, inner) in list.enumerate().filter(|_| !skipped) {
            // The second way to write an integer or a string.
            let skip = member == "allOf" && at == 0 && is_int_or_string(&inner["anyOf"]);
            condition(inner, skip, member == "allOf", &format!("{path}.{member}[{at}]"), errors);
        }
    }
    if schema["not"].is_object() {
        condition(&schema["not"], false, false, &format!("{path}.not"), errors);
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && let Err(error) = ValuePattern::read(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.invalid(format!("{path}.pattern"), &json!(pattern), detail);
    }
}

/// A condition says nothing about structure.
fn condition(schema: &Value, skip_any_of: bool, may_have_rules: bool, path: &str, errors: &mut FieldErrors) {
    conditions(schema, skip_any_of, path, errors);
    if schema["items"].is_object() {
        condition(&schema["items"], false, may_have_rules, &format!("{path}.items"), errors);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        condition(inner, false, may_have_rules, &format!("{path}.properties[{name}]"), errors);
    }
    let rules = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    let allowed = |member: &str| {
        may_have_rules && matches!(member, "x-kubernetes-validations" | "additionalProperties")
    };
    for (member, detail) in rules {
        let given = &schema[member];
        let is_set = !given.is_null() && *given != false && *given != "" && *given != json!([]);
        if is_set && !allowed(member) {
            errors.forbidden(format!("{path}.{member}"), detail);
        }
    }
    if !schema["properties"]["metadata"].is_null() {
        let detail = "must not be specified in a nested context";
        errors.forbidden(format!("{path}.properties[metadata]"), detail);
    }
}

/// `validateStructuralCompleteness`: a condition names no field that the structure does not have.
fn complete(structure: &Value, schema: &Value, path: &str, errors: &mut FieldErrors) {
    for member in ["anyOf", "allOf", "oneOf"] {
        for (at, inner) in schema[member].as_array().into_iter().flatten().enumerate() {
            missing(structure, inner, &format!("{path}.{member}[{at}]"), path, errors);
        }
    }
    if schema["not"].is_object() {
        missing(structure, &schema["not"], &format!("{path}.not"), path, errors);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        complete(inner, inner, &format!("{path}.properties[{name}]"), errors);
    }
    for member in ["items", "additionalProperties"] {
        if schema[member].is_object() {
            complete(&schema[member], &schema[member], &format!("{path}.{member}"), errors);
        }
    }
}

fn missing(structure: &Value, condition: &Value, path: &str, wanted: &str, errors: &mut FieldErrors) {
    for (name, inner) in condition["properties"].as_object().into_iter().flatten() {
        let of = structure["properties"].get(name).or(structure.get("additionalProperties"));
        match of {
            Some(of) => {
                let path = format!("{path}.properties[{name}]");
                missing(of, inner, &path, &format!("{wanted}.properties[{name}]"), errors);
            }
            None => {
                let detail = format!("because it is defined in {path}.properties[{name}]");
                errors.required(format!("{wanted}.properties[{name}]"), &detail);
            }
        }
    }
    if condition["items"].is_object() {
        if structure["items"].is_object() {
            let (path, wanted) = (format!("{path}.items"), format!("{wanted}.items"));
            missing(&structure["items"], &condition["items"], &path, &wanted, errors);
        } else {
            let detail = format!("because it is defined in {path}.items");
            errors.required(format!("{wanted}.items"), &detail);
        }
    }
    for member in ["anyOf", "allOf", "oneOf"] {
        for (at, inner) in condition[member].as_array().into_iter().flatten().enumerate() {
            missing(structure, inner, &format!("{path}.{member}[{at}]"), wanted, errors);
        }
    }
}
