//! From OpenAPI's JSON to a [`Schema`]: one reading for built-in definitions and for custom resources.

use serde_json::{Map, Value};

use super::builtin::DefinitionId;
use super::types::{Facts, Fields, ListType, MapType, Presence, Schema, Shape};

/// Reads one schema. `required` are the required fields of the object that holds it as `name`.
pub(super) fn lower(schema: &Value, required: &[(&str, &[Value])]) -> Schema {
    let Value::Object(map) = schema else { return Schema::default() };
    let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
    let shape = shape(map);
    Schema {
        presence: presence(map, &shape, required),
        nullable: flag("nullable"),
        preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: flag("x-kubernetes-embedded-resource"),
        facts: facts(map),
        shape,
    }
}

fn shape(map: &Map<String, Value>) -> Shape {
    if let Some(scalar) = map.get("x-kubarium-scalar").and_then(Value::as_str) {
        return own_rule(scalar);
    }
    if let Some(name) = map.get("$ref").and_then(Value::as_str) {
        let id = name.rsplit('/').next().and_then(DefinitionId::of);
        return id.map_or(Shape::Free, Shape::Reference);
    }
    if map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return Shape::IntOrString;
    }
    let format = map.get("format").and_then(Value::as_str).unwrap_or_default();
    match (map.get("type").and_then(Value::as_str).unwrap_or_default(), format) {
        ("object", _) => object(map),
        ("array", _) => {
            Shape::List(Box::new(map.get("items").map_or_else(Schema::default, |items| lower(items, &[]))))
        }
        ("string", "byte") => Shape::Bytes,
        ("string", _) => Shape::String,
        ("boolean", _) => Shape::Boolean,
        ("integer", "int32") => Shape::Integer32,
        ("integer", _) => Shape::Integer64,
        ("number", _) => Shape::Number,
        _ => Shape::Free,
    }
}

fn own_rule(scalar: &str) -> Shape {
    match scalar {
        "quantity" => Shape::Quantity,
        "int-or-string" => Shape::IntOrString,
        "time" => Shape::Time,
        "micro-time" => Shape::MicroTime,
        _ => Shape::Free,
    }
}

fn object(map: &Map<String, Value>) -> Shape {
    match map.get("additionalProperties") {
        Some(values @ Value::Object(_)) => return Shape::Map(Box::new(lower(values, &[]))),
        Some(Value::Bool(true)) => return Shape::Map(Box::default()),
        _ => {}
    }
    let required = map.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let properties = map.get("properties").and_then(Value::as_object);
    let fields = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.as_str().into(), lower(schema, &[(name, required)])));
    Shape::Object(Fields::new(fields.collect()))
}

/// The overlay's word where it has one; otherwise what nearly all of upstream's types do: required fields are
/// written always, structs hang on pointers, everything else is `omitempty`.
fn presence(map: &Map<String, Value>, shape: &Shape, required: &[(&str, &[Value])]) -> Presence {
    match map.get("x-kubarium-presence").and_then(Value::as_str) {
        Some("omitted") => return Presence::Omitted,
        Some("kept") => return Presence::Kept,
        Some("always") => return Presence::Always,
        Some("null") => return Presence::Null,
        _ => {}
    }
    match (required.first(), shape) {
        (None, _) => Presence::Kept,
        (Some((name, required)), _) if required.iter().any(|field| field == name) => Presence::Always,
        (Some(_), Shape::Reference(_)) => Presence::Kept,
        (Some(_), _) => Presence::Omitted,
    }
}

fn facts(map: &Map<String, Value>) -> Option<Box<Facts>> {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let facts = Facts {
        name: text("x-kubarium-name").map(Into::into),
        format: text("format").map(Into::into),
        list_type: text("x-kubernetes-list-type").and_then(list_type),
        list_map_keys: texts(map.get("x-kubernetes-list-map-keys")),
        map_type: text("x-kubernetes-map-type").and_then(map_type),
        patch_strategies: text("x-kubernetes-patch-strategy")
            .map(|names| names.split(',').map(Into::into).collect())
            .unwrap_or_default(),
        patch_merge_key: text("x-kubernetes-patch-merge-key").map(Into::into),
        default: map.get("default").cloned(),
        enumeration: map.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
        required: texts(map.get("required")),
        go_type: text("x-kubarium-go-type").map(Into::into),
    };
    (facts != Facts::default()).then(|| Box::new(facts))
}

fn texts(value: Option<&Value>) -> Vec<Box<str>> {
    let list = value.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}

fn list_type(name: &str) -> Option<ListType> {
    match name {
        "atomic" => Some(ListType::Atomic),
        "set" => Some(ListType::Set),
        "map" => Some(ListType::Map),
        _ => None,
    }
}

fn map_type(name: &str) -> Option<MapType> {
    match name {
        "atomic" => Some(MapType::Atomic),
        "granular" => Some(MapType::Granular),
        _ => None,
    }
}
