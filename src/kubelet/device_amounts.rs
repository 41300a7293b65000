//! Amounts of devices: capacities, and counters that several of them share, as a node config writes them.

use serde_json::{Value, json};

use apimachinery::quantity::Quantity;

/// A number is an amount, too.
fn amount_of(amount: &Value) -> String {
    amount.as_str().map_or_else(|| amount.to_string(), str::to_owned)
}

/// What of a capacity, or of a counter, is no amount.
pub(crate) fn wrong_amount(given: &Value) -> Option<&Value> {
    let amount = given.get("value").unwrap_or(given);
    Quantity::parse(&amount_of(amount)).is_err().then_some(amount)
}

/// As a ResourceSlice has it, with its policy if it has one, in which numbers are amounts, too.
pub(crate) fn capacity_of(given: &Value) -> Value {
    let Some(members) = given.as_object() else { return json!({"value": amount_of(given)}) };
    let texts = |(name, value): (&String, &Value)| (name.clone(), with_texts(value));
    Value::Object(members.iter().map(texts).collect())
}

fn with_texts(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        Value::Array(values) => values.iter().map(with_texts).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), with_texts(value))).collect())
        }
        other => other.clone(),
    }
}
