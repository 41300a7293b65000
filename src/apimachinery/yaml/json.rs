//! From the nodes of a document to JSON, as `sigs.k8s.io/yaml` converts (`decode.go`, `yaml.go`).

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use golang::go_text;

use super::aliases::{Allowance, BadYaml};
use super::composer::{MAX_DEPTH, NodeId, YamlContent, YamlDocument};
use super::resolve::{self, YamlScalar};

/// Duplicate keys that are reported; what comes after them is not told.
const MAX_DUPLICATES: usize = 16;

/// How much of a value a refusal shows, in bytes: the value may be as long as the document, and longer with
/// its quotes.
const MAX_SHOWN_BYTES: usize = 1024;
/// Stands behind a value that is not shown in full.
const CUT: &str = "...";

/// A document as JSON.
pub struct JsonDocument {
    /// Of keys that come twice the last counts.
    pub value: Value,
    /// One strict error for all duplicate keys, as upstream's reader reports them; None without any.
    pub duplicates: Option<String>,
}

/// Converts a document. The error is Go's.
pub(super) fn convert(document: &YamlDocument, allowance: Allowance) -> Result<JsonDocument, BadYaml> {
    let mut reader =
        YamlConverter { document, allowance, depth: 0, open: vec![], duplicates: vec![], refusal: None };
    let value = reader.value(document.root)?;
    if let Some(refusal) = reader.refusal {
        return Err(refusal.into());
    }
    let found = reader.duplicates;
    let duplicates =
        (!found.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", found.join("\n  ")));
    Ok(JsonDocument { value, duplicates })
}

struct YamlConverter<'d> {
    document: &'d YamlDocument,
    allowance: Allowance,
    depth: usize,
    /// Aliases that are being followed.
    open: Vec<NodeId>,
    duplicates: Vec<String>,
    /// What YAML can say and JSON cannot; whatever is wrong with the YAML comes first.
    refusal: Option<String>,
}

/// A key of a mapping: 1 and "1" are two, though JSON has but one text for them.
#[derive(PartialEq, Eq, Hash)]
enum YamlKey {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(u64),
    Text(String),
}

#[derive(Default)]
struct YamlMapping {
    keys: HashSet<YamlKey>,
    object: Map<String, Value>,
}

impl<'d> YamlConverter<'d> {
    fn value(&mut self, id: NodeId) -> Result<Value, BadYaml> {
        self.deeper(|reader| reader.nested_value(id))
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, BadYaml>) -> Result<T, BadYaml> {
        if self.depth >= MAX_DEPTH {
            return Err(format!("yaml: exceeded max depth of {MAX_DEPTH}").into());
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn nested_value(&mut self, id: NodeId) -> Result<Value, BadYaml> {
        let document = self.document;
        match &document.nodes[id].content {
            YamlContent::Scalar { text, .. } => {
                self.allowance.take(text.len())?;
                let (scalar, text) = self.scalar(id)?;
                Ok(self.json(scalar, text))
            }
            YamlContent::Sequence(items) => {
                self.allowance.take(0)?;
                items.iter().map(|item| self.value(*item)).collect()
            }
            YamlContent::Mapping(_) => {
                self.allowance.take(0)?;
                let mut mapping = YamlMapping::default();
                self.mapping(id, &mut mapping)?;
                Ok(Value::Object(mapping.object))
            }
            YamlContent::Alias { name, target } => {
                self.alias(id, name, |reader| reader.nested_value(*target))
            }
        }
    }

    fn alias<T>(
        &mut self,
        id: NodeId,
        name: &str,
        follow: impl FnOnce(&mut Self) -> Result<T, BadYaml>,
    ) -> Result<T, BadYaml> {
        if self.open.contains(&id) {
            return Err(format!("yaml: anchor '{name}' value contains itself").into());
        }
        self.open.push(id);
        let found = follow(self);
        self.open.pop();
        found
    }

    /// What a scalar is, and its text, which is another than the written one if that is base64.
    fn scalar(&self, id: NodeId) -> Result<(YamlScalar, String), BadYaml> {
        let node = &self.document.nodes[id];
        let YamlContent::Scalar { text, is_implicit } = &node.content else {
            unreachable!("only scalars are asked for")
        };
        if node.tag.is_empty() && !is_implicit {
            return Ok((YamlScalar::Text, text.clone()));
        }
        if resolve::is_binary(node.tag) {
            let bytes = STANDARD.decode(text.replace(['\r', '\n'], ""));
            let bytes = bytes.map_err(|_| "yaml: !!binary value contains invalid base64 data".to_owned())?;
            return Ok((YamlScalar::Text, String::from_utf8_lossy(&bytes).into_owned()));
        }
        Ok((resolve::resolve(node.tag, text)?, text.clone()))
    }

    fn json(&mut self, scalar: YamlScalar, text: String) -> Value {
        match scalar {
            YamlScalar::Null => Value::Null,
            YamlScalar::Bool(flag) => Value::Bool(flag),
            YamlScalar::Int(number) => number.into(),
            YamlScalar::Uint(number) => number.into(),
            YamlScalar::Float(number) => self.float(number),
            YamlScalar::Timestamp | YamlScalar::Text => Value::String(text),
        }
    }

    /// A float without a fraction is written as an integer on the way to JSON, and read as one.
    fn float(&mut self, number: f64) -> Value {
        if let Ok(whole) = number.to_string().parse::<i64>() {
            return whole.into();
        }
        Number::from_f64(number).map_or_else(
            || {
                self.refuse(format!("json: unsupported value: {}", infinite(number, "+Inf", "-Inf")));
                Value::Null
            },
            Value::Number,
        )
    }

    fn refuse(&mut self, refusal: String) {
        self.refusal.get_or_insert(refusal);
    }

    /// Reads the entries of a mapping into one that may have some already.
    fn mapping(&mut self, id: NodeId, into: &mut YamlMapping) -> Result<(), BadYaml> {
        let document = self.document;
        let YamlContent::Mapping(entries) = &document.nodes[id].content else {
            unreachable!("only mappings are asked for")
        };
        for (key, value) in entries {
            if self.is_merge(*key) {
                self.merge(*value, into)?;
                continue;
            }
            let (key, name) = self.key(*key)?;
            let converted = self.value(*value)?;
            self.check_key(&key, &converted);
            if into.keys.contains(&key) && self.duplicates.len() < MAX_DUPLICATES {
                let line = document.nodes[*value].line + 1;
                self.duplicates.push(format!("line {line}: key {} already set in map", key.shown()));
            }
            into.keys.insert(key);
            into.object.insert(name, converted);
        }
        Ok(())
    }

    fn is_merge(&self, key: NodeId) -> bool {
        let node = &self.document.nodes[key];
        match &node.content {
            YamlContent::Scalar { text, is_implicit } => {
                text == "<<" && (*is_implicit || resolve::is_merge(node.tag))
            }
            _ => false,
        }
    }

    /// `<<`: the entries of the named mappings, of which the first counts most.
    fn merge(&mut self, id: NodeId, into: &mut YamlMapping) -> Result<(), BadYaml> {
        match &self.document.nodes[id].content {
            YamlContent::Sequence(items) => {
                items.iter().rev().try_for_each(|item| self.merge_one(*item, into))
            }
            _ => self.merge_one(id, into),
        }
    }

    fn merge_one(&mut self, id: NodeId, into: &mut YamlMapping) -> Result<(), BadYaml> {
        self.allowance.take(0)?;
        self.deeper(|reader| reader.merge_mapping(id, into))
    }

    fn merge_mapping(&mut self, id: NodeId, into: &mut YamlMapping) -> Result<(), BadYaml> {
        let document = self.document;
        let no_map = || Err("yaml: map merge requires map or sequence of maps as the value".into());
        match &document.nodes[id].content {
            YamlContent::Mapping(_) => self.mapping(id, into),
            YamlContent::Alias { name, target } => match document.nodes[*target].content {
                YamlContent::Mapping(_) => self.alias(id, name, |reader| reader.mapping(*target, into)),
                _ => no_map(),
            },
            _ => no_map(),
        }
    }

    /// A key, and what it is called in JSON.
    fn key(&mut self, id: NodeId) -> Result<(YamlKey, String), BadYaml> {
        let target = match &self.document.nodes[id].content {
            YamlContent::Alias { target, .. } => *target,
            _ => id,
        };
        if !matches!(self.document.nodes[target].content, YamlContent::Scalar { .. }) {
            let key = self.value(id)?;
            return Err(format!("yaml: invalid map key: {}", go_syntax(&key)).into());
        }
        let (scalar, text) = self.scalar(target)?;
        self.allowance.take(text.len())?;
        Ok(match scalar {
            YamlScalar::Null => (YamlKey::Null, String::new()),
            YamlScalar::Bool(flag) => (YamlKey::Bool(flag), flag.to_string()),
            YamlScalar::Int(number) => (YamlKey::Int(number), number.to_string()),
            YamlScalar::Uint(number) => (YamlKey::Uint(number), number.to_string()),
            YamlScalar::Float(number) => (YamlKey::Float(number.to_bits()), float_name(number)),
            YamlScalar::Timestamp | YamlScalar::Text => (YamlKey::Text(text.clone()), text),
        })
    }

    /// Whether JSON can say the key. Only the first that it cannot is told, so no further value is shown: to
    /// show what is nested again at each level would be quadratic.
    fn check_key(&mut self, key: &YamlKey, value: &Value) {
        if self.refusal.is_some() {
            return;
        }
        let go_type = match key {
            YamlKey::Null => "%!s(<nil>)",
            YamlKey::Uint(_) => "uint64",
            _ => return,
        };
        let key = key.shown();
        let value = if value.is_null() { "<nil>".to_owned() } else { go_syntax(value) };
        self.refuse(format!("unsupported map key of type: {go_type}, key: {key}, value: {value}"));
    }
}

impl YamlKey {
    /// As `%#v` writes it.
    fn shown(&self) -> String {
        match self {
            YamlKey::Null => "<nil>".to_owned(),
            YamlKey::Bool(flag) => flag.to_string(),
            YamlKey::Int(number) => number.to_string(),
            YamlKey::Uint(number) => format!("{number:#x}"),
            YamlKey::Float(bits) => go_text::printed_float(f64::from_bits(*bits)),
            YamlKey::Text(text) => go_text::quote(text),
        }
    }
}

/// A float as a key: as precise as 32 bits are.
fn float_name(number: f64) -> String {
    if !number.is_finite() {
        return infinite(number, ".inf", "-.inf").replace("NaN", ".nan");
    }
    let short = (number as f32).to_string().parse().unwrap_or(number);
    go_text::printed_float(short)
}

fn infinite(number: f64, positive: &str, negative: &str) -> String {
    match number {
        _ if number.is_nan() => "NaN".to_owned(),
        _ if number > 0.0 => positive.to_owned(),
        _ => negative.to_owned(),
    }
}

/// As `%#v` writes what the reader made of it, but for what is too long.
fn go_syntax(value: &Value) -> String {
    let mut out = String::new();
    write_go_syntax(value, &mut out);
    if out.len() > MAX_SHOWN_BYTES {
        out.truncate(beginning(&out).len());
        out.push_str(CUT);
    }
    out
}

/// Writes so much at least as is shown, if there is so much, and stops soon after.
fn write_go_syntax(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::String(text) => out.push_str(&shown_text(text)),
        Value::Array(items) => {
            out.push_str("[]interface {}");
            write_braced(items, out, write_go_syntax);
        }
        Value::Object(map) => {
            out.push_str("map[interface {}]interface {}");
            write_braced(map, out, |(key, value), out| {
                out.push_str(&shown_text(key));
                out.push(':');
                write_go_syntax(value, out);
            });
        }
        other => out.push_str(&other.to_string()),
    }
}

fn write_braced<T>(items: impl IntoIterator<Item = T>, out: &mut String, write: impl Fn(T, &mut String)) {
    out.push('{');
    for (at, item) in items.into_iter().enumerate() {
        if out.len() > MAX_SHOWN_BYTES {
            return;
        }
        if at > 0 {
            out.push_str(", ");
        }
        write(item, out);
    }
    out.push('}');
}

/// A text in quotes, or the beginning of one that is cut anyway.
fn shown_text(text: &str) -> String {
    go_text::quote(beginning(text))
}

/// What is shown, to the end of its last character.
fn beginning(text: &str) -> &str {
    let end = (MAX_SHOWN_BYTES..text.len()).find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(text.len())]
}
