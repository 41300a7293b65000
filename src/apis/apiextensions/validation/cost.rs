//! What a rule may cost at most, by the sizes that its schema allows.

use serde_json::Value;

use crate::apimachinery::cel::{Program, Size};

/// The bytes of a request: nothing in it can be larger.
const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// Units of a budget.
pub(super) struct Cost(pub(super) u64);

impl Cost {
    pub(super) fn times(self, times: u64) -> Cost {
        Cost(self.0.saturating_mul(times))
    }
}

/// What `program` costs at most over a value of `schema`.
pub(super) fn estimate(program: &Program, schema: &Value) -> Cost {
    Cost(program.estimate(&[("self", size_of(schema)), ("oldSelf", size_of(schema))]))
}

/// How many elements a list or map may have: what it says, or as many as a request can hold.
pub(super) fn most_elements(schema: &Value, element: &Value, bound: &str) -> u64 {
    schema[bound].as_u64().unwrap_or_else(|| MAX_REQUEST_BYTES / least_bytes(element).max(2))
}

/// The least that a value takes in a request, with a comma.
fn least_bytes(schema: &Value) -> u64 {
    match schema["type"].as_str() {
        Some("object") => {
            let required: Vec<&str> =
                schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let properties = schema["properties"].as_object().into_iter().flatten();
            let of = properties.filter(|(name, _)| required.contains(&name.as_str()));
            3 + of.map(|(name, of)| name.len() as u64 + 3 + least_bytes(of)).sum::<u64>()
        }
        Some("boolean") => 5,
        Some("array" | "string") => 3,
        _ => 2,
    }
}

fn size_of(schema: &Value) -> Size {
    match schema["type"].as_str() {
        Some("array") => {
            let items = &schema["items"];
            Size::Many(most_elements(schema, items, "maxItems"), Box::new(size_of(items)))
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            let values = &schema["additionalProperties"];
            Size::Many(most_elements(schema, values, "maxProperties"), Box::new(size_of(values)))
        }
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            Size::Fields(properties.map(|(name, of)| (name.clone(), size_of(of))).collect())
        }
        Some("string") => match schema["format"].as_str() {
            Some("date" | "date-time" | "duration") => Size::Scalar,
            _ => Size::Text(text_length(schema)),
        },
        _ if schema["x-kubernetes-int-or-string"] == true => Size::Text(MAX_REQUEST_BYTES),
        _ => Size::Scalar,
    }
}

fn text_length(schema: &Value) -> u64 {
    let longest =
        schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::len).max();
    let declared = schema["maxLength"].as_u64().map(|length| length.saturating_mul(4));
    declared.or(longest.map(|length| length as u64)).unwrap_or(MAX_REQUEST_BYTES)
}
