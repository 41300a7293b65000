//! The types of a CustomResourceDefinition's schema that are one of two things, and in JSON just that thing.

use serde_json::Value;

use super::error::Error;
use super::message::{merge_value, push};
use super::wire::Reader;
use crate::apimachinery::schema::Schemas;

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

fn appended(list: Value, text: String) -> Value {
    let mut list = match list {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    list.push(text.into());
    list.into()
}
