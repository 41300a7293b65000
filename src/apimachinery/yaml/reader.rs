//! Reading YAML as Go reads it, to JSON: `sigs.k8s.io/yaml`, which is YAML 1.1 as go-yaml understands it.

use serde_json::Value;

use super::aliases::{Allowance, BadYaml};
use super::composer::Composer;
use super::json::{JsonDocument, convert};
use super::scanner::YamlFault;

/// Reads the first document; nothing is `null`. What follows it is not looked at. The error is Go's.
pub fn to_json(text: &[u8]) -> Result<JsonDocument, BadYaml> {
    let text = checked(text)?;
    match Composer::new(text).document().map_err(|fault| go_error(&fault))? {
        Some(document) => convert(&document, Allowance::of(text)),
        None => Ok(JsonDocument { value: Value::Null, duplicates: None }),
    }
}

/// Reads all documents. The error is Go's.
pub(super) fn all_to_json(text: &[u8]) -> Result<Vec<Value>, BadYaml> {
    let text = checked(text)?;
    let mut composer = Composer::new(text);
    let mut values = Vec::new();
    while let Some(document) = composer.document().map_err(|fault| go_error(&fault))? {
        values.push(convert(&document, Allowance::of(text))?.value);
    }
    Ok(values)
}

fn go_error(fault: &YamlFault) -> String {
    match fault.line {
        0 => format!("yaml: {}", fault.problem),
        line => format!("yaml: line {line}: {}", fault.problem),
    }
}

/// The text, if it is one: UTF-8, without control characters.
fn checked(text: &[u8]) -> Result<&str, BadYaml> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let octets = match (error.error_len(), text.get(error.valid_up_to())) {
            (None, _) => "incomplete UTF-8 octet sequence",
            (Some(1), Some(0x80..0xc0 | 0xf8..)) => "invalid leading UTF-8 octet",
            _ => "invalid trailing UTF-8 octet",
        };
        format!("yaml: {octets}")
    })?;
    let is_refused = |c: char| {
        c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}') || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    if text.contains(is_refused) { Err("yaml: control characters are not allowed".into()) } else { Ok(text) }
}
