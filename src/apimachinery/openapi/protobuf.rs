//! A swagger 2.0 document in the protobuf of gnostic's `openapi.v2.Document`.
//!
//! client-go's `OpenAPISchema()` unmarshals the answer to `/openapi/v2` as this message, whatever its media
//! type says. Written out by hand for the parts that a Kubernetes document has; the numbers are those of
//! `OpenAPIv2.proto`. What the message has no field for travels as a vendor extension: a name and YAML, and
//! JSON is YAML.

use serde_json::{Map, Value};

pub(super) fn document(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.texts(document, &[("swagger", 1)]);
    message.nested(document, "info", 2, |info| {
        let mut message = Message::default();
        message.texts(info, &[("title", 1), ("version", 2), ("description", 3)]);
        message
    });
    message.nested(document, "paths", 8, |paths| named(paths, 2, path_item));
    message.nested(document, "definitions", 9, |definitions| named(definitions, 1, schema));
    message.nested(document, "securityDefinitions", 13, |definitions| {
        named(definitions, 1, security_definition)
    });
    message.0
}

/// A message under construction: only what proto3 writes, so nothing for an empty text or `false`.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    fn flag(&mut self, field: u64, flag: bool) {
        if flag {
            self.varint(field << 3);
            self.varint(1);
        }
    }

    fn message(&mut self, field: u64, message: Message) {
        self.bytes(field, &message.0);
    }

    fn texts(&mut self, value: &Value, fields: &[(&str, u64)]) {
        for (key, field) in fields {
            self.text(*field, value.get(key).and_then(Value::as_str).unwrap_or_default());
        }
    }

    fn lists(&mut self, value: &Value, fields: &[(&str, u64)]) {
        for (key, field) in fields {
            for text in elements(value, key).filter_map(Value::as_str) {
                self.bytes(*field, text.as_bytes());
            }
        }
    }

    fn flags(&mut self, value: &Value, fields: &[(&str, u64)]) {
        for (key, field) in fields {
            self.flag(*field, value.get(key).and_then(Value::as_bool).unwrap_or(false));
        }
    }

    fn nested(&mut self, value: &Value, key: &str, field: u64, encode: impl Fn(&Value) -> Message) {
        if let Some(nested) = value.get(key) {
            self.message(field, encode(nested));
        }
    }

    fn anything(&mut self, value: &Value, key: &str, field: u64) {
        self.nested(value, key, field, any);
    }

    fn extensions(&mut self, value: &Value, field: u64) {
        for (name, value) in fields(value).filter(|(name, _)| name.starts_with("x-")) {
            self.message(field, pair(name, any(value)));
        }
    }
}

/// A message that is nothing but a list of named values in `field`.
fn named(value: &Value, field: u64, encode: impl Fn(&Value) -> Message) -> Message {
    let mut message = Message::default();
    for (name, value) in fields(value) {
        message.message(field, pair(name, encode(value)));
    }
    message
}

fn pair(name: &str, value: Message) -> Message {
    let mut message = Message::default();
    message.text(1, name);
    message.message(2, value);
    message
}

fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.text(2, &value.to_string());
    message
}

/// One member of a `oneof`.
fn choice(field: u64, member: Message) -> Message {
    let mut message = Message::default();
    message.message(field, member);
    message
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    let methods =
        [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("options", 6), ("head", 7), ("patch", 8)];
    for (method, field) in methods {
        message.nested(item, method, field, operation);
    }
    for own in elements(item, "parameters") {
        message.message(9, parameter(own));
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.lists(operation, &[("tags", 1)]);
    message.texts(operation, &[("summary", 2), ("description", 3), ("operationId", 5)]);
    message.lists(operation, &[("produces", 6), ("consumes", 7)]);
    for own in elements(operation, "parameters") {
        message.message(8, parameter(own));
    }
    message.nested(operation, "responses", 9, |responses| named(responses, 1, response));
    message.lists(operation, &[("schemes", 10)]);
    message.extensions(operation, 13);
    message
}

fn parameter(parameter: &Value) -> Message {
    let kind = match parameter["in"].as_str() {
        Some("body") => choice(1, body_parameter(parameter)),
        Some("path") => choice(2, choice(4, plain_parameter(parameter, [5, 6, 19, 22]))),
        _ => choice(2, choice(3, plain_parameter(parameter, [6, 7, 20, 23]))),
    };
    choice(1, kind)
}

fn body_parameter(parameter: &Value) -> Message {
    let mut message = Message::default();
    message.texts(parameter, &[("description", 1), ("name", 2), ("in", 3)]);
    message.flags(parameter, &[("required", 4)]);
    message.nested(parameter, "schema", 5, schema);
    message
}

/// Query and path parameters differ in the numbers of type, format, uniqueItems and extensions.
fn plain_parameter(parameter: &Value, [kind, format, unique, extensions]: [u64; 4]) -> Message {
    let mut message = Message::default();
    message.flags(parameter, &[("required", 1)]);
    message
        .texts(parameter, &[("in", 2), ("description", 3), ("name", 4), ("type", kind), ("format", format)]);
    message.flags(parameter, &[("uniqueItems", unique)]);
    message.extensions(parameter, extensions);
    message
}

fn response(response: &Value) -> Message {
    let mut message = Message::default();
    message.texts(response, &[("description", 1)]);
    message.nested(response, "schema", 2, |own| choice(1, schema(own)));
    choice(1, message)
}

fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    message.texts(value, &[("$ref", 1), ("format", 2), ("title", 3), ("description", 4)]);
    message.anything(value, "default", 5);
    message.texts(value, &[("pattern", 13)]);
    message.flags(value, &[("uniqueItems", 16)]);
    message.lists(value, &[("required", 19)]);
    for own in elements(value, "enum") {
        message.message(20, any(own));
    }
    message.nested(value, "additionalProperties", 21, |own| match own {
        Value::Bool(flag) => {
            let mut message = Message::default();
            message.flag(2, *flag);
            message
        }
        own => choice(1, schema(own)),
    });
    message.nested(value, "type", 22, |own| {
        let mut message = Message::default();
        message.text(1, own.as_str().unwrap_or_default());
        message
    });
    message.nested(value, "items", 23, |own| choice(1, schema(own)));
    for own in elements(value, "allOf") {
        message.message(24, schema(own));
    }
    message.nested(value, "properties", 25, |own| named(own, 1, schema));
    message.extensions(value, 31);
    message
}

/// Only API keys: what a Kubernetes document has.
fn security_definition(definition: &Value) -> Message {
    let mut message = Message::default();
    message.texts(definition, &[("type", 1), ("name", 2), ("in", 3), ("description", 4)]);
    choice(2, message)
}

fn elements<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().map(Map::iter).into_iter().flatten()
}
