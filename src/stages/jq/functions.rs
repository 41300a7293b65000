//! The functions that queries may call.

use regex::RegexBuilder;
use serde_json::{Value, json};

use super::node::QueryNode;
use super::values::{Failed, QueryFound, compare, each, is_true, number, sum};

/// A pattern of `test` may need so much memory when it is compiled; a larger one makes the query fail.
const MAX_PATTERN_BYTES: usize = 256 << 10;
/// Values in values: `recurse` looks at most so deep.
const MAX_RECURSION: usize = 64;

const PLAIN: &[&str] = &[
    "not",
    "length",
    "keys",
    "values",
    "empty",
    "first",
    "last",
    "add",
    "any",
    "all",
    "tostring",
    "tonumber",
    "type",
    "to_entries",
    "ascii_downcase",
    "ascii_upcase",
    "floor",
    "ceil",
    "reverse",
    "sort",
    "unique",
    "min",
    "max",
    "fromjson",
    "tojson",
    "recurse",
];
const OF_ONE: &[&str] = &[
    "select",
    "map",
    "has",
    "any",
    "all",
    "test",
    "startswith",
    "endswith",
    "contains",
    "split",
    "join",
    "index",
    "ltrimstr",
    "rtrimstr",
    "first",
    "last",
];

pub(super) fn exists(name: &str, arguments: usize) -> bool {
    match arguments {
        0 => PLAIN.contains(&name),
        1 => OF_ONE.contains(&name),
        _ => false,
    }
}

/// What runs an argument.
type Evaluate = fn(&QueryNode, &Value) -> QueryFound;

pub(super) fn call(name: &str, arguments: &[QueryNode], input: &Value, evaluate: Evaluate) -> QueryFound {
    match arguments {
        [] => plain(name, input),
        [argument] => of_one(name, argument, input, evaluate),
        _ => Err(Failed),
    }
}

fn plain(name: &str, input: &Value) -> QueryFound {
    let items = || input.as_array().ok_or(Failed);
    let one = match name {
        "empty" => return Ok(Vec::new()),
        "recurse" => {
            let mut found = Vec::new();
            recurse(input, 0, &mut found);
            return Ok(found);
        }
        "values" => return Ok(if input.is_null() { Vec::new() } else { vec![input.clone()] }),
        "not" => (!is_true(input)).into(),
        "length" => length(input)?,
        "keys" => keys(input)?,
        "first" => items()?.first().cloned().unwrap_or_default(),
        "last" => items()?.last().cloned().unwrap_or_default(),
        "add" => each(input.clone())?.iter().try_fold(Value::Null, |all, next| sum(&all, next))?,
        "any" => items()?.iter().any(is_true).into(),
        "all" => items()?.iter().all(is_true).into(),
        "tostring" => input.as_str().map_or_else(|| input.to_string(), str::to_owned).into(),
        "tojson" => input.to_string().into(),
        "fromjson" => serde_json::from_str(text(input)?).map_err(|_| Failed)?,
        "tonumber" if input.is_number() => input.clone(),
        "tonumber" => number(text(input)?.trim().parse().map_err(|_| Failed)?),
        "type" => type_of(input).into(),
        "to_entries" => {
            let fields = input.as_object().ok_or(Failed)?;
            fields.iter().map(|(key, value)| json!({"key": key, "value": value})).collect()
        }
        "ascii_downcase" => text(input)?.to_ascii_lowercase().into(),
        "ascii_upcase" => text(input)?.to_ascii_uppercase().into(),
        "floor" => number(input.as_f64().ok_or(Failed)?.floor()),
        "ceil" => number(input.as_f64().ok_or(Failed)?.ceil()),
        "min" => items()?.iter().min_by(|one, other| compare(one, other)).cloned().unwrap_or_default(),
        "max" => items()?.iter().max_by(|one, other| compare(one, other)).cloned().unwrap_or_default(),
        "reverse" => items()?.iter().rev().cloned().collect(),
        "sort" | "unique" => sorted(items()?, name == "unique"),
        _ => return Err(Failed),
    };
    Ok(vec![one])
}

fn of_one(name: &str, argument: &QueryNode, input: &Value, evaluate: Evaluate) -> QueryFound {
    let holds = |value: &Value| Ok(evaluate(argument, value)?.iter().any(is_true));
    match name {
        "select" => {
            let times = evaluate(argument, input)?.into_iter().filter(is_true);
            return Ok(times.map(|_| input.clone()).collect());
        }
        "map" => {
            let found: Result<Vec<_>, _> =
                each(input.clone())?.iter().map(|it| evaluate(argument, it)).collect();
            return Ok(vec![found?.concat().into()]);
        }
        "any" | "all" => {
            let all: Result<Vec<bool>, Failed> = each(input.clone())?.iter().map(holds).collect();
            let all = all?;
            let found = if name == "any" { all.contains(&true) } else { !all.contains(&false) };
            return Ok(vec![found.into()]);
        }
        "first" => return Ok(evaluate(argument, input)?.into_iter().take(1).collect()),
        "last" => return Ok(evaluate(argument, input)?.pop().into_iter().collect()),
        _ => {}
    }
    evaluate(argument, input)?.iter().map(|argument| with(name, input, argument)).collect()
}

fn with(name: &str, input: &Value, argument: &Value) -> Result<Value, Failed> {
    Ok(match name {
        "has" => match (input, argument) {
            (Value::Object(fields), Value::String(name)) => fields.contains_key(name).into(),
            (Value::Array(items), Value::Number(at)) => {
                at.as_u64().is_some_and(|at| (at as usize) < items.len()).into()
            }
            _ => return Err(Failed),
        },
        "contains" => contains(input, argument).into(),
        "join" => {
            let items = input.as_array().ok_or(Failed)?.iter().map(|item| match item {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            items.collect::<Vec<_>>().join(text(argument)?).into()
        }
        _ => of_texts(name, text(input)?, text(argument)?)?,
    })
}

fn of_texts(name: &str, input: &str, argument: &str) -> Result<Value, Failed> {
    Ok(match name {
        "test" => {
            let pattern = RegexBuilder::new(argument).size_limit(MAX_PATTERN_BYTES).build();
            pattern.map_err(|_| Failed)?.is_match(input).into()
        }
        "startswith" => input.starts_with(argument).into(),
        "endswith" => input.ends_with(argument).into(),
        "split" => input.split(argument).map(Value::from).collect(),
        "index" => input.find(argument).map_or(Value::Null, |at| input[..at].chars().count().into()),
        "ltrimstr" => input.strip_prefix(argument).unwrap_or(input).into(),
        "rtrimstr" => input.strip_suffix(argument).unwrap_or(input).into(),
        _ => return Err(Failed),
    })
}

fn text(value: &Value) -> Result<&str, Failed> {
    value.as_str().ok_or(Failed)
}

fn length(value: &Value) -> Result<Value, Failed> {
    Ok(match value {
        Value::Null => 0.into(),
        Value::Bool(_) => return Err(Failed),
        Value::Number(of) => number(of.as_f64().unwrap_or_default().abs()),
        Value::String(text) => text.chars().count().into(),
        Value::Array(items) => items.len().into(),
        Value::Object(fields) => fields.len().into(),
    })
}

fn keys(value: &Value) -> Result<Value, Failed> {
    match value {
        Value::Array(items) => Ok((0..items.len()).map(Value::from).collect()),
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            Ok(keys.into_iter().cloned().map(Value::from).collect())
        }
        _ => Err(Failed),
    }
}

fn sorted(items: &[Value], is_unique: bool) -> Value {
    let mut items = items.to_vec();
    items.sort_by(compare);
    if is_unique {
        items.dedup();
    }
    items.into()
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => whole.contains(part.as_str()),
        (Value::Array(whole), Value::Array(part)) => {
            part.iter().all(|part| whole.iter().any(|whole| contains(whole, part)))
        }
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        (whole, part) => whole == part,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn recurse(value: &Value, depth: usize, found: &mut Vec<Value>) {
    found.push(value.clone());
    if depth < MAX_RECURSION {
        for inner in each(value.clone()).unwrap_or_default() {
            recurse(&inner, depth + 1, found);
        }
    }
}
