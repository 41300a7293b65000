//! Types and values by an OpenAPI schema (`k8s.io/apiserver/pkg/cel/common`): what rules of a custom resource
//! see of an object.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use serde_json::Value as Json;

use super::times::{parse_format_duration, parse_timestamp};
use super::types::{ObjectType, Type};
use super::value::{CelList, ListKind, Map, MapKey, Value};
use golang::go_print::go_type;

/// `SchemaDeclType`: what an expression may ask of a value of this schema; None where nothing is declared.
/// `is_resource` is true at the root of a resource, which has its type and name.
pub fn declared_type(schema: &Json, is_resource: bool) -> Option<Type> {
    if flag(schema, "x-kubernetes-int-or-string") {
        return Some(Type::Dyn);
    }
    let text = |key: &str| schema[key].as_str().unwrap_or_default();
    Some(match text("type") {
        "array" => Type::list(nested(&schema["items"])?),
        "object" => {
            if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
                return Some(Type::map_of(nested(values)?));
            }
            object(schema, is_resource)
        }
        "string" => match text("format") {
            "byte" => Type::Bytes,
            "duration" => Type::Duration,
            "date" | "date-time" => Type::Timestamp,
            _ => Type::String,
        },
        "boolean" => Type::Bool,
        "number" => Type::Double,
        "integer" => Type::Int,
        _ => return None,
    })
}

fn nested(schema: &Json) -> Option<Type> {
    declared_type(schema, flag(schema, "x-kubernetes-embedded-resource"))
}

fn object(schema: &Json, is_resource: bool) -> Type {
    let mut fields: BTreeMap<Arc<str>, Type> = BTreeMap::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let (Some(name), Some(of)) = (escape(name), nested(property)) {
            fields.insert(name.into(), of);
        }
    }
    if is_resource {
        fields.insert("apiVersion".into(), Type::String);
        fields.insert("kind".into(), Type::String);
        let metadata = [("name", Type::String), ("generateName", Type::String)];
        fields.insert("metadata".into(), Type::object("object", metadata));
    }
    Type::Object(Arc::new(ObjectType { name: "object".into(), fields }))
}

/// `UnstructuredToVal`: the value that an expression sees. What does not fit its schema is an error only to
/// expressions that ask for it.
pub fn value(schema: &Json, is_resource: bool, data: &Json) -> Value {
    let invalid = |what: &str| Value::Invalid(format!("invalid data, {what}").into());
    if data.is_null() {
        let is_free = schema["type"].is_null() && flag(schema, "x-kubernetes-preserve-unknown-fields");
        return if flag(schema, "nullable") || is_free {
            Value::Null
        } else {
            invalid("got null for schema with nullable=false")
        };
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        return if data.is_string() || data.is_i64() {
            Value::from_json(data)
        } else {
            invalid("expected XIntOrString value to be either a string or integer")
        };
    }
    let unlike = |wanted: &str| invalid(&format!("expected {wanted}, got {}", go_type(data)));
    match (schema["type"].as_str().unwrap_or_default(), data) {
        ("object", Json::Object(map)) => object_value(schema, is_resource, map),
        ("object", _) => invalid("expected a map for the provided schema with type=object"),
        ("array", Json::Array(items)) => {
            let items = items.iter().map(|data| nested_value(&schema["items"], data)).collect();
            Value::List(Arc::new(CelList { items, kind: list_kind(schema) }))
        }
        ("array", _) => invalid("expected an array for the provided schema with type=array"),
        ("string", Json::String(text)) => string_value(schema, text),
        ("number", Json::Number(number)) => Value::Double(number.as_f64().unwrap_or_default()),
        ("integer", data) => data.as_i64().map_or_else(|| unlike("int"), Value::Int),
        ("boolean", Json::Bool(flag)) => Value::Bool(*flag),
        ("string", _) => unlike("string"),
        ("number", _) => unlike("float"),
        ("boolean", _) => unlike("bool"),
        _ => Value::from_json(data),
    }
}

fn nested_value(schema: &Json, data: &Json) -> Value {
    value(schema, flag(schema, "x-kubernetes-embedded-resource"), data)
}

fn object_value(schema: &Json, is_resource: bool, map: &serde_json::Map<String, Json>) -> Value {
    let mut object = Map::default();
    let additional = schema.get("additionalProperties").filter(|values| values.is_object());
    for (name, data) in map {
        if let Some(values) = additional {
            object.entries.insert(MapKey::String(name.as_str().into()), nested_value(values, data));
            continue;
        }
        let of_resource = is_resource.then(|| of_resource(name, data)).flatten();
        let property = schema["properties"].get(name);
        let found = match (of_resource, property) {
            (Some(found), _) => Some(found),
            (None, Some(property)) => Some(nested_value(property, data)),
            (None, None) => None,
        };
        match (found, escape(name)) {
            (Some(found), Some(name)) => {
                object.entries.insert(MapKey::String(name.into()), found);
            }
            _ => {
                object.undeclared.insert(name.clone(), data.clone());
            }
        }
    }
    Value::Map(Arc::new(object))
}

/// Of metadata only the names are seen; old and new have the same revision, or none that counts.
fn of_resource(name: &str, data: &Json) -> Option<Value> {
    match (name, data) {
        ("apiVersion" | "kind", Json::String(text)) => Some(Value::from(text.as_str())),
        ("metadata", Json::Object(map)) => {
            let mut metadata = Map::default();
            for (name, data) in map.iter().filter(|(name, _)| *name != "resourceVersion") {
                match (&**name, data) {
                    ("name" | "generateName", Json::String(text)) => {
                        metadata.entries.insert(MapKey::String((&**name).into()), Value::from(text.as_str()));
                    }
                    _ => {
                        metadata.undeclared.insert(name.clone(), data.clone());
                    }
                }
            }
            Some(Value::Map(Arc::new(metadata)))
        }
        _ => None,
    }
}

fn string_value(schema: &Json, text: &str) -> Value {
    let format = schema["format"].as_str().unwrap_or_default();
    let read = match format {
        "byte" => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok();
            bytes.map(|bytes| Value::Bytes(bytes.into()))
        }
        "duration" => parse_format_duration(text).map(Value::Duration),
        "date-time" => parse_timestamp(text).map(Value::Timestamp),
        "date" => parse_timestamp(&format!("{text}T00:00:00Z")).map(Value::Timestamp),
        _ => Some(Value::from(text)),
    };
    read.unwrap_or_else(|| Value::Invalid(format!("failed to parse {format}: {text:?}").into()))
}

fn list_kind(schema: &Json) -> ListKind {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            ListKind::Map(
                keys.filter_map(Json::as_str).map(|key| escape(key).unwrap_or_default().into()).collect(),
            )
        }
        _ => ListKind::Atomic,
    }
}

/// The name under which a property is reached; None for one that cannot be (`apiservercel.Escape`).
pub fn escape(name: &str) -> Option<String> {
    if super::parser::is_keyword(name) {
        return Some(format!("__{name}__"));
    }
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    if !starts_well || !name.chars().all(is_fit) {
        return None;
    }
    let name = name.replace("__", "__underscores__").replace('.', "__dot__");
    Some(name.replace('-', "__dash__").replace('/', "__slash__"))
}

fn flag(schema: &Json, key: &str) -> bool {
    schema.get(key).and_then(Json::as_bool).unwrap_or(false)
}

/// Whether a text is of the format `duration`.
pub fn is_duration(text: &str) -> bool {
    parse_format_duration(text).is_some()
}
