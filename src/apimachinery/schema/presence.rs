//! Which zero values are written: what Go's `omitempty`, pointers and structs make of a field.
//!
//! Upstream decodes every body into a Go type and writes that type again, so that `labels: {}` disappears,
//! `replicas: 0` stays (a pointer), and `status: {}` is there although nobody wrote it (a struct). Decoding
//! drops what [`Presence`] drops; [`complete`] adds what is always there.

use serde_json::{Map, Value};

use super::types::{Presence, Schema, Shape};

/// Whether a decoded field is left out of the object.
pub fn is_dropped(field: &Schema, value: &Value) -> bool {
    match field.presence {
        Presence::Omitted => is_zero(value),
        Presence::Kept | Presence::Always | Presence::Null => value.is_null() && !field.nullable,
    }
}

/// Adds the fields that upstream always writes, and takes away the nulls and zeros that it never does, at
/// every depth of what is present: after defaulting, before an object is stored or sent. For built-in kinds
/// only; a custom resource is stored as it was given.
pub fn complete(schema: &Schema, value: &mut Value) {
    match (&schema.resolve().shape, value) {
        (Shape::Object(fields), Value::Object(map)) => {
            if map.values().any(Value::is_null) {
                map.retain(|name, value| !fields.get(name).is_some_and(|field| is_dropped(field, value)));
            }
            // A default may be zero, which makes no difference where zero is not written.
            for (name, field) in fields.defaulted() {
                if map.get(name).is_some_and(|value| is_dropped(field, value)) {
                    map.remove(name);
                }
            }
            for (name, value) in map.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
                if let Some(field) = fields.get(name).filter(|field| may_hold_structs(field)) {
                    complete(field, value);
                }
            }
            for (name, field) in fields.always() {
                if !map.contains_key(name) {
                    add_absent(name, field, map);
                }
            }
        }
        (Shape::Map(values), Value::Object(map)) if may_hold_structs(values) => {
            map.values_mut().for_each(|value| complete(values, value));
        }
        (Shape::List(items), Value::Array(list)) if may_hold_structs(items) => {
            list.iter_mut().for_each(|value| complete(items, value));
        }
        _ => {}
    }
}

fn add_absent(name: &str, field: &Schema, map: &mut Map<String, Value>) {
    let zero = match field.presence {
        Presence::Always => zero_value(field),
        Presence::Null => Value::Null,
        Presence::Omitted | Presence::Kept => return,
    };
    map.insert(name.to_owned(), zero);
}

fn may_hold_structs(schema: &Schema) -> bool {
    matches!(schema.shape, Shape::Reference(_) | Shape::Object(_) | Shape::List(_) | Shape::Map(_))
}

/// What Go writes for a value that was never set.
pub fn zero_value(schema: &Schema) -> Value {
    match &schema.resolve().shape {
        Shape::Object(_) => {
            let mut value = Value::Object(Map::new());
            complete(schema, &mut value);
            value
        }
        Shape::String => Value::String(String::new()),
        Shape::Quantity => Value::String("0".into()),
        Shape::Boolean => Value::Bool(false),
        Shape::Integer32 | Shape::Integer64 | Shape::Number | Shape::IntOrString => Value::from(0),
        Shape::Map(_) | Shape::List(_) | Shape::Bytes | Shape::Time | Shape::MicroTime => Value::Null,
        Shape::Free | Shape::Reference(_) => Value::Null,
    }
}

/// What an object of a kind looks like when nothing is set, without its type.
pub fn zero_object(schema: &Schema) -> Value {
    let mut zero = zero_value(schema);
    if let Some(members) = zero.as_object_mut() {
        members.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
    }
    zero
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}
