//! Runs a query.

use serde_json::{Map, Value};

use super::functions;
use super::node::QueryNode;
use super::values::{Failed, QueryFound, compare, each, is_true, number, sum};

/// A query finds at most so many values; one that would find more finds nothing.
const MAX_FOUND: usize = 10_000;

pub(super) fn evaluate(node: &QueryNode, input: &Value) -> QueryFound {
    let found = find(node, input)?;
    if found.len() > MAX_FOUND { Err(Failed) } else { Ok(found) }
}

fn find(node: &QueryNode, input: &Value) -> QueryFound {
    Ok(match node {
        QueryNode::Whole => vec![input.clone()],
        QueryNode::Literal(value) => vec![value.clone()],
        QueryNode::At(of, index) => each_pair(of, index, input, at)?,
        QueryNode::Each(of) => {
            let lists: Result<Vec<_>, _> = evaluate(of, input)?.into_iter().map(each).collect();
            lists?.concat()
        }
        QueryNode::Slice(of, from, to) => slices(of, from, to, input)?,
        QueryNode::Try(of) => evaluate(of, input).unwrap_or_default(),
        QueryNode::Binary(operator, left, right) => binary(operator, left, right, input)?,
        QueryNode::If(condition, then, otherwise) => {
            let mut found = Vec::new();
            for condition in evaluate(condition, input)? {
                found.extend(evaluate(if is_true(&condition) { then } else { otherwise }, input)?);
            }
            found
        }
        QueryNode::List(None) => vec![Value::Array(Vec::new())],
        QueryNode::List(Some(inner)) => vec![Value::Array(evaluate(inner, input)?)],
        QueryNode::Object(entries) => vec![object(entries, input)?],
        QueryNode::Call(name, arguments) => functions::call(name, arguments, input, evaluate)?,
    })
}

/// The first value of each field; jq would make an object of each combination.
fn object(entries: &[(String, QueryNode)], input: &Value) -> Result<Value, Failed> {
    let mut made = Map::new();
    for (name, value) in entries {
        let value = evaluate(value, input)?.into_iter().next().ok_or(Failed)?;
        made.insert(name.clone(), value);
    }
    Ok(made.into())
}

fn each_pair(
    left: &QueryNode,
    right: &QueryNode,
    input: &Value,
    join: impl Fn(&Value, &Value) -> Result<Value, Failed>,
) -> QueryFound {
    let (left, right) = (evaluate(left, input)?, evaluate(right, input)?);
    let pairs = right.iter().flat_map(|right| left.iter().map(move |left| (left, right)));
    pairs.take(MAX_FOUND + 1).map(|(left, right)| join(left, right)).collect()
}

fn at(of: &Value, index: &Value) -> Result<Value, Failed> {
    Ok(match (of, index) {
        (Value::Null, _) => Value::Null,
        (Value::Object(fields), Value::String(name)) => fields.get(name).cloned().unwrap_or_default(),
        (Value::Array(items), Value::Number(index)) => {
            let index = index.as_f64().unwrap_or_default().floor() as i64;
            let place = if index < 0 { items.len() as i64 + index } else { index };
            let found = usize::try_from(place).ok().and_then(|place| items.get(place));
            found.cloned().unwrap_or_default()
        }
        _ => return Err(Failed),
    })
}

fn slices(of: &QueryNode, from: &QueryNode, to: &QueryNode, input: &Value) -> QueryFound {
    let bound = |node: &QueryNode| -> Result<Option<i64>, Failed> {
        let found = evaluate(node, input)?;
        Ok(found.first().and_then(Value::as_f64).map(|number| number.floor() as i64))
    };
    let (from, to) = (bound(from)?, bound(to)?);
    let part = |length: usize| {
        let place =
            |bound: i64| (if bound < 0 { length as i64 + bound } else { bound }).clamp(0, length as i64);
        let (from, to) = (place(from.unwrap_or(0)), place(to.unwrap_or(length as i64)));
        from as usize..to.max(from) as usize
    };
    let slice = |value: Value| match value {
        Value::Null => Ok(Value::Null),
        Value::Array(items) => Ok(Value::Array(items[part(items.len())].to_vec())),
        Value::String(text) => {
            let chars: Vec<char> = text.chars().collect();
            Ok(Value::String(chars[part(chars.len())].iter().collect()))
        }
        _ => Err(Failed),
    };
    evaluate(of, input)?.into_iter().map(slice).collect()
}

fn binary(operator: &str, left: &QueryNode, right: &QueryNode, input: &Value) -> QueryFound {
    match operator {
        "|" => {
            let mut found = Vec::new();
            for value in evaluate(left, input)? {
                found.extend(evaluate(right, &value)?);
                if found.len() > MAX_FOUND {
                    return Err(Failed);
                }
            }
            Ok(found)
        }
        "," => Ok([evaluate(left, input)?, evaluate(right, input)?].concat()),
        "//" => {
            let mut found = evaluate(left, input).unwrap_or_default();
            found.retain(is_true);
            if found.is_empty() { evaluate(right, input) } else { Ok(found) }
        }
        "and" | "or" => logical(operator, left, right, input),
        operator => each_pair(left, right, input, |left, right| joined(operator, left, right)),
    }
}

fn logical(operator: &str, left: &QueryNode, right: &QueryNode, input: &Value) -> QueryFound {
    let mut found = Vec::new();
    for left in evaluate(left, input)? {
        if is_true(&left) == (operator == "or") {
            found.push(Value::Bool(operator == "or"));
        } else {
            found.extend(evaluate(right, input)?.iter().map(|right| Value::Bool(is_true(right))));
        }
    }
    Ok(found)
}

fn joined(operator: &str, left: &Value, right: &Value) -> Result<Value, Failed> {
    let order = compare(left, right);
    Ok(match operator {
        "==" => order.is_eq().into(),
        "!=" => order.is_ne().into(),
        "<" => order.is_lt().into(),
        "<=" => order.is_le().into(),
        ">" => order.is_gt().into(),
        ">=" => order.is_ge().into(),
        "+" => sum(left, right)?,
        _ => {
            let (left, right) = left.as_f64().zip(right.as_f64()).ok_or(Failed)?;
            match operator {
                "-" => number(left - right),
                "*" => number(left * right),
                "/" if right != 0.0 => number(left / right),
                "%" if right.trunc() != 0.0 => number(left.trunc() % right.trunc()),
                _ => return Err(Failed),
            }
        }
    })
}
