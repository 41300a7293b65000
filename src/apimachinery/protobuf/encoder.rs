//! The other direction, for tests: a tree as a message, every field in a part of its own.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::message::definition;
use super::{json_schema, numbers};
use crate::apimachinery::schema::{Schema, Schemas, Shape};
use crate::apimachinery::time::parse;

/// Writes messages by the table of numbers.
pub(super) struct Encoder(BTreeMap<String, Vec<(String, Vec<u32>)>>);

impl Encoder {
    pub(super) fn new() -> Encoder {
        let mut fields = BTreeMap::<String, Vec<_>>::new();
        for (definition, name, path) in numbers::lines(&numbers::text()) {
            fields.entry(definition.to_owned()).or_default().push((name.to_owned(), path));
        }
        Encoder(fields)
    }

    /// The fields of a definition.
    pub(super) fn fields(&self, schema: &Schema) -> &[(String, Vec<u32>)] {
        let name = definition(schema);
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn message(&self, schema: &Schema, value: &Value) -> Vec<u8> {
        let mut message = Vec::new();
        for (name, path) in self.fields(schema) {
            let Some(value) = value.get(name) else { continue };
            let (last, holders) = path.split_last().expect("a path is not empty");
            let mut part = Vec::new();
            self.field(schema.property(name).expect(name), *last, value, &mut part);
            message.extend(holders.iter().rev().fold(part, |part, number| bytes(*number, &part)));
        }
        message
    }

    fn field(&self, schema: &Schema, number: u32, value: &Value, out: &mut Vec<u8>) {
        match &schema.resolve().shape {
            Shape::List(items) => {
                value.as_array().unwrap().iter().for_each(|value| self.field(items, number, value, out));
            }
            Shape::Map(values) => {
                for (key, value) in value.as_object().unwrap() {
                    let mut entry = bytes(1, key.as_bytes());
                    match &values.resolve().shape {
                        Shape::List(_) => {
                            let mut list = Vec::new();
                            self.field(values, 1, value, &mut list);
                            entry.extend(bytes(2, &list));
                        }
                        _ => self.field(values, 2, value, &mut entry),
                    }
                    out.extend(bytes(number, &entry));
                }
            }
            _ => out.extend(self.single(schema, number, value)),
        }
    }

    fn single(&self, schema: &Schema, number: u32, value: &Value) -> Vec<u8> {
        let text = value.as_str().unwrap_or_default();
        match &schema.resolve().shape {
            Shape::String => bytes(number, text.as_bytes()),
            Shape::Bytes => bytes(number, &STANDARD.decode(text).unwrap()),
            Shape::Boolean => int(number, value.as_bool().unwrap().into()),
            Shape::Integer32 | Shape::Integer64 => int(number, value.as_i64().unwrap()),
            Shape::Number => {
                let mut out = varint(u64::from(number) << 3 | 1);
                out.extend(value.as_f64().unwrap().to_le_bytes());
                out
            }
            Shape::Quantity => bytes(number, &bytes(1, text.as_bytes())),
            Shape::IntOrString => match value.as_i64() {
                Some(value) => bytes(number, &[int(1, 0), int(2, value), bytes(3, b"")].concat()),
                None => bytes(number, &[int(1, 1), int(2, 0), bytes(3, text.as_bytes())].concat()),
            },
            Shape::Time | Shape::MicroTime => {
                let time = parse(text).unwrap();
                let parts = [int(1, time.timestamp()), int(2, time.timestamp_subsec_nanos().into())];
                bytes(number, &parts.concat())
            }
            Shape::Free => bytes(number, &self.free(schema, value)),
            _ => bytes(number, &self.message(schema, value)),
        }
    }

    fn free(&self, schema: &Schema, value: &Value) -> Vec<u8> {
        let name = definition(schema);
        let props =
            || self.message(Schemas::reference(&format!("{}JSONSchemaProps", json_schema::PREFIX)), value);
        match (name.strip_prefix(json_schema::PREFIX), value) {
            (Some("JSONSchemaPropsOrBool"), Value::Bool(flag)) => int(1, (*flag).into()),
            (Some("JSONSchemaPropsOrBool"), _) => bytes(2, &props()),
            (Some("JSONSchemaPropsOrArray"), _) => bytes(1, &props()),
            (Some("JSONSchemaPropsOrStringArray"), Value::Array(texts)) => {
                texts.iter().flat_map(|text| bytes(2, text.as_str().unwrap().as_bytes())).collect()
            }
            _ => bytes(1, value.to_string().as_bytes()),
        }
    }
}

/// A whole body.
pub(super) fn body(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let name = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [super::envelope::MAGIC, &bytes(1, &name), &bytes(2, message), &bytes(3, b""), &bytes(4, b"")].concat()
}

pub(super) fn bytes(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = varint(u64::from(number) << 3 | 2);
    out.extend(varint(bytes.len() as u64));
    out.extend(bytes);
    out
}

pub(super) fn int(number: u32, value: i64) -> Vec<u8> {
    let mut out = varint(u64::from(number) << 3);
    out.extend(varint(value as u64));
    out
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}
