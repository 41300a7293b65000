//! Operators on values: equality, order, arithmetic, membership, indexing.

use std::cmp::Ordering;
use std::sync::Arc;

use super::bounds;
use super::error::EvaluationError;
use super::time_functions;
use super::value::{CelList, EvaluationResult, ListKind, MapKey, Value};

/// `==`: numbers by value whatever their type, sets and list maps without regard to order, values of
/// different types unequal.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::Timestamp(left), Value::Timestamp(right)) => left == right,
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::List(left), Value::List(right)) => equal_lists(left, right),
        (Value::Map(left), Value::Map(right)) => {
            let has = |(key, value)| right.entries.get(key).is_some_and(|other| equal(value, other));
            left.len() == right.len() && left.agrees(right) && left.entries.iter().all(has)
        }
        (Value::Optional(left), Value::Optional(right)) => match (left, right) {
            (Some(left), Some(right)) => equal(left, right),
            (left, right) => left.is_none() && right.is_none(),
        },
        (Value::Opaque(left), Value::Opaque(right)) => left == right,
        (Value::Host(one), Value::Host(other)) if Arc::ptr_eq(one, other) => true,
        (left, right) => numeric_order(left, right) == Some(Ordering::Equal),
    }
}

fn equal_lists(left: &CelList, right: &CelList) -> bool {
    let unordered = match (&left.kind, &right.kind) {
        (ListKind::Atomic, other) | (other, _) => other,
    };
    let by_keys = |item: &Value, keys: &[Arc<str>]| -> Vec<Value> {
        keys.iter().map(|key| member(item, key).unwrap_or(Value::Null)).collect()
    };
    left.items.len() == right.items.len()
        && left.items.iter().enumerate().all(|(at, item)| match unordered {
            ListKind::Atomic => equal(item, &right.items[at]),
            ListKind::Set => contains(&right.items, item),
            ListKind::Map(keys) => {
                let wanted = by_keys(item, keys);
                let found = right.items.iter().find(|other| by_keys(other, keys) == wanted);
                found.is_some_and(|found| equal(item, found))
            }
        })
}

fn member(item: &Value, key: &Arc<str>) -> Option<Value> {
    match item {
        Value::Map(map) => map.entries.get(&MapKey::String(key.clone())).cloned(),
        _ => None,
    }
}

/// Whether something equal is in a list.
pub(super) fn contains(items: &[Value], wanted: &Value) -> bool {
    items.iter().any(|item| equal(item, wanted))
}

/// `in`
pub(super) fn is_in(wanted: &Value, container: &Value) -> EvaluationResult {
    match container {
        Value::List(list) => Ok(Value::Bool(contains(&list.items, wanted))),
        Value::Map(map) => {
            Ok(Value::Bool(MapKey::of(wanted).is_some_and(|key| map.entries.contains_key(&key))))
        }
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

/// `<` and its siblings; None where the values have no order.
pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (left, right) => numeric_order(left, right),
    }
}

/// An order for sorting, in which everything has its place: `NaN` behind (or, negative, before) all numbers,
/// and integers against doubles exactly. Rounded, as `<` has it, two integers could both equal a double that
/// lies between them, and sorting panics where an order contradicts itself.
pub(super) fn total_order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => {
            left.partial_cmp(right).unwrap_or_else(|| left.total_cmp(right))
        }
        (Value::Double(double), other) => {
            as_integer(other).map_or(Ordering::Equal, |integer| exact_order(integer, *double).reverse())
        }
        (other, Value::Double(double)) => {
            as_integer(other).map_or(Ordering::Equal, |integer| exact_order(integer, *double))
        }
        (left, right) => order(left, right).unwrap_or(Ordering::Equal),
    }
}

fn as_integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        _ => None,
    }
}

/// An integer against a double, without rounding it; doubles beyond all integers become the last of `i128`.
fn exact_order(integer: i128, double: f64) -> Ordering {
    if double.is_nan() {
        return 0.0_f64.total_cmp(&double);
    }
    let fraction = 0.0_f64.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal);
    integer.cmp(&(double.trunc() as i128)).then(fraction)
}

fn numeric_order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Uint(left), Value::Uint(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Uint(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
        (Value::Uint(left), Value::Int(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
        (Value::Double(left), right) => left.partial_cmp(&as_double(right)?),
        (left, Value::Double(right)) => as_double(left)?.partial_cmp(right),
        (Value::Host(left), right) => left.number()?.partial_cmp(&as_double(right)?),
        (left, Value::Host(right)) => as_double(left)?.partial_cmp(&right.number()?),
        _ => None,
    }
}

fn as_double(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        Value::Double(number) => Some(*number),
        Value::Host(host) => host.number(),
        _ => None,
    }
}

/// `+ - * / %`
pub(super) fn arithmetic(operator: &str, left: &Value, right: &Value) -> EvaluationResult {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => integers(operator, *left, *right),
        (Value::Uint(left), Value::Uint(right)) => unsigned(operator, *left, *right),
        (Value::Double(left), Value::Double(right)) => doubles(operator, *left, *right),
        (Value::String(left), Value::String(right)) if operator == "_+_" => {
            bounds::text(left.len().saturating_add(right.len()))?;
            Ok(Value::String(format!("{left}{right}").into()))
        }
        (Value::Bytes(left), Value::Bytes(right)) if operator == "_+_" => {
            bounds::text(left.len().saturating_add(right.len()))?;
            Ok(Value::Bytes([&**left, &**right].concat().into()))
        }
        (Value::List(left), Value::List(right)) if operator == "_+_" => add_lists(left, right),
        (Value::Host(host), _) | (_, Value::Host(host)) if host.number().is_some() => {
            let (Some(left), Some(right)) = (as_double(left), as_double(right)) else {
                return Err(EvaluationError::NoSuchOverload);
            };
            match doubles(operator, left, right)? {
                Value::Double(number) => Ok(host.with_number(number)),
                other => Ok(other),
            }
        }
        (left, right) => time_functions::arithmetic(operator, left, right),
    }
}

fn integers(operator: &str, left: i64, right: i64) -> EvaluationResult {
    let result = match operator {
        "_+_" => left.checked_add(right),
        "_-_" => left.checked_sub(right),
        "_*_" => left.checked_mul(right),
        "_/_" if right == 0 => return Err(EvaluationError::DivisionByZero),
        "_/_" => left.checked_div(right),
        _ if right == 0 => return Err(EvaluationError::ModulusByZero),
        _ => left.checked_rem(right),
    };
    result.map(Value::Int).ok_or(EvaluationError::Overflow("integer"))
}

fn unsigned(operator: &str, left: u64, right: u64) -> EvaluationResult {
    let result = match operator {
        "_+_" => left.checked_add(right),
        "_-_" => left.checked_sub(right),
        "_*_" => left.checked_mul(right),
        "_/_" if right == 0 => return Err(EvaluationError::DivisionByZero),
        "_/_" => left.checked_div(right),
        _ if right == 0 => return Err(EvaluationError::ModulusByZero),
        _ => left.checked_rem(right),
    };
    result.map(Value::Uint).ok_or(EvaluationError::Overflow("unsigned integer"))
}

fn doubles(operator: &str, left: f64, right: f64) -> EvaluationResult {
    Ok(Value::Double(match operator {
        "_+_" => left + right,
        "_-_" => left - right,
        "_*_" => left * right,
        "_/_" => left / right,
        _ => return Err(EvaluationError::NoSuchOverload),
    }))
}

/// A set takes what it lacks, a list map replaces what has the same keys.
fn add_lists(left: &CelList, right: &CelList) -> EvaluationResult {
    bounds::list(left.items.len().saturating_add(right.items.len()))?;
    let mut items = left.items.clone();
    for item in &right.items {
        let same = match &left.kind {
            ListKind::Atomic => None,
            ListKind::Set => items.iter().position(|other| equal(other, item)),
            ListKind::Map(keys) => items.iter().position(|other| same_keys(other, item, keys)),
        };
        match same {
            Some(at) => items[at] = item.clone(),
            None => items.push(item.clone()),
        }
    }
    Ok(Value::List(Arc::new(CelList { items, kind: left.kind.clone() })))
}

fn same_keys(left: &Value, right: &Value, keys: &[Arc<str>]) -> bool {
    let of = |item, key| member(item, key).unwrap_or(Value::Null);
    keys.iter().all(|key| equal(&of(left, key), &of(right, key)))
}

/// `<`, `<=`, `>`, `>=`
pub(super) fn compare(function: &str, left: &Value, right: &Value) -> EvaluationResult {
    let found = match order(left, right) {
        Some(found) => found,
        None if is_number(left) && is_number(right) => return Ok(Value::Bool(false)),
        None => return Err(EvaluationError::NoSuchOverload),
    };
    Ok(Value::Bool(match function {
        "_<_" => found == Ordering::Less,
        "_<=_" => found != Ordering::Greater,
        "_>_" => found == Ordering::Greater,
        _ => found != Ordering::Less,
    }))
}

/// `NaN` has no order, and no error either.
fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

/// `container[key]`
pub(super) fn index(container: &Value, key: &Value) -> EvaluationResult {
    match container {
        Value::List(list) => {
            let at = match key {
                Value::Int(at) => *at,
                Value::Uint(at) => i64::try_from(*at).unwrap_or(i64::MAX),
                Value::Double(at) if at.fract() == 0.0 => *at as i64,
                _ => return Err(EvaluationError::NoSuchOverload),
            };
            let item = usize::try_from(at).ok().and_then(|at| list.items.get(at));
            item.cloned().ok_or(EvaluationError::IndexOutOfBounds(at))
        }
        Value::Map(map) => {
            let key = MapKey::of(key).ok_or(EvaluationError::NoSuchOverload)?;
            map.entries.get(&key).cloned().ok_or_else(|| EvaluationError::NoSuchKey(key.to_string()))
        }
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

/// Equality of the language.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        equal(self, other)
    }
}
