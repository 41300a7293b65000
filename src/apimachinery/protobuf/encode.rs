//! Writes a message by the schema of its type and the numbers of its fields, byte for byte as gogo's
//! generated code does: by number, and what does not hang on a pointer even when nothing is there.

use serde_json::{Map, Value};

use super::envelope::seal;
use super::error::ProtobufError;
use super::message::definition;
use super::numbers::{self, ProtobufField, ProtobufMessage};
use super::{json_schema, scalar, wire};
use crate::schema::{Schema, Schemas, Shape};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const FIELDS_V1: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";

/// Appends the message of an object of a built-in type; its `apiVersion` and `kind` are no part of it.
///
/// # Errors
/// A type that has no message.
pub fn encode(schema: &Schema, object: &Value, out: &mut Vec<u8>) -> Result<(), ProtobufError> {
    let message = numbers::message(definition(schema));
    let message = message.ok_or_else(|| ProtobufError::NotMarshalable(schema.go_type()))?;
    write_fields(schema, message, object.as_object(), out);
    Ok(())
}

/// A document of the machinery, such as a `Status` or a list of groups, in its envelope; it says its
/// `apiVersion` and `kind` itself.
///
/// # Errors
/// What is no type of `meta/v1` or of discovery.
pub fn encode_document(document: &Value) -> Result<Vec<u8>, ProtobufError> {
    let [api_version, kind] = ["apiVersion", "kind"].map(|name| document[name].as_str().unwrap_or_default());
    let definition = match api_version.strip_prefix("apidiscovery.k8s.io/") {
        Some(version) => format!("io.k8s.api.apidiscovery.{version}.{kind}"),
        None => format!("{META}.{kind}"),
    };
    let schema = Schemas::lookup(&definition).unwrap_or(&Schema::FREE);
    let mut message = Vec::new();
    encode(schema, document, &mut message)?;
    let mut out = Vec::with_capacity(message.len() + 64);
    seal(&mut out, api_version, kind, |out| out.append(&mut message));
    Ok(out)
}

fn write_fields(
    schema: &Schema,
    message: &ProtobufMessage,
    object: Option<&Map<String, Value>>,
    out: &mut Vec<u8>,
) {
    for (number, field) in message.fields() {
        match field {
            ProtobufField::Inline(inline) => {
                wire::write_nested(out, number, |out| write_fields(schema, inline, object, out));
            }
            ProtobufField::Named { name, is_optional } => {
                let Some(field) = schema.property(name) else { continue };
                let value = object.and_then(|object| object.get(&**name)).unwrap_or(&Value::Null);
                if !(value.is_null() && *is_optional) {
                    write_value(field, number, value, out);
                }
            }
        }
    }
}

/// Writes the value of a field; null stands for Go's zero.
pub(super) fn write_value(schema: &Schema, number: u32, value: &Value, out: &mut Vec<u8>) {
    match &schema.resolve().shape {
        Shape::List(items) => {
            value.as_array().into_iter().flatten().for_each(|item| write_value(items, number, item, out));
        }
        Shape::Map(values) => {
            for (key, value) in value.as_object().into_iter().flatten() {
                wire::write_nested(out, number, |entry| {
                    wire::write_bytes(entry, 1, key.as_bytes());
                    write_map_value(values, value, entry);
                });
            }
        }
        Shape::Object(_) => wire::write_nested(out, number, |out| write_struct(schema, value, out)),
        Shape::Free => wire::write_nested(out, number, |out| write_free(schema, value, out)),
        shape => scalar::write(shape, number, value, out),
    }
}

/// The fields of a type; nothing of one that has none.
fn write_struct(schema: &Schema, value: &Value, out: &mut Vec<u8>) {
    if let Some(message) = numbers::message(definition(schema)) {
        write_fields(schema, message, value.as_object(), out);
    }
}

/// A list in a map is a message of its own with nothing but `items` (`authentication.ExtraValue`).
fn write_map_value(values: &Schema, value: &Value, entry: &mut Vec<u8>) {
    match &values.resolve().shape {
        Shape::List(items) => wire::write_nested(entry, 2, |out| {
            value.as_array().into_iter().flatten().for_each(|item| write_value(items, 1, item, out));
        }),
        _ => write_value(values, 2, value, entry),
    }
}

/// What takes any JSON: JSON in bytes, or one of the choices in the schema of a CustomResourceDefinition.
fn write_free(schema: &Schema, value: &Value, out: &mut Vec<u8>) {
    let name = definition(schema);
    match (name.strip_prefix(json_schema::PREFIX), value) {
        (Some(choice), _) if choice != "JSON" => write_choice(choice, value, out),
        // In the tree of an object they are a text already (`managed_fields::read_tree`).
        (None, Value::String(text)) if name == FIELDS_V1 => wire::write_bytes(out, 1, text.as_bytes()),
        _ => scalar::write_json(value, out),
    }
}

/// Writes one of the choices in a schema.
fn write_choice(choice: &str, value: &Value, out: &mut Vec<u8>) {
    let props = |value: &Value, number: u32, out: &mut Vec<u8>| {
        wire::write_nested(out, number, |out| {
            write_struct(Schemas::reference(json_schema::JSON_SCHEMA_PROPS), value, out)
        });
    };
    match (choice, value) {
        ("JSONSchemaPropsOrBool", Value::Object(_)) => {
            wire::write_int(out, 1, 1);
            props(value, 2, out);
        }
        ("JSONSchemaPropsOrBool", value) => wire::write_int(out, 1, (*value == Value::Bool(true)).into()),
        (_, Value::Object(_)) => props(value, 1, out),
        ("JSONSchemaPropsOrArray", Value::Array(schemas)) => {
            schemas.iter().for_each(|schema| props(schema, 2, out));
        }
        (_, Value::Array(texts)) => {
            texts
                .iter()
                .filter_map(Value::as_str)
                .for_each(|text| wire::write_bytes(out, 2, text.as_bytes()));
        }
        _ => {}
    }
}
