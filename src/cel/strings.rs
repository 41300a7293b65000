//! The functions of texts (`cel-go/ext/strings.go`). Places are counted in characters.

use super::bounds;
use super::error::EvaluationError;
use super::value::{EvaluationResult, Value};

/// A function of a text; None for other functions.
pub(super) fn call(function: &str, text: &str, args: &[Value]) -> Option<EvaluationResult> {
    Some(match (function, args) {
        ("charAt", [Value::Int(at)]) => char_at(text, *at),
        ("indexOf", [Value::String(part)]) => index_of(text, part, 0),
        ("indexOf", [Value::String(part), Value::Int(from)]) => index_of(text, part, *from),
        ("lastIndexOf", [Value::String(part)]) => last_index_of(text, part),
        ("lastIndexOf", [Value::String(part), Value::Int(from)]) => last_index_from(text, part, *from),
        ("lowerAscii", []) => Ok(Value::from(text.to_ascii_lowercase().as_str())),
        ("upperAscii", []) => Ok(Value::from(text.to_ascii_uppercase().as_str())),
        ("trim", []) => Ok(Value::from(text.trim())),
        ("replace", [Value::String(old), Value::String(new)]) => replace(text, old, new, usize::MAX),
        ("replace", [Value::String(old), Value::String(new), Value::Int(most)]) => {
            replace(text, old, new, usize::try_from(*most).unwrap_or(usize::MAX))
        }
        ("substring", [Value::Int(start)]) => substring(text, *start, None),
        ("substring", [Value::Int(start), Value::Int(end)]) => substring(text, *start, Some(*end)),
        ("split", [Value::String(separator)]) => Ok(split(text, separator, -1)),
        ("split", [Value::String(separator), Value::Int(most)]) => Ok(split(text, separator, *most)),
        ("contains", [Value::String(part)]) => Ok(text.contains(&**part).into()),
        ("startsWith", [Value::String(part)]) => Ok(text.starts_with(&**part).into()),
        ("endsWith", [Value::String(part)]) => Ok(text.ends_with(&**part).into()),
        _ => return None,
    })
}

/// The size is known before it is made: nothing stands between all letters of a text.
fn replace(text: &str, old: &str, new: &str, most: usize) -> EvaluationResult {
    let count = text.matches(old).take(most).count();
    let added = count.saturating_mul(new.len());
    bounds::text((text.len() - count * old.len()).saturating_add(added))?;
    Ok(Value::from(text.replacen(old, new, most).as_str()))
}

fn out_of_range(at: i64) -> EvaluationError {
    EvaluationError::Function(format!("index out of range: {at}"))
}

/// Where a character begins; the end is one place more.
fn offset(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    text.char_indices().map(|(offset, _)| offset).chain([text.len()]).nth(at)
}

fn char_at(text: &str, at: i64) -> EvaluationResult {
    let rest = &text[offset(text, at).ok_or_else(|| out_of_range(at))?..];
    let end = rest.chars().next().map_or(0, char::len_utf8);
    Ok(Value::from(&rest[..end]))
}

fn substring(text: &str, start: i64, end: Option<i64>) -> EvaluationResult {
    if let Some(end) = end.filter(|end| start > *end) {
        let message = format!("invalid substring range. start: {start}, end: {end}");
        return Err(EvaluationError::Function(message));
    }
    let from = offset(text, start).ok_or_else(|| out_of_range(start))?;
    let to = match end {
        Some(end) => offset(text, end).ok_or_else(|| out_of_range(end))?,
        None => text.len(),
    };
    Ok(Value::from(&text[from..to]))
}

fn place(text: &str, offset: Option<usize>) -> EvaluationResult {
    Ok(Value::Int(offset.map_or(-1, |offset| text[..offset].chars().count() as i64)))
}

/// Nothing is found wherever it is looked for.
fn index_of(text: &str, part: &str, from: i64) -> EvaluationResult {
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let start = offset(text, from).unwrap_or(text.len());
    place(text, text[start..].find(part).map(|found| start + found))
}

fn last_index_of(text: &str, part: &str) -> EvaluationResult {
    place(text, text.rfind(part))
}

/// The last place that is not behind `from`.
fn last_index_from(text: &str, part: &str, from: i64) -> EvaluationResult {
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let start = offset(text, from).filter(|start| *start < text.len());
    let Some(start) = start else { return Ok(Value::Int(-1)) };
    let mut end = (start + part.len()).min(text.len());
    // What begins at the place ends with a character.
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    place(text, text[..end].rfind(part))
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

/// A text as an expression would write it.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            '\\' | '"' => quoted.extend(['\\', c]),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
