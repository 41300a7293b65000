//! How large a value may become while an expression runs. What upstream charges little for is not bounded by
//! the budget alone, and values that share their parts write out far larger than they are.

use super::error::EvaluationError;
use super::value::Value;

/// Bytes of a text that a function makes: more than any object of the apiserver holds.
pub(super) const MAX_TEXT: usize = 10 << 20;
/// Elements of a list that is made of others.
pub(super) const MAX_LIST: usize = 1_000_000;

/// Asked before a text of so many bytes is made.
///
/// # Errors
/// It would be too large.
pub(super) fn text(size: usize) -> Result<(), EvaluationError> {
    within(size, MAX_TEXT, "text")
}

/// Asked before a list of so many elements is made.
///
/// # Errors
/// It would be too large.
pub(super) fn list(size: usize) -> Result<(), EvaluationError> {
    within(size, MAX_LIST, "list")
}

fn within(size: usize, most: usize, what: &str) -> Result<(), EvaluationError> {
    if size <= most {
        return Ok(());
    }
    Err(EvaluationError::Function(format!("{what} too large: the limit is {most}")))
}

/// About how many bytes a value is when it is written. It stops counting where that is too many: parts that
/// are shared are met again and again.
///
/// # Errors
/// It would be too large.
pub(super) fn written(value: &Value, before: usize) -> Result<usize, EvaluationError> {
    let size = before.saturating_add(1);
    text(size)?;
    match value {
        Value::String(of) => Ok(size.saturating_add(of.len())),
        Value::Bytes(of) => Ok(size.saturating_add(of.len())),
        Value::List(list) => list.items.iter().try_fold(size, |size, item| written(item, size)),
        Value::Map(map) => map
            .entries
            .iter()
            .try_fold(size, |size, (key, value)| written(value, written(&key.value(), size)?)),
        _ => Ok(size),
    }
}
