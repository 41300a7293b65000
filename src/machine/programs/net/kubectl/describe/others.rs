//! Kinds with little to tell, and those of which nothing is known, as `kubectl describe` writes them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::metadata::{head, list, plain, text};
use super::page::TabbedPage;

/// Fields of metadata that the head has told, or that are for machines.
const TOLD: &[&str] = &["managedFields", "name", "namespace", "labels", "annotations"];
/// Words that are written large.
const ACRONYMS: &[&str] = &["API", "URL", "UID", "GUID"];

pub(super) fn config_map(page: &mut TabbedPage, own: &Value) {
    head(page, own);
    page.line(0, "\nData\n====");
    for (key, value) in own["data"].as_object().into_iter().flatten() {
        page.line(0, format!("{key}:\n----\n{}\n", value.as_str().unwrap_or_default()));
    }
    page.line(0, "\nBinaryData\n====");
    for (key, value) in own["binaryData"].as_object().into_iter().flatten() {
        page.line(0, format!("{key}: {} bytes", bytes(value).len()));
    }
    page.line(0, "");
}

fn bytes(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()
}

pub(super) fn secret(page: &mut TabbedPage, own: &Value) {
    head(page, own);
    page.line(0, format!("\nType:\t{}", text(own, "type")));
    page.line(0, "\nData\n====");
    let is_token = own["type"] == "kubernetes.io/service-account-token";
    for (key, value) in own["data"].as_object().into_iter().flatten() {
        let bytes = bytes(value);
        if is_token && key == "token" {
            page.field(0, key, String::from_utf8_lossy(&bytes));
        } else {
            page.field(0, key, format!("{} bytes", bytes.len()));
        }
    }
}

pub(super) fn service_account(page: &mut TabbedPage, own: &Value) {
    head(page, own);
    let mut title = "Image pull secrets:";
    let secrets = list(&own["imagePullSecrets"]);
    if secrets.is_empty() {
        page.line(0, format!("{title}\t<none>"));
    }
    for secret in secrets {
        page.line(0, format!("{title}\t{}", text(secret, "name")));
        title = "                   ";
    }
}

/// Whatever it has, by the names of its fields.
pub(super) fn anything(page: &mut TabbedPage, own: &Value) {
    head(page, own);
    let Some(members) = own.as_object() else { return };
    let mut members = members.clone();
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !TOLD.contains(&key.as_str()));
    }
    fields(page, 0, &members);
}

fn fields(page: &mut TabbedPage, level: usize, members: &Map<String, Value>) {
    for (field, value) in members {
        let title = title(field);
        match value {
            Value::Object(inner) => {
                page.line(level, format!("{title}:"));
                fields(page, level + 1, inner);
            }
            Value::Array(elements) => {
                page.line(level, format!("{title}:"));
                for element in elements {
                    match element {
                        Value::Object(inner) => fields(page, level + 1, inner),
                        other => page.line(level + 1, plain(other)),
                    }
                }
            }
            other => page.field(level, &title, plain(other)),
        }
    }
}

/// `creationTimestamp` is `Creation Timestamp`, `podCIDRs` is `Pod CIDRs`.
fn title(field: &str) -> String {
    if !field.chars().all(|letter| letter.is_alphabetic() || letter == '-') {
        return field.to_owned();
    }
    let words = merged(words(field)).into_iter().map(|word| {
        if ACRONYMS.contains(&word.to_uppercase().as_str()) {
            return word.to_uppercase();
        }
        let mut letters = word.chars();
        match letters.next() {
            Some(first) if word.to_lowercase() == word => {
                first.to_uppercase().collect::<String>() + letters.as_str()
            }
            _ => word,
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Where a word begins with a capital letter; several capital letters are one word, but for the last one
/// before a small letter.
fn words(field: &str) -> Vec<String> {
    let kind = |letter: char| (letter.is_lowercase(), letter.is_uppercase());
    let mut runs: Vec<String> = vec![];
    for letter in field.chars() {
        match runs.last_mut() {
            Some(run) if run.chars().next_back().map(kind) == Some(kind(letter)) => run.push(letter),
            _ => runs.push(letter.to_string()),
        }
    }
    for at in 1..runs.len() {
        let is_capital = runs[at - 1].chars().all(char::is_uppercase);
        if is_capital
            && runs[at].chars().all(char::is_lowercase)
            && let Some(last) = runs[at - 1].pop()
        {
            runs[at].insert(0, last);
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// What is several of an acronym is one word: `CIDRs`.
fn merged(words: Vec<String>) -> Vec<String> {
    let mut merged: Vec<String> = vec![];
    let mut words = words.into_iter().peekable();
    while let Some(mut word) = words.next() {
        let is_acronym =
            word.len() >= 2 && !word.chars().any(|letter| letter.is_alphabetic() && !letter.is_uppercase());
        if is_acronym && let Some(next) = words.next_if(|next| next.starts_with(char::is_uppercase)) {
            word.push_str(&next);
        }
        merged.push(word);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_titles() {
        for (field, wanted) in [
            ("apiVersion", "API Version"),
            ("creationTimestamp", "Creation Timestamp"),
            ("uid", "UID"),
            ("podCIDR", "Pod CIDR"),
            ("podCIDRs", "Pod CIDRs"),
            ("HTTPPort", "HTTPPort"),
            ("a.b/c", "a.b/c"),
            ("kind", "Kind"),
        ] {
            assert_eq!(title(field), wanted);
        }
    }
}
