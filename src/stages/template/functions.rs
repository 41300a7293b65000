//! The functions of templates: Go's own, and those that kwok adds.

use golang::go_text;
use serde_json::Value;

use super::error::TemplateError;
use super::shown::{is_true, shown};
use super::sprig;
use apimachinery::yaml;

/// What a template may ask of its surroundings: `Now`, `NodeIPWith` and their like.
pub trait TemplateHost {
    /// The value of a function of the host's; none when it has none of that name.
    fn call(&self, function: &str, arguments: &[Value]) -> Option<Value>;
}

/// A level of indent of `YAML`, and how many there may be.
const INDENT: &str = "  ";
const MAX_INDENT: u64 = 32;

pub(super) fn call(name: &str, arguments: &[Value], host: &dyn TemplateHost) -> Result<Value, TemplateError> {
    if let Some(given) = host.call(name, arguments) {
        return Ok(given);
    }
    let at = |index: usize| arguments.get(index).unwrap_or(&Value::Null);
    Ok(match name {
        "or" => arguments.iter().find(|it| is_true(it)).or(arguments.last()).cloned().unwrap_or_default(),
        "and" => arguments.iter().find(|it| !is_true(it)).or(arguments.last()).cloned().unwrap_or_default(),
        "not" => (!is_true(at(0))).into(),
        "eq" => arguments.iter().skip(1).any(|other| same(other, at(0))).into(),
        "ne" => (!same(at(0), at(1))).into(),
        "lt" | "le" | "gt" | "ge" => compare(name, at(0), at(1))?.into(),
        "len" => length(at(0))?.into(),
        "index" => arguments.iter().skip(1).try_fold(at(0).clone(), |tree, key| index(&tree, key))?,
        "slice" => sprig::slice(at(0), &arguments[1.min(arguments.len())..])?,
        "printf" => printf(&shown(at(0)), &arguments[1.min(arguments.len())..])?.into(),
        "print" => arguments.iter().map(shown).collect::<String>().into(),
        "println" => (arguments.iter().map(shown).collect::<Vec<_>>().join(" ") + "\n").into(),
        "Quote" => quote(at(0)).into(),
        "YAML" => to_yaml(at(0), at(1).as_u64().unwrap_or(0).min(MAX_INDENT) as usize).into(),
        name => match sprig::call(name, arguments) {
            Some(given) => given?,
            None => return Err(TemplateError::new(format!("function {name:?} not defined"))),
        },
    })
}

/// kwok's: the JSON of a text, of anything else the text of its JSON.
fn quote(value: &Value) -> String {
    if value.is_string() { value.to_string() } else { go_text::quote(&value.to_string()) }
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    }
}

fn compare(name: &str, one: &Value, other: &Value) -> Result<bool, TemplateError> {
    let numbers = one.as_f64().zip(other.as_f64()).and_then(|(one, other)| one.partial_cmp(&other));
    let texts = || Some(one.as_str()?.cmp(other.as_str()?));
    let order = numbers.or_else(texts);
    let order =
        order.ok_or_else(|| TemplateError::new(format!("{name}: incompatible types for comparison")))?;
    Ok(match name {
        "lt" => order.is_lt(),
        "le" => order.is_le(),
        "gt" => order.is_gt(),
        _ => order.is_ge(),
    })
}

fn length(value: &Value) -> Result<usize, TemplateError> {
    match value {
        Value::String(text) => Ok(text.len()),
        Value::Array(items) => Ok(items.len()),
        Value::Object(fields) => Ok(fields.len()),
        other => Err(TemplateError::new(format!("len of type {}", golang::go_print::go_type(other)))),
    }
}

/// Of nothing, and of what is too short, nothing: kwok's templates look into statuses that are not there yet.
fn index(tree: &Value, key: &Value) -> Result<Value, TemplateError> {
    let found = match (tree, key) {
        (Value::Null, _) => None,
        (Value::Array(items), key) => key.as_u64().and_then(|at| items.get(at as usize)),
        (Value::Object(fields), Value::String(name)) => fields.get(name),
        (tree, _) => return Err(TemplateError::new(format!("can't index item of {}", shown(tree)))),
    };
    Ok(found.cloned().unwrap_or_default())
}

/// `%s`, `%d`, `%v`, `%q` and `%%`.
fn printf(format: &str, arguments: &[Value]) -> Result<String, TemplateError> {
    let mut text = String::new();
    let mut arguments = arguments.iter();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let verb = chars.next();
        match verb {
            Some('%') => text.push('%'),
            Some('q') => text.push_str(&go_text::quote(&arguments.next().map(shown).unwrap_or_default())),
            Some('s' | 'd' | 'v' | 't') => text.push_str(&arguments.next().map(shown).unwrap_or_default()),
            _ => return Err(TemplateError::new(format!("printf knows %s, %d, %v, %t and %q: {format:?}"))),
        }
    }
    Ok(text)
}

/// With an indent, a line begins before it, and each line stands so far in.
fn to_yaml(value: &Value, indent: usize) -> String {
    let text = yaml::to_string(value);
    if indent == 0 {
        return text;
    }
    let before = INDENT.repeat(indent);
    format!("\n{text}").replace('\n', &format!("\n{before}"))
}
