//! OpenAPI documents in gnostic's protobuf: `openapi.v2.Document` and `openapi.v3.Document`.
//!
//! client-go's `OpenAPISchema()` unmarshals the answer to `/openapi/v2` as the first, whatever its media type
//! says. No message has code of its own: `gnostic/v2.txt` and `v3.txt` say which key of the JSON goes into
//! which field, and are read when somebody first asks. What is not a plain key:
//!
//! - `x-`: each key that begins so, a vendor extension, as a pair of name and value;
//! - `*`: each key that nothing else takes, likewise;
//! - `.`: the value itself. Of several such fields one is written, the first that fits: `.:bool` a flag,
//!   `.$ref` an object with that key, `.in=body` one with that text in it, `.` anything.
//!
//! A type in brackets is repeated. `text` is the value as YAML, and JSON is YAML.

use std::collections::HashMap;

use serde_json::{Map, Value};

use apimachinery::protobuf::{write_bytes, write_double, write_int, write_nested};

const V2: &str = include_str!("gnostic/v2.txt");
const V3: &str = include_str!("gnostic/v3.txt");

/// Of a swagger 2.0 document.
pub(super) fn v2(document: &Value) -> Vec<u8> {
    encode(document, V2)
}

/// Of an OpenAPI 3.0 document.
pub(super) fn v3(document: &Value) -> Vec<u8> {
    encode(document, V3)
}

fn encode(document: &Value, table: &str) -> Vec<u8> {
    let mut out = Vec::new();
    GnosticMessages::read(table).write(&mut out, "Document", document);
    out
}

struct GnosticField<'a> {
    key: &'a str,
    number: u32,
    kind: &'a str,
}

/// The fields of each message.
struct GnosticMessages<'a>(HashMap<&'a str, Vec<GnosticField<'a>>>);

impl<'a> GnosticMessages<'a> {
    /// A message begins with its name at the start of a line; its fields may go on in the next.
    fn read(table: &'a str) -> GnosticMessages<'a> {
        let mut messages = HashMap::new();
        let mut current = "";
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let (name, fields) = line.split_once(' ').unwrap_or_default();
            current = if name.is_empty() { current } else { name };
            let own: &mut Vec<GnosticField<'a>> = messages.entry(current).or_default();
            own.extend(fields.split(',').filter_map(GnosticField::read));
        }
        GnosticMessages(messages)
    }

    fn write(&self, out: &mut Vec<u8>, message: &str, value: &Value) {
        let fields = self.0.get(message).map(Vec::as_slice).unwrap_or_default();
        let mut is_chosen = false;
        for field in fields {
            match (field.key, field.key.strip_prefix('.')) {
                ("x-" | "*", _) => {
                    let own = members(value).filter(|(name, _)| field.takes(name, fields));
                    own.for_each(|(name, own)| self.write_pair(out, field, name, own));
                }
                (_, Some(test)) if is_chosen || !holds(test, value) => {}
                (_, Some(_)) => {
                    is_chosen = true;
                    self.write_field(out, field.number, field.kind, value, true);
                }
                (key, None) => {
                    let own = value.get(key).into_iter();
                    own.for_each(|own| self.write_field(out, field.number, field.kind, own, false));
                }
            }
        }
    }

    fn write_pair(&self, out: &mut Vec<u8>, field: &GnosticField, name: &str, value: &Value) {
        write_nested(out, field.number, |out| {
            write_bytes(out, 1, name.as_bytes());
            self.write_field(out, 2, field.kind, value, false);
        });
    }

    /// Zero values are left out, as in every proto3 message, but where one of several is chosen (`always`).
    fn write_field(&self, out: &mut Vec<u8>, number: u32, kind: &str, value: &Value, always: bool) {
        if let Some(kind) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
            let one = std::slice::from_ref(value);
            let elements = value.as_array().map_or(one, Vec::as_slice);
            return elements.iter().for_each(|own| self.write_field(out, number, kind, own, true));
        }
        let as_double = || value.as_f64().unwrap_or_default();
        match kind {
            "text" => write_bytes(out, number, value.to_string().as_bytes()),
            "string" => match value.as_str().unwrap_or_default() {
                "" if !always => {}
                text => write_bytes(out, number, text.as_bytes()),
            },
            "bool" | "int64" => match value.as_i64().unwrap_or(as_double() as i64) | flag(value) {
                0 if !always => {}
                integer => write_int(out, number, integer),
            },
            "double" if as_double() == 0.0 && !always => {}
            "double" => write_double(out, number, as_double()),
            message => write_nested(out, number, |out| self.write(out, message, value)),
        }
    }
}

impl<'a> GnosticField<'a> {
    fn read(text: &'a str) -> Option<GnosticField<'a>> {
        let mut words = text.split_whitespace();
        Some(GnosticField { key: words.next()?, number: words.next()?.parse().ok()?, kind: words.next()? })
    }

    /// Whether a field of many names takes this one.
    fn takes(&self, name: &str, fields: &[GnosticField]) -> bool {
        let is_named = |key: &str| fields.iter().any(|field| field.key == key);
        let is_extension = name.starts_with("x-") && is_named("x-");
        if self.key == "x-" { is_extension } else { !is_extension && !is_named(name) }
    }
}

fn holds(test: &str, value: &Value) -> bool {
    match (test, test.split_once('=')) {
        ("", _) => true,
        (":bool", _) => value.is_boolean(),
        (":number", _) => value.is_number(),
        (":string", _) => value.is_string(),
        (_, Some((key, wanted))) => value.get(key).is_some_and(|own| own == wanted),
        (key, None) => value.get(key).is_some_and(Value::is_string),
    }
}

fn flag(value: &Value) -> i64 {
    i64::from(value.as_bool().unwrap_or(false))
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().map(Map::iter).into_iter().flatten()
}
