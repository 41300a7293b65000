//! The types of a CustomResourceDefinition's schema that are one of two things, and in JSON just that thing.

use serde_json::Value;

use super::encode::write_struct;
use super::error::Error;
use super::message::{merge_value, push};
use super::wire::{Reader, write_bytes, write_int, write_nested};
use crate::schema::Schemas;

/// What the names of these types begin with.
pub(super) const PREFIX: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

const JSON_SCHEMA_PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Reads a `JSONSchemaPropsOrBool`, `...OrArray` or `...OrStringArray`: of two that are set the one that
/// upstream would write.
pub(super) fn read(choice: &str, name: &str, bytes: &[u8], depth: usize) -> Result<Value, Error> {
    let props = Schemas::reference(JSON_SCHEMA_PROPS);
    let (mut schema, mut other) = (Value::Null, Value::Null);
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

/// Writes one of these types.
pub(super) fn write(choice: &str, value: &Value, out: &mut Vec<u8>) {
    let props = |value: &Value, number: u32, out: &mut Vec<u8>| {
        write_nested(out, number, |out| write_struct(Schemas::reference(JSON_SCHEMA_PROPS), value, out));
    };
    match (choice, value) {
        ("JSONSchemaPropsOrBool", Value::Object(_)) => {
            write_int(out, 1, 1);
            props(value, 2, out);
        }
        ("JSONSchemaPropsOrBool", value) => write_int(out, 1, (*value == Value::Bool(true)).into()),
        (_, Value::Object(_)) => props(value, 1, out),
        ("JSONSchemaPropsOrArray", Value::Array(schemas)) => {
            schemas.iter().for_each(|schema| props(schema, 2, out));
        }
        (_, Value::Array(texts)) => {
            texts.iter().filter_map(Value::as_str).for_each(|text| write_bytes(out, 2, text.as_bytes()));
        }
        _ => {}
    }
}

fn appended(list: Value, text: String) -> Value {
    let mut list = match list {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    list.push(text.into());
    list.into()
}
