//! The functions of lists (`cel-go/ext/lists.go`, `k8s.io/apiserver/pkg/cel/library/lists.go`).

use std::cmp::Ordering;
use std::sync::Arc;

use super::bounds;
use super::error::EvaluationError;
use super::operators::{arithmetic, contains, equal, order, total_order};
use super::value::{EvaluationResult, Value};

/// A function of a list; None for other functions.
pub(super) fn call(function: &str, items: &[Value], args: &[Value]) -> Option<EvaluationResult> {
    Some(match (function, args) {
        ("min" | "max", []) if items.is_empty() => Err(told(format!("{function} called on empty list"))),
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
        ("join", []) => join(items, ""),
        ("join", [Value::String(separator)]) => join(items, separator),
        ("first", []) => Ok(Value::Optional(items.first().cloned().map(Arc::new))),
        ("last", []) => Ok(Value::Optional(items.last().cloned().map(Arc::new))),
        ("unwrap" | "unwrapOpt", []) => Ok(unwrap(items)),
        ("distinct", []) => Ok(distinct(items)),
        ("reverse", []) => Ok(Value::from(items.iter().rev().cloned().collect::<Vec<_>>())),
        ("flatten", []) => flatten(items, 1),
        ("flatten", [Value::Int(level)]) => match usize::try_from(*level) {
            Ok(level) => flatten(items, level),
            Err(_) => Err(told("level must be non-negative".to_owned())),
        },
        ("slice", [Value::Int(start), Value::Int(end)]) => slice(items, *start, *end),
        ("sort", []) => sort(items),
        _ => return None,
    })
}

/// What optionals hold.
pub(super) fn unwrap(items: &[Value]) -> Value {
    let held = items.iter().filter_map(|item| match item {
        Value::Optional(inner) => inner.as_deref().cloned(),
        other => Some(other.clone()),
    });
    Value::from(held.collect::<Vec<_>>())
}

fn told(message: String) -> EvaluationError {
    EvaluationError::Function(message)
}

fn extreme(items: &[Value], greatest: bool) -> EvaluationResult {
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

/// Of numbers and durations only: lists and texts would be copied once for each item.
fn sum(items: &[Value]) -> EvaluationResult {
    if matches!(items.first(), Some(Value::List(_) | Value::String(_) | Value::Bytes(_))) {
        return Err(EvaluationError::NoSuchOverload);
    }
    let Some((first, rest)) = items.split_first() else { return Ok(Value::Int(0)) };
    rest.iter().try_fold(first.clone(), |total, item| arithmetic("_+_", &total, item))
}

fn join(items: &[Value], separator: &str) -> EvaluationResult {
    let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
    let texts = texts.ok_or(EvaluationError::NoSuchOverload)?;
    let separators = separator.len().saturating_mul(texts.len());
    bounds::text(texts.iter().fold(separators, |size, text| size.saturating_add(text.len())))?;
    Ok(Value::from(texts.join(separator).as_str()))
}

/// The first of those that are equal.
fn distinct(items: &[Value]) -> Value {
    let mut found: Vec<Value> = Vec::new();
    for item in items {
        if !contains(&found, item) {
            found.push(item.clone());
        }
    }
    Value::from(found)
}

fn flatten(items: &[Value], level: usize) -> EvaluationResult {
    let mut flat = Vec::new();
    flatten_into(items, level, &mut flat)?;
    Ok(Value::from(flat))
}

fn flatten_into(items: &[Value], level: usize, flat: &mut Vec<Value>) -> Result<(), EvaluationError> {
    for item in items {
        match item {
            Value::List(list) if level > 0 => flatten_into(&list.items, level - 1, flat)?,
            other => {
                bounds::list(flat.len().saturating_add(1))?;
                flat.push(other.clone());
            }
        }
    }
    Ok(())
}

fn slice(items: &[Value], start: i64, end: i64) -> EvaluationResult {
    let wrong = |why: &str| Err(told(format!("cannot slice({start}, {end}), {why}")));
    if start > end && end >= 0 {
        return wrong("start index must be less than or equal to end index");
    }
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return wrong("negative indexes not supported");
    };
    match items.get(from..to) {
        Some(part) => Ok(Value::from(part.to_vec())),
        None => wrong(&format!("list is length {}", items.len())),
    }
}

/// All of one type, which has an order.
fn sort(items: &[Value]) -> EvaluationResult {
    let Some(first) = items.first() else { return Ok(Value::from(Vec::new())) };
    if order(first, first).is_none() && !matches!(first, Value::Double(_)) {
        return Err(told("list elements must be comparable".to_owned()));
    }
    if items.iter().any(|item| item.type_name() != first.type_name()) {
        return Err(told("list elements must have the same type".to_owned()));
    }
    let mut sorted = items.to_vec();
    sorted.sort_by(total_order);
    Ok(Value::from(sorted))
}
