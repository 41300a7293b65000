//! The functions of the language itself and of lists; the rest is kube-cel's.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use regex::Regex;

use super::bridge;
use super::error::EvaluationError;
use super::operators::{contains, equal, order};
use super::time_functions;
use super::value::Value;

type Outcome = Result<Value, EvaluationError>;

/// Patterns that one program has compiled. At most [`Patterns::BOUND`]; then it begins anew.
#[derive(Debug, Default)]
pub(super) struct Patterns(Mutex<BTreeMap<String, Regex>>);

impl Patterns {
    const BOUND: usize = 16;

    fn get(&self, pattern: &str) -> Result<Regex, EvaluationError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = known.get(pattern) {
            return Ok(regex.clone());
        }
        let regex = Regex::new(pattern).map_err(|error| {
            EvaluationError::Function(format!(
                "error parsing regexp: {}",
                error.to_string().replace('\n', " ")
            ))
        })?;
        if known.len() >= Patterns::BOUND {
            known.clear();
        }
        known.insert(pattern.to_owned(), regex.clone());
        Ok(regex)
    }
}

/// Calls a function. What is a member function's target comes as `target`.
pub(super) fn call(function: &str, target: Option<&Value>, args: &[Value], patterns: &Patterns) -> Outcome {
    if let Some(Value::Host(host)) = target {
        return host.call(function, args);
    }
    match (function, target, args) {
        ("size", Some(of), []) | ("size", None, [of]) => size(of),
        ("matches", Some(of), [pattern]) | ("matches", None, [of, pattern]) => {
            let (Some(text), Some(pattern)) = (of.as_str(), pattern.as_str()) else {
                return Err(EvaluationError::NoSuchOverload);
            };
            Ok(Value::Bool(patterns.get(pattern)?.is_match(text)))
        }
        ("contains" | "startsWith" | "endsWith", Some(Value::String(text)), [Value::String(part)]) => {
            Ok(Value::Bool(match function {
                "contains" => text.contains(&**part),
                "startsWith" => text.starts_with(&**part),
                _ => text.ends_with(&**part),
            }))
        }
        ("split", Some(Value::String(text)), [Value::String(separator)]) => Ok(split(text, separator, -1)),
        ("split", Some(Value::String(text)), [Value::String(separator), Value::Int(most)]) => {
            Ok(split(text, separator, *most))
        }
        (_, None, [of]) => match convert(function, of) {
            Some(outcome) => outcome,
            None => global(function, args),
        },
        (_, Some(of), _)
            if function.starts_with("get") && matches!(of, Value::Timestamp(_) | Value::Duration(_)) =>
        {
            time_functions::part(function, of, args.first().and_then(Value::as_str))
        }
        (_, Some(Value::Optional(of)), _) => optional(function, of.as_deref(), args),
        (_, Some(Value::List(list)), _) => match of_list(function, &list.items, args) {
            Some(outcome) => outcome,
            None => bridge::call(function, target, args),
        },
        (_, None, _) => global(function, args),
        _ => bridge::call(function, target, args),
    }
}

/// `strings.SplitN`: by nothing into letters; with a negative `most` into as many parts as there are.
fn split(text: &str, separator: &str, most: i64) -> Value {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let letters = || {
        let cut = text.char_indices().nth(most.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
        let (single, rest) = text.split_at(cut);
        let mut parts: Vec<String> = single.chars().map(String::from).collect();
        parts.extend((!rest.is_empty()).then(|| rest.to_owned()));
        parts
    };
    let parts: Vec<String> = match separator {
        _ if most == 0 => vec![],
        "" => letters(),
        separator => text.splitn(most, separator).map(str::to_owned).collect(),
    };
    Value::from(parts.iter().map(|part| Value::from(part.as_str())).collect::<Vec<_>>())
}

fn size(of: &Value) -> Outcome {
    let size = match of {
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.entries.len(),
        _ => return Err(EvaluationError::NoSuchOverload),
    };
    Ok(Value::Int(size as i64))
}

/// `int(x)`, `string(x)`, `type(x)`; None for other functions.
pub(super) fn convert(function: &str, of: &Value) -> Option<Outcome> {
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

fn int(of: &Value) -> Outcome {
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

fn uint(of: &Value) -> Outcome {
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

fn double(of: &Value) -> Outcome {
    Ok(Value::Double(match of {
        Value::Double(number) => *number,
        Value::Int(number) => *number as f64,
        Value::Uint(number) => *number as f64,
        Value::String(text) => text.parse().map_err(|_| conversion("double"))?,
        _ => return Err(EvaluationError::NoSuchOverload),
    }))
}

fn boolean(of: &Value) -> Outcome {
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

fn string(of: &Value) -> Outcome {
    let text = match of {
        Value::String(_) => return Ok(of.clone()),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => go_double(*number),
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| {
            EvaluationError::Function("invalid UTF-8 in bytes, cannot convert to string".into())
        })?,
        Value::Duration(_) | Value::Timestamp(_) => {
            time_functions::text(of).ok_or(EvaluationError::Overflow("duration"))?
        }
        _ => return bridge::call("string", None, std::slice::from_ref(of)),
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

fn timestamp(of: &Value) -> Outcome {
    match of {
        Value::Timestamp(_) => Ok(of.clone()),
        Value::Int(seconds) => {
            let time = chrono::DateTime::from_timestamp(*seconds, 0);
            time.map(Value::Timestamp).ok_or(EvaluationError::Overflow("timestamp"))
        }
        Value::String(text) => time_functions::parse_timestamp(text)
            .map(Value::Timestamp)
            .ok_or_else(|| conversion("google.protobuf.Timestamp")),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn duration(of: &Value) -> Outcome {
    match of {
        Value::Duration(_) => Ok(of.clone()),
        Value::Int(nanoseconds) => Ok(Value::Duration(chrono::TimeDelta::nanoseconds(*nanoseconds))),
        Value::String(text) => time_functions::parse_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| conversion("google.protobuf.Duration")),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn global(function: &str, args: &[Value]) -> Outcome {
    let some = |value: &Value| Value::Optional(Some(Arc::new(value.clone())));
    match (function, args) {
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(some(value)),
        ("optional.ofNonZeroValue", [value]) => {
            Ok(if value.is_zero() { Value::Optional(None) } else { some(value) })
        }
        ("format.named", [Value::String(name)]) => {
            let format = bridge::call(&format!("format.{name}"), None, &[]).ok();
            Ok(Value::Optional(format.map(Arc::new)))
        }
        ("optional.unwrap", [Value::List(list)]) => Ok(unwrap(&list.items)),
        (
            "sets.contains" | "sets.intersects" | "sets.equivalent",
            [Value::List(left), Value::List(right)],
        ) => {
            let holds = |list: &[Value], items: &[Value]| items.iter().all(|item| contains(list, item));
            let (left, right) = (&left.items, &right.items);
            Ok(Value::Bool(match function {
                "sets.contains" => holds(left, right),
                "sets.equivalent" => holds(left, right) && holds(right, left),
                _ => left.iter().any(|item| contains(right, item)),
            }))
        }
        ("lists.range", [Value::Int(end)]) => Ok(Value::from((0..*end).map(Value::Int).collect::<Vec<_>>())),
        _ => bridge::call(function, None, args),
    }
}

fn unwrap(items: &[Value]) -> Value {
    let held = items.iter().filter_map(|item| match item {
        Value::Optional(inner) => inner.as_deref().cloned(),
        other => Some(other.clone()),
    });
    Value::from(held.collect::<Vec<_>>())
}

fn optional(function: &str, of: Option<&Value>, args: &[Value]) -> Outcome {
    match (function, of, args) {
        ("hasValue", of, []) => Ok(Value::Bool(of.is_some())),
        ("value", Some(value), []) => Ok(value.clone()),
        ("value", None, []) => Err(EvaluationError::Function("optional.none() dereference".into())),
        ("orValue", Some(value), [_]) => Ok(value.clone()),
        ("orValue", None, [other]) => Ok(other.clone()),
        ("or", Some(value), [_]) => Ok(Value::Optional(Some(Arc::new(value.clone())))),
        ("or", None, [other]) => Ok(other.clone()),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

/// Functions of lists that need our equality or order; None for other functions.
fn of_list(function: &str, items: &[Value], args: &[Value]) -> Option<Outcome> {
    Some(match (function, args) {
        ("min" | "max", []) if items.is_empty() => {
            Err(EvaluationError::Function(format!("{function} called on empty list")))
        }
        ("min" | "max", []) => extreme(items, function == "max"),
        ("isSorted", []) => {
            let ordered = |pair: &[Value]| order(&pair[0], &pair[1]).map(|order| order != Ordering::Greater);
            let pairs: Option<Vec<bool>> = items.windows(2).map(ordered).collect();
            let pairs = pairs.ok_or(EvaluationError::NoSuchOverload);
            pairs.map(|pairs| Value::Bool(pairs.into_iter().all(|ordered| ordered)))
        }
        ("sum", []) => sum(items),
        ("indexOf", [wanted]) => Ok(place(items.iter().position(|item| equal(item, wanted)))),
        ("lastIndexOf", [wanted]) => Ok(place(items.iter().rposition(|item| equal(item, wanted)))),
        ("join", _) if items.iter().any(|item| item.as_str().is_none()) => {
            Err(EvaluationError::NoSuchOverload)
        }
        ("first", []) => Ok(Value::Optional(items.first().cloned().map(Arc::new))),
        ("last", []) => Ok(Value::Optional(items.last().cloned().map(Arc::new))),
        ("unwrap" | "unwrapOpt", []) => Ok(unwrap(items)),
        _ => return None,
    })
}

fn extreme(items: &[Value], greatest: bool) -> Outcome {
    let mut items = items.iter();
    let mut best = items.next().ok_or(EvaluationError::NoSuchOverload)?;
    for item in items {
        let found = order(item, best).ok_or(EvaluationError::NoSuchOverload)?;
        if found == (if greatest { Ordering::Greater } else { Ordering::Less }) {
            best = item;
        }
    }
    Ok(best.clone())
}

fn place(at: Option<usize>) -> Value {
    Value::Int(at.map_or(-1, |at| at as i64))
}

fn sum(items: &[Value]) -> Outcome {
    let Some((first, rest)) = items.split_first() else { return Ok(Value::Int(0)) };
    let add = |total: Value, item: &Value| super::operators::arithmetic("_+_", &total, item);
    rest.iter().try_fold(first.clone(), add)
}
