//! Conversions: `int(x)`, `string(x)`, `type(x)` and the others (`cel-go/common/types`).

use super::error::EvaluationError;
use super::opaque::Opaque;
use super::times;
use super::value::{EvaluationResult, Value};

/// `int(x)`, `string(x)`, `type(x)`; None for other functions.
pub(super) fn convert(function: &str, of: &Value) -> Option<EvaluationResult> {
    Some(match function {
        "type" => Ok(Value::Type(of.type_name().into())),
        "dyn" => Ok(of.clone()),
        "int" => int(of),
        "uint" => uint(of),
        "double" => double(of),
        "bool" => boolean(of),
        "string" => string(of),
        "bytes" => match of {
            Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
            Value::Bytes(_) => Ok(of.clone()),
            _ => Err(EvaluationError::NoSuchOverload),
        },
        "timestamp" => timestamp(of),
        "duration" => duration(of),
        _ => return None,
    })
}

fn int(of: &Value) -> EvaluationResult {
    let overflow = EvaluationError::Overflow("integer");
    Ok(Value::Int(match of {
        Value::Int(number) => *number,
        Value::Uint(number) => i64::try_from(*number).map_err(|_| overflow)?,
        Value::Double(number) if number.abs() < 9.223_372_036_854_776e18 => *number as i64,
        Value::Double(_) => return Err(overflow),
        Value::String(text) => text.parse().map_err(|_| conversion("int"))?,
        Value::Timestamp(time) => time.timestamp(),
        Value::Duration(duration) => duration.num_nanoseconds().ok_or(overflow)?,
        _ => return Err(EvaluationError::NoSuchOverload),
    }))
}

fn conversion(to: &str) -> EvaluationError {
    EvaluationError::Function(format!("type conversion error from 'string' to '{to}'"))
}

fn uint(of: &Value) -> EvaluationResult {
    let overflow = EvaluationError::Overflow("unsigned integer");
    Ok(Value::Uint(match of {
        Value::Uint(number) => *number,
        Value::Int(number) => u64::try_from(*number).map_err(|_| overflow)?,
        Value::Double(number) if (0.0..1.844_674_407_370_955_1e19).contains(number) => *number as u64,
        Value::Double(_) => return Err(overflow),
        Value::String(text) => text.parse().map_err(|_| conversion("uint"))?,
        _ => return Err(EvaluationError::NoSuchOverload),
    }))
}

fn double(of: &Value) -> EvaluationResult {
    Ok(Value::Double(match of {
        Value::Double(number) => *number,
        Value::Int(number) => *number as f64,
        Value::Uint(number) => *number as f64,
        Value::String(text) => text.parse().map_err(|_| conversion("double"))?,
        _ => return Err(EvaluationError::NoSuchOverload),
    }))
}

fn boolean(of: &Value) -> EvaluationResult {
    match of {
        Value::Bool(_) => Ok(of.clone()),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(Value::Bool(false)),
            _ => Err(conversion("bool")),
        },
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

pub(super) fn string(of: &Value) -> EvaluationResult {
    let text = match of {
        Value::String(_) => return Ok(of.clone()),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => go_double(*number),
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| {
            EvaluationError::Function("invalid UTF-8 in bytes, cannot convert to string".into())
        })?,
        Value::Duration(duration) => {
            times::duration_text(*duration).ok_or(EvaluationError::Overflow("duration"))?
        }
        Value::Timestamp(time) => times::timestamp_text(*time),
        Value::Opaque(Opaque::Ip(address)) => address.to_string(),
        Value::Opaque(Opaque::Cidr(network)) => network.to_string(),
        _ => return Err(EvaluationError::NoSuchOverload),
    };
    Ok(Value::String(text.into()))
}

/// Go's `%g`.
fn go_double(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{number:e}");
        let (head, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{head}e{sign}{digits:0>2}");
    }
    number.to_string()
}

fn timestamp(of: &Value) -> EvaluationResult {
    match of {
        Value::Timestamp(_) => Ok(of.clone()),
        Value::Int(seconds) => {
            let time = chrono::DateTime::from_timestamp(*seconds, 0);
            time.map(Value::Timestamp).ok_or(EvaluationError::Overflow("timestamp"))
        }
        Value::String(text) => times::parse_timestamp(text)
            .map(Value::Timestamp)
            .ok_or_else(|| conversion("google.protobuf.Timestamp")),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn duration(of: &Value) -> EvaluationResult {
    match of {
        Value::Duration(_) => Ok(of.clone()),
        Value::Int(nanoseconds) => Ok(Value::Duration(chrono::TimeDelta::nanoseconds(*nanoseconds))),
        Value::String(text) => times::parse_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| conversion("google.protobuf.Duration")),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}
