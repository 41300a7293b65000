//! JSONPath as `kubectl` has it (`client-go/util/jsonpath`): paths in braces within a text, `range` and
//! `end`, slices, unions, filters, and whatever is below (`..`).

use serde_json::Value;

use super::json_path_steps::{JsonPathStep, read_path, walk};
use super::stop::KubectlStop;

/// A part of a template.
enum TemplatePart {
    Text(String),
    Path(Vec<JsonPathStep>),
    /// What is said for each that a path finds.
    Range(Vec<JsonPathStep>, Vec<TemplatePart>),
}

/// The text of a template for an object.
///
/// # Errors
/// What is wrong with the template.
pub(super) fn by_path(object: &Value, template: &str) -> Result<String, KubectlStop> {
    let wrong = |why: String| KubectlStop::Failed(format!("error: error parsing jsonpath {template}, {why}"));
    let mut rest = template;
    let parts = read_parts(&mut rest, false).map_err(wrong)?;
    let mut out = String::new();
    say(&parts, object, object, &mut out);
    Ok(out)
}

/// What a path leads to, with or without braces around it.
///
/// # Errors
/// What is wrong with it.
pub(super) fn found_by<'a>(object: &'a Value, path: &str) -> Result<Vec<&'a Value>, KubectlStop> {
    let bare = path.trim().trim_start_matches('{').trim_end_matches('}');
    let bare = if bare.starts_with(['.', '[', '$', '@']) { bare.to_owned() } else { format!(".{bare}") };
    let wrong = |why| KubectlStop::Failed(format!("error: error parsing jsonpath {path}, {why}"));
    let steps = read_path(&bare).map_err(wrong)?;
    Ok(walk(&steps, object, object))
}

/// As columns and texts show it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn read_parts(rest: &mut &str, is_within: bool) -> Result<Vec<TemplatePart>, String> {
    let mut parts = vec![];
    while let Some((text, behind)) = rest.split_once('{') {
        if !text.is_empty() {
            parts.push(TemplatePart::Text(text.to_owned()));
        }
        let end = end_of_action(behind).ok_or("unclosed action")?;
        let (action, behind) = (behind[..end].trim(), &behind[end + 1..]);
        *rest = behind;
        let quote = action.chars().next().filter(|first| matches!(first, '"' | '\''));
        if action == "end" {
            return if is_within { Ok(parts) } else { Err("not in range, nothing to end".into()) };
        } else if let Some(path) = action.strip_prefix("range ") {
            let path = read_path(path.trim())?;
            parts.push(TemplatePart::Range(path, read_parts(rest, true)?));
        } else if let Some(quote) = quote {
            parts.push(TemplatePart::Text(unquoted(action.trim_matches(quote))));
        } else {
            parts.push(TemplatePart::Path(read_path(action)?));
        }
    }
    if is_within {
        return Err("unexpected end of range".into());
    }
    if !rest.is_empty() {
        parts.push(TemplatePart::Text(std::mem::take(rest).to_owned()));
    }
    Ok(parts)
}

/// Where the brace is that closes what was opened; braces in quotes close nothing.
fn end_of_action(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(own), letter) if own == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '}') => return Some(at),
            _ => {}
        }
    }
    None
}

fn unquoted(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"")
}

fn say(parts: &[TemplatePart], root: &Value, current: &Value, out: &mut String) {
    for part in parts {
        match part {
            TemplatePart::Text(text) => out.push_str(text),
            TemplatePart::Path(path) => {
                let found: Vec<String> = walk(path, root, current).into_iter().map(shown).collect();
                out.push_str(&found.join(" "));
            }
            TemplatePart::Range(path, body) => {
                for each in walk(path, root, current) {
                    say(body, root, each, out);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn templates_say_what_their_paths_find() {
        let list = json!({"items": [
            {"metadata": {"name": "a", "labels": {"app.io/x": "1"}}, "n": 3, "ok": true, "is": [1, 2, 3]},
            {"metadata": {"name": "b"}, "n": 5, "none": null}]});
        let said = |template: &str| by_path(&list, template).unwrap_or_else(|_| "wrong".into());
        for (template, wanted) in [
            ("{.items[*].metadata.name}", "a b"),
            ("n={.items[0].n}{\"\\n\"}", "n=3\n"),
            ("{.items[0].metadata.labels.app\\.io/x}", "1"),
            ("{$.items[1]['metadata'].name}{.none}", "b"),
            ("{.items[?(@.n==3)].metadata.name}", "a"),
            ("{.items[?(@.n>3)].metadata.name}", "b"),
            ("{.items[?(@.metadata.name!=\"a\")].n}", "5"),
            ("{.items[?(@.ok)].n}", "3"),
            ("{.items[?(@.ok==true)].n}", "3"),
            ("{.items[-1].n}", "5"),
            ("{.items[0].is[0:2]}", "1 2"),
            ("{.items[0].is[-2:]}", "2 3"),
            ("{.items[0].is[::2]}", "1 3"),
            ("{.items[0]['n','ok']}", "3 true"),
            ("{.items[0].is[0,2]}", "1 3"),
            ("{..name}", "a b"),
            ("{.items[0].is}", "[1,2,3]"),
            ("{range .items[*]}{.metadata.name}={.n}{\"\\n\"}{end}", "a=3\nb=5\n"),
            ("{range .items[*]}{range .is[*]}{@}{','}{end};{end}", "1,2,3,;;"),
            ("{.items", "wrong"),
            ("{range .items[*]}{.n}", "wrong"),
            ("{end}", "wrong"),
            ("{.items[x]}", "wrong"),
            ("{.items[?(@.n}", "wrong"),
        ] {
            assert_eq!(said(template), wanted, "{template}");
        }
        let names = found_by(&list["items"][0], "metadata.name").ok().unwrap();
        assert_eq!(names, [&json!("a")]);
    }
}
