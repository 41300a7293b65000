//! What queries do with values.

use std::cmp::Ordering;

use serde_json::Value;

/// Something went wrong; nobody is told what, as kwok tells nobody.
#[derive(Debug)]
pub(super) struct Failed;

pub(super) type QueryFound = Result<Vec<Value>, Failed>;

pub(super) fn each(value: Value) -> QueryFound {
    match value {
        Value::Array(items) => Ok(items),
        Value::Object(fields) => Ok(fields.into_iter().map(|(_, value)| value).collect()),
        _ => Err(Failed),
    }
}

pub(super) fn sum(left: &Value, right: &Value) -> Result<Value, Failed> {
    Ok(match (left, right) {
        (Value::Null, other) | (other, Value::Null) => other.clone(),
        (Value::Number(left), Value::Number(right)) => {
            number(left.as_f64().unwrap_or_default() + right.as_f64().unwrap_or_default())
        }
        (Value::String(left), Value::String(right)) => format!("{left}{right}").into(),
        (Value::Array(left), Value::Array(right)) => Value::Array([left.clone(), right.clone()].concat()),
        (Value::Object(left), Value::Object(right)) => {
            let mut sum = left.clone();
            sum.extend(right.clone());
            sum.into()
        }
        _ => return Err(Failed),
    })
}

/// Whole where it is.
pub(super) fn number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 { (number as i64).into() } else { number.into() }
}

pub(super) fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// jq's order: null, false, true, numbers, texts, lists, objects.
pub(super) fn compare(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    };
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let differs =
                left.iter().zip(right).map(|(left, right)| compare(left, right)).find(|it| it.is_ne());
            differs.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let values = || left.values().zip(right.values()).map(|(left, right)| compare(left, right));
            left.keys()
                .cmp(right.keys())
                .then_with(|| values().find(|it| it.is_ne()).unwrap_or(Ordering::Equal))
        }
        (left, right) => rank(left).cmp(&rank(right)),
    }
}
