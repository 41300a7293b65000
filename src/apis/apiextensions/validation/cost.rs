//! What a rule may cost at most, by the sizes that its schema allows (`SchemaDeclType`, `getExpressionCost`).

use serde_json::Value;

use cel::schema::{declared_type, escape};
use cel::{Program, Size};

/// The bytes of a request: nothing in it can be larger.
const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;
/// The longest duration and time in a request.
const TIME_BYTES: u64 = 32;
/// A date, with its quotes.
const DATE_BYTES: u64 = 12;

/// What `program` costs at most over a value of `schema`, once.
pub(super) fn estimate(program: &Program, schema: &Value, is_resource: bool) -> u64 {
    program.estimate(&size_of(schema, is_resource), true)
}

/// How many elements a value of this schema has at most, where that is declared.
pub(super) fn declared_elements(schema: &Value) -> Option<u64> {
    let bound = |name: &str| schema[name].as_i64().map(|bound| bound.max(0) as u64);
    match schema["type"].as_str() {
        Some("object") if schema["additionalProperties"].is_object() => bound("maxProperties"),
        Some("array") => bound("maxItems"),
        _ => Some(1),
    }
}

/// How often a value of this schema fits into a request.
pub(super) fn most_in_a_request(schema: &Value) -> u64 {
    MAX_REQUEST_BYTES / (least_bytes(schema) + 1)
}

/// The least that a value takes in a request (`MinSerializedSize`).
fn least_bytes(schema: &Value) -> u64 {
    if schema["x-kubernetes-int-or-string"] == true {
        return 1;
    }
    match (schema["type"].as_str().unwrap_or_default(), schema["format"].as_str()) {
        ("object", _) if !schema["additionalProperties"].is_object() => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let of = |name: &str| {
                let property = schema["properties"].get(name)?;
                let counts = property.get("default").is_none() && declared_type(property, false).is_some();
                counts.then(|| name.len() as u64 + least_bytes(property) + 4)
            };
            2 + required.filter_map(of).sum::<u64>()
        }
        ("string", Some("duration")) => 3,
        ("string", Some("date")) => DATE_BYTES,
        ("string", Some("date-time")) => 21,
        ("boolean", _) => 4,
        ("integer" | "number", _) => 1,
        _ => 2,
    }
}

fn nested(schema: &Value) -> Size {
    size_of(schema, schema["x-kubernetes-embedded-resource"] == true)
}

fn size_of(schema: &Value, is_resource: bool) -> Size {
    if schema["x-kubernetes-int-or-string"] == true {
        return Size::Text(text_length(schema));
    }
    let many = |element: &Value, around: u64| {
        let fitting = (MAX_REQUEST_BYTES - 2) / (least_bytes(element) + around);
        Size::Many(declared_elements(schema).unwrap_or(fitting), Box::new(nested(element)))
    };
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("array"), _) => many(&schema["items"], 1),
        (Some("object"), _) if schema["additionalProperties"].is_object() => {
            many(&schema["additionalProperties"], 6)
        }
        (Some("object"), _) => fields_of(schema, is_resource),
        (Some("string"), Some("date")) => Size::Text(DATE_BYTES),
        (Some("string"), Some("date-time" | "duration")) => Size::Text(TIME_BYTES),
        (Some("string"), Some("byte")) => {
            let declared = schema["maxLength"].as_i64().map(|length| length.max(0) as u64);
            Size::Text(declared.unwrap_or(MAX_REQUEST_BYTES - 2))
        }
        (Some("string"), _) => Size::Text(text_length(schema)),
        _ => Size::Scalar,
    }
}

fn fields_of(schema: &Value, is_resource: bool) -> Size {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let field = |(name, of): (&String, &Value)| {
        declared_type(of, false)?;
        Some((escape(name)?, nested(of)))
    };
    let mut fields: std::collections::BTreeMap<String, Size> = properties.filter_map(field).collect();
    if is_resource {
        let text = || Size::Text(MAX_REQUEST_BYTES - 2);
        let names = [("name", text()), ("generateName", text())].map(|(name, size)| (name.to_owned(), size));
        fields.insert("kind".into(), text());
        fields.insert("apiVersion".into(), text());
        fields.insert("metadata".into(), Size::Fields(names.into()));
    }
    Size::Fields(fields)
}

fn text_length(schema: &Value) -> u64 {
    // A character has up to four bytes.
    let declared = schema["maxLength"].as_i64().map(|length| (length.max(0) as u64).saturating_mul(4));
    let is_open = schema["x-kubernetes-int-or-string"] == true;
    let one_of = schema["enum"].as_array().filter(|values| !values.is_empty() && !is_open);
    let longest =
        one_of.map(|values| values.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0));
    declared.or(longest.map(|length| length as u64)).unwrap_or(MAX_REQUEST_BYTES - 2)
}
