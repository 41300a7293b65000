//! Embedded resources (`schema/objectmeta`): objects within objects keep to the rules of objects.

use serde_json::{Map, Value, json};

use super::{Structural, child};
use crate::object_meta::{object_meta as validate, text};
use apimachinery::decode::decode_metadata;
use apimachinery::field_error::FieldErrors;
use apimachinery::names;

impl Structural {
    /// Reads the type and metadata of embedded resources as those of objects; `unknown` gets the paths of the
    /// fields that this drops (`schemaobjectmeta.Coerce`).
    ///
    /// # Errors
    /// The first value that does not fit.
    pub fn coerce_embedded(
        &self,
        path: &str,
        value: &mut Value,
        unknown: &mut Vec<String>,
    ) -> Result<(), FieldErrors> {
        if self.embedded_resource
            && let Value::Object(map) = value
        {
            coerce_resource(path, map, unknown)?;
        }
        match value {
            Value::Object(map) => {
                for (name, value) in map.iter_mut() {
                    if let Some(schema) = self.member(name) {
                        schema.coerce_embedded(&self.path_of(path, name), value, unknown)?;
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return Ok(()) };
                for (at, item) in items.iter_mut().enumerate() {
                    schema.coerce_embedded(&format!("{path}[{at}]"), item, unknown)?;
                }
            }
            _ => {}
        }
        Ok(())
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

fn coerce_resource(
    path: &str,
    map: &mut Map<String, Value>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    for name in ["apiVersion", "kind"] {
        if let Some(value) = map.get(name).filter(|value| !value.is_string()) {
            errors.invalid(child(path, name), value, "must be a string");
            return Err(errors);
        }
    }
    let Some(given) = map.get_mut("metadata") else { return Ok(()) };
    let path = child(path, "metadata");
    match decode_metadata(given.clone()) {
        Ok((metadata, fields)) => {
            unknown.extend(fields.iter().map(|field| child(&path, field)));
            *given = metadata;
            Ok(())
        }
        Err(error) => {
            errors.invalid(path, given, error);
            Err(errors)
        }
    }
}

fn of_resource(path: &str, value: &Value, errors: &mut FieldErrors) {
    let mut refuse = |field: &str, detail: &str| errors.invalid(child(path, field), &value[field], detail);
    match value["apiVersion"].as_str() {
        Some("") => refuse("apiVersion", "must not be empty"),
        Some(version) if version.matches('/').count() > 1 => {
            refuse("apiVersion", &format!("unexpected GroupVersion string: {version}"));
        }
        _ => {}
    }
    match value["kind"].as_str() {
        Some("") => refuse("kind", "must not be empty"),
        Some(kind) => {
            for detail in names::dns1035_label(&kind.to_lowercase()) {
                refuse("kind", &format!("may have mixed case, but should otherwise match: {detail}"));
            }
        }
        None => {}
    }
    for field in ["apiVersion", "kind"].iter().filter(|field| value[**field].is_null()) {
        errors.required(child(path, field), "");
    }
    if value["metadata"].is_object() {
        let mut object = json!({ "metadata": value["metadata"] });
        // It needs none.
        if text(&object, "name").is_empty() {
            object["metadata"]["name"] = "fakename".into();
        }
        let namespaced = !text(&object, "namespace").is_empty();
        let mut found = validate(&object, namespaced, &names::path_segment_name);
        found.0.iter_mut().for_each(|error| error.path = child(path, &error.path));
        errors.extend(found);
    }
}
