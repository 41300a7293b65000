//! The plain functions of sprig, which kwok's templates may call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::error::TemplateError;
use super::shown::{is_true, shown};

/// A text is repeated to no more bytes than this, and `until` counts no further: more is an error.
const MAX_MADE: usize = 64 << 10;

type SprigResult = Result<Value, TemplateError>;

/// None where there is no such function.
pub(super) fn call(name: &str, arguments: &[Value]) -> Option<SprigResult> {
    let at = |index: usize| arguments.get(index).unwrap_or(&Value::Null);
    let known = of_texts(name, arguments).or_else(|| of_numbers(name, arguments)).map(Ok);
    known.or_else(|| of_trees(name, arguments)).or_else(|| {
        Some(match name {
            "repeat" => repeat(at(0), &shown(at(1))),
            "until" => until(at(0)),
            "div" | "mod" => divide(name, at(0), at(1)),
            "fail" => Err(TemplateError::new(shown(at(0)))),
            "fromJson" => {
                serde_json::from_str(&shown(at(0))).map_err(|why| TemplateError::new(why.to_string()))
            }
            "required" if !is_true(at(1)) => Err(TemplateError::new(shown(at(0)))),
            "required" => Ok(at(1).clone()),
            _ => return None,
        })
    })
}

fn of_texts(name: &str, arguments: &[Value]) -> Option<Value> {
    let text = |index: usize| arguments.get(index).map(shown).unwrap_or_default();
    let last = || arguments.last().map(shown).unwrap_or_default();
    let first = || arguments.first().unwrap_or(&Value::Null);
    Some(match name {
        "lower" => text(0).to_lowercase().into(),
        "upper" => text(0).to_uppercase().into(),
        "trim" => text(0).trim().into(),
        "trimPrefix" => text(1).strip_prefix(&text(0)).unwrap_or(&text(1)).into(),
        "trimSuffix" => text(1).strip_suffix(&text(0)).unwrap_or(&text(1)).into(),
        "trimAll" => text(1).trim_matches(|c| text(0).contains(c)).into(),
        "trunc" => trunc(first(), &text(1)).into(),
        "replace" => text(2).replace(&text(0), &text(1)).into(),
        "contains" => text(1).contains(&text(0)).into(),
        "hasPrefix" => text(1).starts_with(&text(0)).into(),
        "hasSuffix" => text(1).ends_with(&text(0)).into(),
        "quote" => quoted(arguments, '"').into(),
        "squote" => quoted(arguments, '\'').into(),
        "cat" => arguments.iter().map(shown).collect::<Vec<_>>().join(" ").into(),
        "indent" => indented(first(), &last()).into(),
        "nindent" => format!("\n{}", indented(first(), &last())).into(),
        "b64enc" => STANDARD.encode(text(0)).into(),
        "b64dec" => String::from_utf8_lossy(&STANDARD.decode(text(0)).unwrap_or_default()).into(),
        "splitList" => text(1).split(&text(0)).map(Value::from).collect(),
        "join" => joined(&text(0), arguments.get(1)).into(),
        "toString" => text(0).into(),
        "toJson" => arguments.first().map(Value::to_string).unwrap_or_default().into(),
        _ => return None,
    })
}

fn of_numbers(name: &str, arguments: &[Value]) -> Option<Value> {
    let all = || arguments.iter().map(whole);
    let floats = || arguments.iter().map(float);
    Some(match name {
        "add" => all().fold(0, i64::saturating_add).into(),
        "add1" => all().next().unwrap_or(0).saturating_add(1).into(),
        "mul" => all().fold(1, i64::saturating_mul).into(),
        "sub" => all().reduce(i64::saturating_sub).unwrap_or(0).into(),
        "max" => all().max().unwrap_or(0).into(),
        "min" => all().min().unwrap_or(0).into(),
        "addf" => floats().sum::<f64>().into(),
        "mulf" => floats().product::<f64>().into(),
        "floor" => floats().next().unwrap_or(0.0).floor().into(),
        "ceil" => floats().next().unwrap_or(0.0).ceil().into(),
        "int" | "int64" | "atoi" => all().next().unwrap_or(0).into(),
        "float64" => floats().next().unwrap_or(0.0).into(),
        _ => return None,
    })
}

fn of_trees(name: &str, arguments: &[Value]) -> Option<SprigResult> {
    let at = |index: usize| arguments.get(index).unwrap_or(&Value::Null);
    let items = || at(0).as_array().map(Vec::as_slice).unwrap_or_default();
    let key = || shown(at(1));
    Some(Ok(match name {
        "default" => if is_true(at(1)) { at(1) } else { at(0) }.clone(),
        "coalesce" => arguments.iter().find(|it| is_true(it)).cloned().unwrap_or_default(),
        "ternary" => if is_true(at(2)) { at(0) } else { at(1) }.clone(),
        "empty" => (!is_true(at(0))).into(),
        "dict" => dict(arguments).into(),
        "list" => arguments.to_vec().into(),
        "get" => at(0).get(key()).cloned().unwrap_or_else(|| "".into()),
        "hasKey" => at(0).get(key()).is_some().into(),
        "keys" => at(0).as_object().into_iter().flat_map(Map::keys).cloned().map(Value::from).collect(),
        "values" => at(0).as_object().into_iter().flat_map(Map::values).cloned().collect(),
        "set" => with(at(0), &key(), at(2)),
        "has" => at(1).as_array().is_some_and(|items| items.contains(at(0))).into(),
        "first" => items().first().cloned().unwrap_or_default(),
        "last" => items().last().cloned().unwrap_or_default(),
        "rest" => items().iter().skip(1).cloned().collect(),
        "append" => items().iter().chain([at(1)]).cloned().collect(),
        "concat" => arguments.iter().filter_map(Value::as_array).flatten().cloned().collect(),
        "merge" => merged(arguments).into(),
        "kindIs" => (golang::go_print::go_type(at(1)) == shown(at(0))).into(),
        _ => return None,
    }))
}

/// Go's `slice`.
pub(super) fn slice(of: &Value, bounds: &[Value]) -> SprigResult {
    let bound =
        |index: usize, otherwise: usize| bounds.get(index).map_or(otherwise, |at| whole(at).max(0) as usize);
    let part = |length: usize| {
        let (from, to) = (bound(0, 0), bound(1, length));
        let error = || TemplateError::new(format!("slice: {from}:{to} is out of range of {length}"));
        if from <= to && to <= length { Ok(from..to) } else { Err(error()) }
    };
    match of {
        Value::String(text) => {
            let found = text.get(part(text.len())?);
            Ok(found.ok_or_else(|| TemplateError::new("slice: within a character"))?.into())
        }
        Value::Array(items) => Ok(items[part(items.len())?].to_vec().into()),
        other => {
            Err(TemplateError::new(format!("can't slice item of type {}", golang::go_print::go_type(other))))
        }
    }
}

fn whole(value: &Value) -> i64 {
    value
        .as_i64()
        .or_else(|| Some(value.as_str()?.trim().parse().unwrap_or(0)))
        .unwrap_or(float(value) as i64)
}

fn float(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).unwrap_or(0.0)
}

fn trunc(length: &Value, text: &str) -> String {
    let (length, count) = (whole(length), text.chars().count());
    let kept = length.unsigned_abs() as usize;
    if length < 0 {
        text.chars().skip(count.saturating_sub(kept)).collect()
    } else {
        text.chars().take(kept).collect()
    }
}

fn quoted(arguments: &[Value], quote: char) -> String {
    let one = |value: &Value| match quote {
        '"' => golang::go_text::quote(&shown(value)),
        quote => format!("{quote}{}{quote}", shown(value)),
    };
    arguments.iter().filter(|it| !it.is_null()).map(one).collect::<Vec<_>>().join(" ")
}

fn indented(spaces: &Value, text: &str) -> String {
    let before = " ".repeat(whole(spaces).clamp(0, 256) as usize);
    format!("{before}{}", text.replace('\n', &format!("\n{before}")))
}

fn joined(separator: &str, items: Option<&Value>) -> String {
    let items = items.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().map(shown).collect::<Vec<_>>().join(separator)
}

fn repeat(times: &Value, text: &str) -> SprigResult {
    let times = whole(times).max(0) as usize;
    if text.len().saturating_mul(times) > MAX_MADE {
        return Err(TemplateError::new(format!("repeat: more than {MAX_MADE} bytes")));
    }
    Ok(text.repeat(times).into())
}

fn until(end: &Value) -> SprigResult {
    let end = whole(end).max(0);
    if end as usize > MAX_MADE {
        return Err(TemplateError::new(format!("until: more than {MAX_MADE}")));
    }
    Ok((0..end).map(Value::from).collect())
}

fn divide(name: &str, one: &Value, other: &Value) -> SprigResult {
    let (one, other) = (whole(one), whole(other));
    let found = if name == "div" { one.checked_div(other) } else { one.checked_rem(other) };
    found.map(Value::from).ok_or_else(|| TemplateError::new(format!("{name}: by zero")))
}

fn dict(arguments: &[Value]) -> Map<String, Value> {
    let pairs = arguments.chunks(2);
    pairs.map(|pair| (shown(&pair[0]), pair.get(1).cloned().unwrap_or_default())).collect()
}

fn with(of: &Value, key: &str, value: &Value) -> Value {
    let mut fields = of.as_object().cloned().unwrap_or_default();
    fields.insert(key.to_owned(), value.clone());
    fields.into()
}

/// What the first have goes before what the others have.
fn merged(arguments: &[Value]) -> Map<String, Value> {
    let mut all = Map::new();
    for (key, value) in arguments.iter().rev().filter_map(Value::as_object).flatten() {
        all.insert(key.clone(), value.clone());
    }
    all
}
