//! Decodes a message by the schema of its type and the numbers of its fields.

use serde_json::{Map, Value};

use super::error::ProtobufError;
use super::numbers::{self, ProtobufField, ProtobufMessage};
use super::wire::{RawField, Reader};
use super::{json_schema, scalar};
use crate::schema::{Schema, Schemas, Shape, is_dropped};

/// Messages in messages; the deepest of Kubernetes' own have about 20, a JSON body may have 128.
pub(super) const MAX_DEPTH: usize = 100;

/// Decodes a message of a built-in type: the object without `apiVersion` and `kind`.
///
/// # Errors
/// Bytes that are no message of the type, or a type that has none.
pub fn decode(schema: &Schema, message: &[u8]) -> Result<Value, ProtobufError> {
    if numbers::message(definition(schema)).is_none() {
        return Err(ProtobufError::NotMarshalable(schema.go_type()));
    }
    let mut object = Map::new();
    merge_struct(schema, message, &mut object, MAX_DEPTH)?;
    Ok(Value::Object(object))
}

/// Reads a message into an object. One that comes in parts is merged, as protobuf wants it.
fn merge_struct(
    schema: &Schema,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    if let Some(message) = numbers::message(definition(schema)) {
        merge_fields(schema, message, bytes, object, depth)?;
    }
    object.retain(|name, value| schema.property(name).is_some_and(|field| !is_dropped(field, value)));
    Ok(())
}

fn merge_fields(
    schema: &Schema,
    message: &ProtobufMessage,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    let depth = depth.checked_sub(1).ok_or(ProtobufError::TooDeep)?;
    let mut reader = Reader::new(bytes, schema.go_struct());
    while let Some((number, raw)) = reader.next()? {
        match message.field(number) {
            None => {}
            Some(ProtobufField::Inline(inline)) => {
                merge_fields(schema, inline, raw.bytes(schema.go_struct())?, object, depth)?;
            }
            Some(ProtobufField::Named { name, .. }) => {
                let Some(field) = schema.property(name) else { continue };
                let before = object.remove(&**name).unwrap_or_default();
                object.insert(name.to_string(), merge_value(field, name, raw, before, depth)?);
            }
        }
    }
    Ok(())
}

/// Reads one value of a field; `before` is what the field holds already.
fn merge_value(
    schema: &Schema,
    name: &str,
    raw: RawField,
    before: Value,
    depth: usize,
) -> Result<Value, ProtobufError> {
    Ok(match &schema.resolve().shape {
        Shape::List(items) => Value::Array(push(items, name, raw, before, depth)?),
        Shape::Map(values) => Value::Object(put(values, name, raw, before, depth)?),
        Shape::Object(_) => {
            let mut object = into_object(before);
            merge_struct(schema, raw.bytes(name)?, &mut object, depth)?;
            Value::Object(object)
        }
        Shape::Free => free(schema, name, raw.bytes(name)?, depth)?,
        shape => scalar::read(shape, name, raw)?,
    })
}

fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// An element more, or several where numbers are packed.
fn push(
    items: &Schema,
    name: &str,
    raw: RawField,
    before: Value,
    depth: usize,
) -> Result<Vec<Value>, ProtobufError> {
    let mut list = match before {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    let shape = &items.resolve().shape;
    match (shape, raw) {
        (_, RawField::Bytes(packed)) if scalar::is_packable(shape) => {
            let mut reader = Reader::new(packed, name);
            while !reader.is_at_end() {
                list.push(scalar::read(shape, name, scalar::packed(shape, &mut reader)?)?);
            }
        }
        _ => list.push(merge_value(items, name, raw, Value::Null, depth)?),
    }
    Ok(list)
}

/// An entry more: a message of key and value, either of which may be absent when it is zero.
fn put(
    values: &Schema,
    name: &str,
    raw: RawField,
    before: Value,
    depth: usize,
) -> Result<Map<String, Value>, ProtobufError> {
    let mut map = into_object(before);
    let mut key = String::new();
    let mut value = None;
    let mut entry = Reader::new(raw.bytes(name)?, name);
    while let Some((number, raw)) = entry.next()? {
        match number {
            1 => key = raw.text(name)?,
            2 => value = Some(map_value(values, name, raw, depth)?),
            _ => {}
        }
    }
    let value = value.map_or_else(|| map_value(values, name, RawField::Bytes(b""), depth), Ok);
    map.insert(key, value.unwrap_or_default());
    Ok(map)
}

/// A list in a map is a message of its own with nothing but `items` (`authentication.ExtraValue`).
fn map_value(values: &Schema, name: &str, raw: RawField, depth: usize) -> Result<Value, ProtobufError> {
    let Shape::List(items) = &values.resolve().shape else {
        return merge_value(values, name, raw, Value::Null, depth);
    };
    let mut list = Value::Array(Vec::new());
    let mut reader = Reader::new(raw.bytes(name)?, name);
    while let Some((number, raw)) = reader.next()? {
        if number == 1 {
            list = Value::Array(push(items, name, raw, list, depth)?);
        }
    }
    Ok(list)
}

/// What takes any JSON: JSON in bytes, or one of the choices in the schema of a CustomResourceDefinition.
fn free(schema: &Schema, name: &str, bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    match definition(schema).strip_prefix(json_schema::PREFIX) {
        Some(choice) if choice != "JSON" => read_choice(choice, name, bytes, depth),
        _ => scalar::json(name, bytes),
    }
}

/// Reads one of the choices in a schema: of two that are set the one that
/// upstream would write.
fn read_choice(choice: &str, name: &str, bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let props = Schemas::reference(json_schema::JSON_SCHEMA_PROPS);
    let mut schema = Value::Null;
    let mut other = Value::Null;
    let mut reader = Reader::new(bytes, choice);
    while let Some((number, raw)) = reader.next()? {
        match (choice, number) {
            ("JSONSchemaPropsOrBool", 1) => other = (raw.varint(name)? != 0).into(),
            ("JSONSchemaPropsOrBool", 2) | ("JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray", 1) => {
                schema = merge_value(props, name, raw, schema, depth)?;
            }
            ("JSONSchemaPropsOrArray", 2) => other = push(props, name, raw, other, depth)?.into(),
            ("JSONSchemaPropsOrStringArray", 2) => other = appended(other, raw.text(name)?),
            _ => {}
        }
    }
    Ok(match choice {
        "JSONSchemaPropsOrBool" if schema.is_null() => (other == Value::Bool(true)).into(),
        "JSONSchemaPropsOrBool" => schema,
        _ if other.is_null() => schema,
        _ => other,
    })
}

fn appended(list: Value, text: String) -> Value {
    let mut list = match list {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    list.push(text.into());
    list.into()
}

/// The published name of a type; empty where it has none.
pub(super) fn definition(schema: &Schema) -> &str {
    schema.resolve().facts().name.as_deref().unwrap_or_default()
}
