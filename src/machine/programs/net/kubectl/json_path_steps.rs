//! The steps of a JSONPath, and where they lead.

use std::cmp::Ordering;

use serde_json::Value;

/// So many values does a path find at most: `..` of an object finds each that is in it.
const MAX_FOUND: usize = 10_000;

/// One step.
pub(super) enum JsonPathStep {
    /// `$`: begins anew with the whole.
    Root,
    Name(String),
    /// `[0]`, `['a','b']`
    OneOf(Vec<PathKey>),
    /// `[1:3]`, `[::2]`
    Slice(Option<i64>, Option<i64>, usize),
    /// `*`
    Any,
    /// `..`: it, and all that is in it.
    Below,
    /// `[?(@.a == 1)]`
    Filter(JsonPathOperand, Option<(JsonPathComparison, JsonPathOperand)>),
}

pub(super) enum PathKey {
    Name(String),
    Index(i64),
}

/// One side of a comparison.
pub(super) enum JsonPathOperand {
    Path(Vec<JsonPathStep>),
    Literal(Value),
}

#[derive(Clone, Copy)]
pub(super) enum JsonPathComparison {
    Is,
    IsNot,
    Less,
    LessOrIs,
    More,
    MoreOrIs,
}

/// Longer ones first, since they begin with the others.
const COMPARISONS: &[(&str, JsonPathComparison)] = &[
    ("==", JsonPathComparison::Is),
    ("!=", JsonPathComparison::IsNot),
    ("<=", JsonPathComparison::LessOrIs),
    (">=", JsonPathComparison::MoreOrIs),
    ("<", JsonPathComparison::Less),
    (">", JsonPathComparison::More),
];

golang::text_error! {
    /// A JSONPath that cannot be read, in the words of client-go.
    pub(super) struct UnreadablePath;
}

/// Reads `.a.b[0]['c.d']..e`; a backslash before a dot makes it part of a name.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read_path(path: &str) -> Result<Vec<JsonPathStep>, UnreadablePath> {
    let mut rest = path.trim();
    let mut steps = vec![];
    if let Some(behind) = rest.strip_prefix('$') {
        steps.push(JsonPathStep::Root);
        rest = behind;
    }
    rest = rest.strip_prefix('@').unwrap_or(rest);
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix("..") {
            steps.push(JsonPathStep::Below);
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix('[') {
            let end = end_of_bracket(behind).ok_or("unterminated array")?;
            steps.push(bracket(behind[..end].trim())?);
            rest = &behind[end + 1..];
            continue;
        } else if let Some(behind) = rest.strip_prefix('.') {
            rest = behind;
        } else if steps.last().is_none_or(|last| !matches!(last, JsonPathStep::Below)) {
            return Err(format!("unrecognized identifier {rest}").into());
        }
        let (name, behind) = name(rest);
        match name.as_str() {
            "" => {}
            "*" => steps.push(JsonPathStep::Any),
            _ => steps.push(JsonPathStep::Name(name)),
        }
        rest = behind;
    }
    Ok(steps)
}

fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '.' | '[' => return (name, &text[at..]),
            '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
            letter => name.push(letter),
        }
    }
    (name, "")
}

fn end_of_bracket(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(own), letter) if own == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Result<JsonPathStep, String> {
    if inner == "*" {
        return Ok(JsonPathStep::Any);
    }
    if let Some(filter) = inner.strip_prefix("?(") {
        let filter = filter.strip_suffix(')').ok_or("unterminated filter")?;
        return read_filter(filter);
    }
    let wrong = || format!("invalid array index {inner}");
    if inner.contains(':') && !inner.starts_with(['\'', '"']) {
        let mut numbers = inner.split(':').map(|part| match part.trim() {
            "" => Ok(None),
            part => part.parse::<i64>().map(Some).map_err(|_| wrong()),
        });
        let mut next = || numbers.next().unwrap_or(Ok(None));
        let (from, to, step) = (next()?, next()?, next()?.unwrap_or(1));
        let step = usize::try_from(step).ok().filter(|step| *step > 0).ok_or_else(wrong)?;
        return Ok(JsonPathStep::Slice(from, to, step));
    }
    let key = |part: &str| {
        let part = part.trim();
        let quoted = part.strip_prefix(['\'', '"']).and_then(|part| part.strip_suffix(['\'', '"']));
        match quoted {
            Some(name) => Ok(PathKey::Name(name.to_owned())),
            None => part.parse().map(PathKey::Index).map_err(|_| wrong()),
        }
    };
    inner.split(',').map(key).collect::<Result<_, _>>().map(JsonPathStep::OneOf)
}

fn read_filter(text: &str) -> Result<JsonPathStep, String> {
    for (sign, comparison) in COMPARISONS {
        if let Some((left, right)) = text.split_once(sign) {
            return Ok(JsonPathStep::Filter(operand(left)?, Some((*comparison, operand(right)?))));
        }
    }
    Ok(JsonPathStep::Filter(operand(text)?, None))
}

fn operand(text: &str) -> Result<JsonPathOperand, String> {
    let text = text.trim();
    if text.starts_with(['@', '$', '.']) {
        return Ok(JsonPathOperand::Path(read_path(text)?));
    }
    let quoted = text.strip_prefix(['\'', '"']).and_then(|text| text.strip_suffix(['\'', '"']));
    if let Some(quoted) = quoted {
        return Ok(JsonPathOperand::Literal(quoted.into()));
    }
    serde_json::from_str(text)
        .map(JsonPathOperand::Literal)
        .map_err(|_| format!("unrecognized operand {text}"))
}

/// All that is reached. Bound: [`MAX_FOUND`].
pub(super) fn walk<'a>(steps: &[JsonPathStep], root: &'a Value, from: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![from];
    for step in steps {
        let next: Vec<&Value> = match step {
            JsonPathStep::Root => vec![root],
            step => found.into_iter().flat_map(|value| step.next(root, value)).take(MAX_FOUND).collect(),
        };
        found = next;
    }
    found
}

impl JsonPathStep {
    fn next<'a>(&self, root: &'a Value, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (JsonPathStep::Name(name), Value::Object(members)) => members.get(name).into_iter().collect(),
            (JsonPathStep::OneOf(keys), value) => keys.iter().filter_map(|key| key.of(value)).collect(),
            (JsonPathStep::Any, Value::Array(items)) => items.iter().collect(),
            (JsonPathStep::Any, Value::Object(members)) => members.values().collect(),
            (JsonPathStep::Slice(from, to, step), Value::Array(items)) => {
                let bound = |at: i64| {
                    let at = if at < 0 { at + items.len() as i64 } else { at };
                    usize::try_from(at).unwrap_or(0).min(items.len())
                };
                let (from, to) = (from.map_or(0, bound), to.map_or(items.len(), bound));
                items.get(from..to).unwrap_or_default().iter().step_by(*step).collect()
            }
            (JsonPathStep::Below, value) => {
                let mut all = vec![];
                below(value, &mut all);
                all
            }
            (JsonPathStep::Filter(left, right), Value::Array(items)) => {
                items.iter().filter(|item| fits(left, right.as_ref(), root, item)).collect()
            }
            _ => vec![],
        }
    }
}

impl PathKey {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match self {
            PathKey::Name(name) => value.get(name),
            PathKey::Index(at) => {
                let items = value.as_array()?;
                let at = if *at < 0 { at + items.len() as i64 } else { *at };
                items.get(usize::try_from(at).ok()?)
            }
        }
    }
}

fn below<'a>(value: &'a Value, all: &mut Vec<&'a Value>) {
    if all.len() >= MAX_FOUND {
        return;
    }
    all.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| below(item, all)),
        Value::Object(members) => members.values().for_each(|member| below(member, all)),
        _ => {}
    }
}

fn fits(
    left: &JsonPathOperand,
    right: Option<&(JsonPathComparison, JsonPathOperand)>,
    root: &Value,
    item: &Value,
) -> bool {
    let Some(left) = left.value(root, item) else { return false };
    let Some((comparison, right)) = right else { return true };
    let Some(right) = right.value(root, item) else { return false };
    let order = match (left, right) {
        (Value::Number(one), Value::Number(other)) => one.as_f64().partial_cmp(&other.as_f64()),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        (one, other) => (one == other).then_some(Ordering::Equal),
    };
    match comparison {
        JsonPathComparison::Is => order == Some(Ordering::Equal),
        JsonPathComparison::IsNot => order != Some(Ordering::Equal),
        JsonPathComparison::Less => order == Some(Ordering::Less),
        JsonPathComparison::LessOrIs => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        JsonPathComparison::More => order == Some(Ordering::Greater),
        JsonPathComparison::MoreOrIs => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

impl JsonPathOperand {
    /// The first that it finds.
    fn value<'a>(&'a self, root: &'a Value, item: &'a Value) -> Option<&'a Value> {
        match self {
            JsonPathOperand::Literal(value) => Some(value),
            JsonPathOperand::Path(steps) => walk(steps, root, item).into_iter().next(),
        }
    }
}
