//! YAML, read and written as `sigs.k8s.io/yaml` does: bodies come in as YAML 1.1, with a bound on what
//! aliases stand for ([`to_json`]); objects go out with its keys in their order, its quotes, its folded lines
//! ([`to_string`]).
//!
//! The reader goes go-yaml's way: a `scanner` makes tokens over a `cursor`, a `composer` nodes of them;
//! `resolve` knows what a scalar is, and `json` what becomes of it.
//!
//! The emitter is libyaml's, in block style and two columns an indent. What decides where a line breaks is
//! what was written last: whether that was white, and whether the line holds nothing but indents so far.

mod aliases;
mod composer;
mod cursor;
mod emitter;
mod json;
mod key_order;
mod read;
mod reader;
mod resolve;
mod scalar;
mod scan_scalar;
mod scan_tag;
mod scanner;

#[cfg(test)]
mod reader_test;

use serde_json::{Number, Value};

pub use aliases::BadYaml;
use emitter::{Emitter, INDENT};
use golang::go_text;
pub use json::JsonDocument;
pub use read::{YamlError, documents, from_slice, from_str};
pub use reader::to_json;
use scalar::ScalarStyle;

/// Keys longer than this, in bytes, are announced by a question mark.
const MAX_SIMPLE_KEY_BYTES: usize = 128;

/// The document, with a line break at its end.
pub fn to_string(value: &Value) -> String {
    let mut emitter = Emitter::new();
    emitter.node(value, YamlPlace::Item);
    emitter.line();
    emitter.out
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum YamlPlace {
    /// The root, or in a list.
    Item,
    /// A key short enough to stand before its colon.
    Key,
    /// A value, or a key behind a question mark.
    Value,
}

impl Emitter {
    fn node(&mut self, value: &Value, place: YamlPlace) {
        match value {
            Value::Null => self.plain("null", place),
            Value::Bool(flag) => self.plain(if *flag { "true" } else { "false" }, place),
            Value::Number(written) => self.plain(&number(written), place),
            Value::String(text) => self.text(text, place),
            Value::Array(items) if items.is_empty() => self.indicator("[]", true, false),
            Value::Array(items) => self.list(items, place),
            Value::Object(fields) if fields.is_empty() => self.indicator("{}", true, false),
            Value::Object(fields) => self.map(fields),
        }
    }

    fn list(&mut self, items: &[Value], place: YamlPlace) {
        let outer = self.indent;
        // Below its key a list is not indented.
        if place != YamlPlace::Value || self.is_indent {
            self.indent = Some(outer.map_or(0, |columns| columns + INDENT));
        }
        for item in items {
            self.line();
            self.indicator("-", true, true);
            self.node(item, YamlPlace::Item);
        }
        self.indent = outer;
    }

    fn map(&mut self, fields: &serde_json::Map<String, Value>) {
        let outer = self.indent;
        self.indent = Some(outer.map_or(0, |columns| columns + INDENT));
        for key in key_order::sorted(fields.keys()) {
            self.line();
            if key.len() <= MAX_SIMPLE_KEY_BYTES && !key.contains(scalar::is_break) {
                self.text(key, YamlPlace::Key);
                self.indicator(":", false, false);
            } else {
                self.indicator("?", true, true);
                self.text(key, YamlPlace::Value);
                self.line();
                self.indicator(":", true, true);
            }
            self.node(&fields[key], YamlPlace::Value);
        }
        self.indent = outer;
    }

    fn plain(&mut self, text: &str, place: YamlPlace) {
        self.scalar(text, ScalarStyle::Plain, place);
    }

    fn text(&mut self, text: &str, place: YamlPlace) {
        self.scalar(text, scalar::style(text, place == YamlPlace::Key), place);
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, place: YamlPlace) {
        let outer = self.indent;
        self.indent = Some(outer.unwrap_or_default() + INDENT);
        let may_fold = place != YamlPlace::Key;
        match style {
            ScalarStyle::Plain => self.plain_scalar(text, may_fold),
            ScalarStyle::SingleQuoted => self.single_quoted(text, may_fold),
            ScalarStyle::DoubleQuoted => self.double_quoted(text, may_fold),
            ScalarStyle::Literal => self.literal(text),
        }
        self.indent = outer;
    }
}

/// As Go's reader keeps it and `strconv` writes it: whole up to 64 bits, else with an exponent where that is
/// far.
fn number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let text = go_text::float(float);
    match text.parse::<i64>() {
        Ok(whole) => whole.to_string(),
        Err(_) if text.parse::<u64>().is_ok() => text,
        Err(_) => go_text::printed_float(float),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents as JSON, each with the YAML that Go makes of it, as a JSON string in the line below.
    const PAIRS: &str = include_str!("pairs.txt");

    #[test]
    fn documents_are_written_as_go_writes_them() {
        let mut lines = PAIRS.lines();
        while let (Some(json), Some(yaml)) = (lines.next(), lines.next()) {
            let value: Value = serde_json::from_str(json).unwrap();
            let wanted: String = serde_json::from_str(yaml).unwrap();
            assert_eq!(to_string(&value), wanted, "{json}");
        }
    }
}
