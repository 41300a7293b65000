//! When an answer holds what a case wants of it.
//!
//! A map holds each member that is wanted, and may hold others; `null` wants a member to be absent. A list has
//! the length of the wanted list and holds its items in order; a list for which `{$has: [...]}` is wanted
//! holds each of those somewhere, one for which `{$count: 3}` is wanted has that length (null has none), and none of
//! `{$lacks: [...]}` is in it. A text that begins with `~ ` is a regular expression for a text; anything else
//! is wanted as it is. `*` wants something, whatever it is.

use regex::Regex;
use serde_json::Value;

/// # Errors
/// The first place where it does not, and why.
pub(crate) fn holds(wanted: &Value, found: &Value, at: &str) -> Result<(), String> {
    match (wanted, found) {
        (Value::Null, _) if at.is_empty() => Ok(()),
        (Value::Object(wanted), Value::Object(found)) => wanted.iter().try_for_each(|(name, wanted)| {
            let at = format!("{at}.{name}");
            match (wanted, found.get(name)) {
                (Value::Null, None) => Ok(()),
                (Value::Null, Some(found)) => Err(format!("{at} is there: {found}")),
                (_, None) => Err(format!("{at} is missing: {wanted} is wanted")),
                (_, Some(found)) => holds(wanted, found, &at),
            }
        }),
        (Value::Object(wanted), Value::Array(found)) if wanted.keys().all(|key| key.starts_with('$')) => {
            wanted.iter().try_for_each(|(key, wanted)| list_holds(key, wanted, found, at))
        }
        // A list of nothing that Go has written.
        (Value::Object(wanted), Value::Null) if wanted.get("$count").is_some_and(|count| *count == 0) => {
            Ok(())
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            let mut pairs = wanted.iter().zip(found).enumerate();
            pairs.try_for_each(|(index, (wanted, found))| holds(wanted, found, &format!("{at}[{index}]")))
        }
        (Value::String(any), _) if any == "*" => Ok(()),
        (Value::String(wanted), Value::String(found)) if wanted.starts_with("~ ") => {
            let expression =
                Regex::new(&format!("(?s){}", &wanted[2..])).map_err(|error| error.to_string())?;
            let differs = || format!("{at} is {found:?}, which does not match {:?}", &wanted[2..]);
            if expression.is_match(found) { Ok(()) } else { Err(differs()) }
        }
        (wanted, found) if wanted == found => Ok(()),
        (wanted, found) => Err(format!("{at} is {found} instead of {wanted}")),
    }
}

fn list_holds(key: &str, wanted: &Value, found: &[Value], at: &str) -> Result<(), String> {
    let wanted_items = wanted.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_there = |wanted: &&Value| found.iter().any(|found| holds(wanted, found, "").is_ok());
    match key {
        "$count" if *wanted == found.len() => Ok(()),
        "$count" => Err(format!("{at} has {} items instead of {wanted}", found.len())),
        "$has" => match wanted_items.iter().find(|wanted| !is_there(wanted)) {
            Some(missing) => Err(format!("{at} has no {missing}")),
            None => Ok(()),
        },
        "$lacks" => match wanted_items.iter().find(is_there) {
            Some(present) => Err(format!("{at} has {present}")),
            None => Ok(()),
        },
        other => Err(format!("{at}: {other} says nothing of a list")),
    }
}

/// What is at `metadata.labels.app` or `items.0.metadata.name`; all of it at the empty path.
pub(crate) fn at<'a>(tree: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|step| !step.is_empty()).try_fold(tree, |tree, step| match tree {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        tree => tree.get(step),
    })
}

#[test]
fn an_answer_holds_what_is_wanted_or_says_where_not() {
    let found = serde_json::json!({"a": {"b": [1, {"c": "text", "d": 2}]}, "e": "x"});
    let outcome = |wanted: serde_json::Value| holds(&wanted, &found, "");
    assert_eq!(outcome(serde_json::json!({"a": {"b": [1, {"c": "~ ^te"}]}, "f": null})), Ok(()));
    assert_eq!(outcome(serde_json::json!({"a": "*"})), Ok(()));
    assert_eq!(
        outcome(serde_json::json!({"a": {"b": {"$has": [{"d": 2}], "$count": 2, "$lacks": [3]}}})),
        Ok(())
    );
    for (wanted, why) in [
        (serde_json::json!({"a": {"b": [1]}}), ".a.b is [1,{\"c\":\"text\",\"d\":2}] instead of [1]"),
        (
            serde_json::json!({"a": {"b": [1, {"c": "~ ^x"}]}}),
            ".a.b[1].c is \"text\", which does not match \"^x\"",
        ),
        (serde_json::json!({"e": null}), ".e is there: \"x\""),
        (serde_json::json!({"a": {"b": {"$has": [2]}}}), ".a.b has no 2"),
        (serde_json::json!({"a": {"b": {"$lacks": [1]}}}), ".a.b has 1"),
        (serde_json::json!({"g": 1}), ".g is missing: 1 is wanted"),
    ] {
        assert_eq!(outcome(wanted), Err(why.to_owned()));
    }
    assert_eq!(at(&found, "a.b.1.d"), Some(&2.into()));
}
