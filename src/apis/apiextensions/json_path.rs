//! The JSONPath of printer columns (`k8s.io/client-go/util/jsonpath`, relaxed): fields, indices, wildcards,
//! filters by comparison.

use serde_json::Value;

golang::text_error! {
    /// What is no simple JSON path; in upstream's words.
    pub(super) struct BadJsonPath;
}

/// A path that was read.
#[derive(Clone, Debug)]
pub(super) struct JsonPath(Vec<PathStep>);

#[derive(Clone, Debug)]
enum PathStep {
    Field(String),
    Index(i64),
    All,
    /// `..name`
    Below(String),
    /// `[?(@.type=="Ready")]`
    Filter {
        path: JsonPath,
        operator: String,
        wanted: Value,
    },
}

impl JsonPath {
    /// Reads `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`.
    pub(super) fn parse(text: &str) -> Result<JsonPath, BadJsonPath> {
        let mut steps = vec![];
        let mut rest = text;
        while !rest.is_empty() {
            let (step, behind) = step(rest).ok_or_else(|| format!("unexpected path string at {rest:?}"))?;
            steps.extend(step);
            rest = behind;
        }
        Ok(JsonPath(steps))
    }

    /// Everything that the path leads to.
    pub(super) fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![root];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.apply(value)).collect();
        }
        found
    }
}

impl PathStep {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (PathStep::Field(name), _) => value.get(name).into_iter().collect(),
            (PathStep::Index(at), Value::Array(items)) => {
                let at = if *at < 0 { items.len() as i64 + at } else { *at };
                usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
            }
            (PathStep::All, Value::Array(items)) => items.iter().collect(),
            (PathStep::All, Value::Object(map)) => map.values().collect(),
            (PathStep::Below(name), _) => below(value, name),
            (PathStep::Filter { path, operator, wanted }, Value::Array(items)) => {
                let holds =
                    |item: &&Value| path.find(item).iter().any(|found| compare(found, operator, wanted));
                items.iter().filter(holds).collect()
            }
            _ => vec![],
        }
    }
}

fn below<'a>(value: &'a Value, name: &str) -> Vec<&'a Value> {
    let children: Vec<&Value> = match value {
        Value::Object(map) => map.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => vec![],
    };
    let own = value.get(name).into_iter();
    own.chain(children.into_iter().flat_map(|child| below(child, name))).collect()
}

fn compare(found: &Value, operator: &str, wanted: &Value) -> bool {
    let numbers = found.as_f64().zip(wanted.as_f64());
    match operator {
        "==" => found == wanted || numbers.is_some_and(|(found, wanted)| found == wanted),
        "!=" => found != wanted,
        "<" => numbers.is_some_and(|(found, wanted)| found < wanted),
        "<=" => numbers.is_some_and(|(found, wanted)| found <= wanted),
        ">" => numbers.is_some_and(|(found, wanted)| found > wanted),
        ">=" => numbers.is_some_and(|(found, wanted)| found >= wanted),
        _ => true,
    }
}

/// One step and what stands behind it; a lone dot is the value itself.
fn step(text: &str) -> Option<(Option<PathStep>, &str)> {
    if let Some(rest) = text.strip_prefix("..") {
        let (name, rest) = name(rest)?;
        return Some((Some(PathStep::Below(name)), rest));
    }
    if let Some(rest) = text.strip_prefix('.') {
        if rest.is_empty() || rest.starts_with('[') {
            return Some((None, rest));
        }
        let (name, rest) = name(rest)?;
        return Some((Some(if name == "*" { PathStep::All } else { PathStep::Field(name) }), rest));
    }
    let inner = text.strip_prefix('[')?;
    if let Some(filter) = inner.strip_prefix("?(") {
        let end = filter.find(")]")?;
        return Some((Some(read_filter(&filter[..end])?), &filter[end + 2..]));
    }
    if let Some(quote) = inner.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let end = inner[1..].find(quote)? + 1;
        let name = inner[1..end].replace('\\', "");
        return Some((Some(PathStep::Field(name)), inner[end + 1..].strip_prefix(']')?));
    }
    let (content, rest) = inner.split_once(']')?;
    let step = if content == "*" { PathStep::All } else { PathStep::Index(content.trim().parse().ok()?) };
    Some((Some(step), rest))
}

/// A name up to the next dot or bracket; `\.` is a dot in it.
fn name(text: &str) -> Option<(String, &str)> {
    let (mut name, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '.' | '[' if name.is_empty() => return None,
            '.' | '[' => return Some((name, &text[at..])),
            ' ' | '(' | ')' | '?' | ']' => return None,
            c => name.push(c),
        }
    }
    (!name.is_empty()).then_some((name, ""))
}

fn read_filter(text: &str) -> Option<PathStep> {
    let text = text.trim().strip_prefix('@')?;
    let operator = ["==", "!=", "<=", ">=", "<", ">"].into_iter().find(|operator| text.contains(operator));
    let Some(operator) = operator else {
        let path = JsonPath::parse(text.trim()).ok()?;
        return Some(PathStep::Filter { path, operator: String::new(), wanted: Value::Null });
    };
    let (path, wanted) = text.split_once(operator)?;
    let wanted = wanted.trim();
    let quoted = wanted.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    let wanted = match quoted {
        Some(text) => text.into(),
        None => serde_json::from_str(wanted).ok()?,
    };
    Some(PathStep::Filter { path: JsonPath::parse(path.trim()).ok()?, operator: operator.into(), wanted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_values() {
        let tree = json!({"spec": {"n": 3, "a.b": "dot", "list": [{"x": 1}, {"x": 2}]},
            "status": {"conditions": [{"type": "A", "status": "no"}, {"type": "Ready", "status": "yes"}]}});
        let cases = [
            (".spec.n", json!([3])),
            (".spec.a\\.b", json!(["dot"])),
            (".spec['a.b']", json!(["dot"])),
            (".spec.list[1].x", json!([2])),
            (".spec.list[*].x", json!([1, 2])),
            (".spec.list[-1].x", json!([2])),
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["yes"])),
            (".status.conditions[?(@.type=='Ready')].status", json!(["yes"])),
            (".nope.x", json!([])),
        ];
        for (path, wanted) in cases {
            let found = JsonPath::parse(path).unwrap();
            let found: Vec<&Value> = found.find(&tree);
            assert_eq!(json!(found), wanted, "{path}");
        }
        for broken in ["spec", ".a[", ".a[?(x)]", ".a b"] {
            assert!(JsonPath::parse(broken).is_err(), "{broken}");
        }
    }
}
