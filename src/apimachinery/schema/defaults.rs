//! Defaults that the schema itself carries: upstream's `+default` markers, and a custom resource's `default`.

use serde_json::Value;

use super::types::{Schema, Shape};

/// Fills in what is absent and has a default, at every depth of what is present. Upstream's
/// `structural/defaulting.Default` and the marker part of the generated `SetObjectDefaults`.
///
/// An object that is absent is not made so that a field of it could be defaulted. A null that the schema does
/// not allow counts as absent.
pub fn apply_defaults(schema: &Schema, value: &mut Value) {
    match (&schema.resolve().shape, value) {
        (Shape::Object(fields), Value::Object(map)) => {
            for (name, field) in fields.defaulted() {
                let Some(default) = &field.facts().default else { continue };
                if map.get(name).is_none_or(|given| is_unset(field, given)) {
                    map.insert(name.to_owned(), default.clone());
                }
            }
            for (name, value) in map.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
                if let Some(field) = fields.get(name) {
                    apply_defaults(field, value);
                }
            }
        }
        (Shape::Map(values), Value::Object(map)) => map.values_mut().for_each(|value| element(values, value)),
        (Shape::List(items), Value::Array(list)) => list.iter_mut().for_each(|value| element(items, value)),
        _ => {}
    }
}

fn element(schema: &Schema, value: &mut Value) {
    if let Some(default) = &schema.facts().default
        && is_unset(schema, value)
    {
        *value = default.clone();
    }
    apply_defaults(schema, value);
}

fn is_unset(schema: &Schema, value: &Value) -> bool {
    value.is_null() && !schema.nullable
}
