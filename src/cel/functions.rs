//! Which function is meant: those of the language itself, of sets and optionals, and the ways to the others.

use std::sync::Arc;

use super::convert::convert;
use super::error::EvaluationError;
use super::operators::contains;
use super::patterns::Patterns;
use super::value::{EvaluationResult, Value};
use super::{format_text, library, lists, strings, time_functions};

/// Calls a function. What is a member function's target comes as `target`.
pub(super) fn call(
    function: &str,
    target: Option<&Value>,
    args: &[Value],
    patterns: &Patterns,
) -> EvaluationResult {
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
        (_, Some(Value::List(list)), _) => {
            lists::call(function, &list.items, args).unwrap_or(Err(EvaluationError::NoSuchOverload))
        }
        (_, Some(Value::String(text)), _) => of_text(function, text, args, patterns),
        (_, Some(Value::Opaque(of)), _) => library::member(function, of, args),
        (_, None, _) => global(function, args),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn of_text(function: &str, text: &str, args: &[Value], patterns: &Patterns) -> EvaluationResult {
    match (function, args) {
        ("format", [Value::List(list)]) => format_text::format(text, &list.items),
        _ => strings::call(function, text, args)
            .or_else(|| patterns.call(function, text, args))
            .unwrap_or(Err(EvaluationError::NoSuchOverload)),
    }
}

fn size(of: &Value) -> EvaluationResult {
    let size = match of {
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.entries.len(),
        _ => return Err(EvaluationError::NoSuchOverload),
    };
    Ok(Value::Int(size as i64))
}

fn global(function: &str, args: &[Value]) -> EvaluationResult {
    let some = |value: &Value| Value::Optional(Some(Arc::new(value.clone())));
    match (function, args) {
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(some(value)),
        ("optional.ofNonZeroValue", [value]) => {
            Ok(if value.is_zero() { Value::Optional(None) } else { some(value) })
        }
        ("optional.unwrap", [Value::List(list)]) => Ok(lists::unwrap(&list.items)),
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
        _ => library::global(function, args),
    }
}

fn optional(function: &str, of: Option<&Value>, args: &[Value]) -> EvaluationResult {
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
