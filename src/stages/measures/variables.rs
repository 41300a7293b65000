//! Objects as expressions of these kinds see them: their times are times, and their amounts amounts (kwok's
//! `pkg/utils/cel/default.go`).

use std::sync::Arc;

use cel::Value;
use serde_json::Value as Json;

use crate::cel_functions::AmountValue;
use apimachinery::quantity::Quantity;
use apimachinery::time;

/// What holds amounts by resource (`corev1.ResourceList`).
const RESOURCE_LISTS: [&str; 5] = ["allocatable", "capacity", "requests", "limits", "overhead"];

/// A Node, a Pod or a container.
pub(super) fn object(json: &Json) -> Value {
    match json {
        Json::Object(map) => {
            let entry = |(name, value): (&String, &Json)| (Arc::from(name.as_str()), member(name, value));
            Value::map(map.iter().map(entry))
        }
        Json::Array(items) => Value::from(items.iter().map(object).collect::<Vec<_>>()),
        other => Value::from_json(other),
    }
}

fn member(name: &str, value: &Json) -> Value {
    match value {
        // What users choose the names of.
        Json::Object(_) if matches!(name, "labels" | "annotations") => Value::from_json(value),
        Json::Object(amounts) if RESOURCE_LISTS.contains(&name) => {
            let entry = |(name, value): (&String, &Json)| (Arc::from(name.as_str()), amount(value));
            Value::map(amounts.iter().map(entry))
        }
        Json::String(text) if name.ends_with("Timestamp") || name.ends_with("Time") => {
            time::parse(text).map_or_else(|| Value::from_json(value), Value::Timestamp)
        }
        other => object(other),
    }
}

fn amount(json: &Json) -> Value {
    let quantity = json.as_str().and_then(|text| Quantity::parse(text).ok());
    quantity.map_or_else(|| object(json), |quantity| AmountValue::value(quantity.as_approximate_f64()))
}
