//! The words of upstream's converter from maps to Go types (`runtime.DefaultUnstructuredConverter`), which
//! stands in for JSON decoding after a strategic merge patch.

use serde_json::{Number, Value};

use crate::schema::Shape;

/// Why a JSON value (`string`, `number 1.5`, `object`) does not fit.
pub(super) fn error(shape: &Shape, given: &str, go_type: &str) -> String {
    let (conversion, kind) = match given {
        "array" => (false, "slice"),
        "object" => (false, "map"),
        number if number.starts_with("number") => {
            let digits = number.trim_start_matches("number").trim();
            let is_float = !digits.is_empty() && digits.parse::<i64>().is_err();
            (true, if is_float { "float64" } else { "int64" })
        }
        other => (false, other),
    };
    match shape {
        Shape::List(_) | Shape::Bytes => format!("cannot restore slice from {kind}"),
        Shape::Map(_) => format!("cannot restore map from {kind}"),
        Shape::Object(_) => format!("cannot restore struct from: {kind}"),
        Shape::Integer32 | Shape::Integer64 if conversion => format!("cannot convert {kind} to {go_type}"),
        Shape::String if kind == "int64" => format!("cannot convert int64 to {go_type}"),
        Shape::String => "unrecognized type: string".into(),
        Shape::Boolean => "unrecognized type: bool".into(),
        Shape::Integer32 => "unrecognized type: int32".into(),
        Shape::Integer64 => "unrecognized type: int64".into(),
        Shape::Number => "unrecognized type: float64".into(),
        _ => format!("json: cannot unmarshal {given} into Go value of type {go_type}"),
    }
}

/// A float without a fraction, which the converter takes for an integer.
pub(super) fn is_whole(number: &Number) -> bool {
    number.is_f64() && number.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() < 9e15)
}

/// That integer.
pub(super) fn whole(number: &Number) -> Value {
    number.as_f64().map_or(Value::Null, |number| Value::from(number as i64))
}
