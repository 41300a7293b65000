//! Labels, annotations, selectors and the like, as `kubectl describe` writes them.

use std::collections::BTreeMap;

use chrono::DateTime;
use golang::first_bytes::first_bytes;
use serde_json::Value;

use super::page::TabbedPage;

/// Annotations that nobody is shown: what was applied last.
const HIDDEN: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// A longer annotation is cut off.
const MAX_ANNOTATION_BYTES: usize = 140;

pub(super) const NONE: &str = "<none>";

/// A text; nothing is an empty one.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

/// The elements of a list; nothing is an empty one.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Numbers and texts, as they stand in a line (`%v`).
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

/// A number; nothing is 0.
pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

pub(super) fn or_none(text: &str) -> &str {
    if text.is_empty() { NONE } else { text }
}

/// Keys and values, in the order of the keys.
fn pairs(map: &Value) -> BTreeMap<&str, &str> {
    let members = map.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect()
}

/// `a=b,c=d`; nothing is `<none>`.
pub(super) fn joined(map: &Value) -> String {
    let terms: Vec<String> = pairs(map).iter().map(|(key, value)| format!("{key}={value}")).collect();
    or_none(&terms.join(",")).to_owned()
}

/// A label selector as one line; `None` selects nothing.
pub(super) fn selector(selector: &Value) -> String {
    let mut terms: Vec<(String, String)> = pairs(&selector["matchLabels"])
        .into_iter()
        .map(|(key, value)| (key.to_owned(), format!("{key}={value}")))
        .collect();
    for expression in list(&selector["matchExpressions"]) {
        let key = text(expression, "key");
        let mut values: Vec<&str> = list(&expression["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match text(expression, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        terms.push((key.to_owned(), term));
    }
    terms.sort();
    terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(",")
}

/// A map, a line each.
pub(super) fn lines_of(page: &mut TabbedPage, title: &str, map: &Value) {
    page.begin(0, format!("{title}:\t"));
    let pairs = pairs(map);
    if pairs.is_empty() {
        return page.line(0, NONE);
    }
    for (at, (key, value)) in pairs.into_iter().enumerate() {
        let indent = if at == 0 { "" } else { "\t" };
        page.line(0, format!("{indent}{key}={value}"));
    }
}

pub(super) fn annotations(page: &mut TabbedPage, title: &str, map: &Value) {
    page.begin(0, format!("{title}:\t"));
    let mut pairs = pairs(map);
    pairs.remove(HIDDEN);
    if pairs.is_empty() {
        return page.line(0, NONE);
    }
    for (at, (key, value)) in pairs.into_iter().enumerate() {
        let indent = if at == 0 { "" } else { "\t" };
        let value = value.strip_suffix('\n').unwrap_or(value);
        if value.len() + key.len() + 2 > MAX_ANNOTATION_BYTES || value.contains('\n') {
            page.line(0, format!("{indent}{key}:"));
            for line in value.split('\n') {
                page.line(0, format!("\t  {}", shortened(line, MAX_ANNOTATION_BYTES - 2)));
            }
        } else {
            page.line(0, format!("{indent}{key}: {value}"));
        }
    }
}

fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}...", first_bytes(text, bytes))
}

/// `Mon, 02 Jan 2006 15:04:05 +0000`
pub(super) fn time(value: &Value) -> String {
    let time = value.as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    let time = time.map_or(DateTime::UNIX_EPOCH, |time| time.to_utc());
    time.format("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

/// `Kind/name` of who controls it.
pub(super) fn controller(object: &Value) -> Option<String> {
    let owners = list(&object["metadata"]["ownerReferences"]);
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(format!("{}/{}", text(owner, "kind"), text(owner, "name")))
}

/// Name, namespace, labels and annotations: with what most pages begin.
pub(super) fn head(page: &mut TabbedPage, object: &Value) {
    let metadata = &object["metadata"];
    page.field(0, "Name", text(metadata, "name"));
    page.field(0, "Namespace", text(metadata, "namespace"));
    lines_of(page, "Labels", &metadata["labels"]);
    annotations(page, "Annotations", &metadata["annotations"]);
}

/// A table of conditions: type and status, and the reason where that is wanted.
pub(super) fn conditions(page: &mut TabbedPage, conditions: &Value, has_reasons: bool) {
    let conditions = list(conditions);
    if conditions.is_empty() {
        return;
    }
    if has_reasons {
        page.line(0, "Conditions:\n  Type\tStatus\tReason");
        page.line(1, "----\t------\t------");
    } else {
        page.line(0, "Conditions:\n  Type\tStatus");
    }
    for condition in conditions {
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        if has_reasons {
            page.line(1, format!("{kind} \t{status}\t{}", text(condition, "reason")));
        } else {
            page.line(1, format!("{kind} \t{status} "));
        }
    }
}
