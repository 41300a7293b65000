//! Embedded resources (`schema/objectmeta`): objects within objects keep to the rules of objects.

use serde_json::{Value, json};

use super::{Structural, child};
use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::names;

/// The fields of `metav1.ObjectMeta`, and what they hold.
const METADATA: [(&str, &str); 14] = [
    ("annotations", "map"),
    ("creationTimestamp", "text"),
    ("deletionGracePeriodSeconds", "number"),
    ("deletionTimestamp", "text"),
    ("finalizers", "list"),
    ("generateName", "text"),
    ("generation", "number"),
    ("labels", "map"),
    ("managedFields", "list"),
    ("name", "text"),
    ("namespace", "text"),
    ("ownerReferences", "list"),
    ("resourceVersion", "text"),
    ("uid", "text"),
];

impl Structural {
    /// Drops unknown fields of the metadata of embedded resources.
    pub fn coerce_embedded(&self, value: &mut Value) {
        if self.embedded_resource
            && let Some(Value::Object(metadata)) = value.get_mut("metadata")
        {
            metadata.retain(|name, value| {
                METADATA.iter().any(|(known, holds)| known == name && fits(holds, value))
            });
            if metadata.is_empty() {
                metadata.insert("creationTimestamp".into(), Value::Null);
            }
        }
        match value {
            Value::Object(map) => {
                for (name, value) in map.iter_mut() {
                    if let Some(schema) = self.member(name) {
                        schema.coerce_embedded(value);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    items.iter_mut().for_each(|item| schema.coerce_embedded(item));
                }
            }
            _ => {}
        }
    }

    /// What is wrong with embedded resources: type and metadata.
    pub fn validate_embedded(&self, path: &str, value: &Value, errors: &mut FieldErrors) {
        if self.embedded_resource && value.is_object() {
            of_resource(path, value, errors);
        }
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    if let Some(schema) = self.member(name) {
                        schema.validate_embedded(&child(path, name), value, errors);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (at, item) in items.iter().enumerate() {
                    schema.validate_embedded(&format!("{path}[{at}]"), item, errors);
                }
            }
            _ => {}
        }
    }
}

fn fits(holds: &str, value: &Value) -> bool {
    match holds {
        "text" => value.is_string() || value.is_null(),
        "number" => value.is_number(),
        "map" => value.as_object().is_some_and(|map| map.values().all(Value::is_string)),
        _ => value.is_array(),
    }
}

fn of_resource(path: &str, value: &Value, errors: &mut FieldErrors) {
    match value["apiVersion"].as_str() {
        None | Some("") => errors.required(child(path, "apiVersion"), ""),
        Some(version) => {
            let (_, version) = version.split_once('/').unwrap_or(("", version));
            for detail in names::dns1035_label(version) {
                errors.invalid(child(path, "apiVersion"), &value["apiVersion"], detail);
            }
        }
    }
    match value["kind"].as_str() {
        None | Some("") => errors.required(child(path, "kind"), ""),
        Some(kind) => {
            for detail in names::dns1035_label(&kind.to_lowercase()) {
                let detail = format!("may have mixed case, but should otherwise match: {detail}");
                errors.invalid(child(path, "kind"), &json!(kind), detail);
            }
        }
    }
    let metadata = &value["metadata"];
    if let Some(name) = metadata["name"].as_str().filter(|name| !name.is_empty()) {
        for detail in names::path_segment_name(name) {
            errors.invalid(child(path, "metadata.name"), &json!(name), detail);
        }
    }
    for (key, label) in metadata["labels"].as_object().into_iter().flatten() {
        for detail in names::qualified_name(key) {
            errors.invalid(child(path, "metadata.labels"), &json!(key), detail);
        }
        for detail in names::label_value(label.as_str().unwrap_or_default()) {
            errors.invalid(child(path, "metadata.labels"), label, detail);
        }
    }
}
