//! JSON as Go prints it with `%v`: part of the words of some errors.

use serde_json::{Number, Value};

use crate::go_text::printed_float;

/// `map[a:1 b:[x y]]`.
pub fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => print_number(number),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(go_print).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", go_print(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// Of a number: `1e+10` of one with a point.
pub fn print_number(number: &Number) -> String {
    match number.as_f64().filter(|_| !number.is_i64()) {
        Some(float) => printed_float(float),
        None => number.to_string(),
    }
}

/// `%#v`: `map[string]interface {}{"a":1}`.
pub fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(list) => {
            format!("[]interface {{}}{{{}}}", list.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(key, value)| format!("{key:?}:{}", go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
    }
}

/// `%T`: `map[string]interface {}`.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        // What is larger, too.
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
