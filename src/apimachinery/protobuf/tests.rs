//! What kubectl sends, every field of every type there and back, and bytes that nobody should send.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::message::definition;
use super::wire::write_int;
use super::{ProtobufError, decode, encode, json_schema, numbers, open, seal, write_bytes};
use crate::decode::{self, BodyFormat, DecodeTarget};
use crate::schema::{Schema, Schemas, Shape, complete};

const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const RECORDED: &str = include_str!("testdata/kubectl.tsv");
const ANSWERS: &str = include_str!("testdata/answers.tsv");
/// The fields of every message.
struct Table(BTreeMap<String, Vec<String>>);

impl Table {
    fn new() -> Table {
        let mut fields = BTreeMap::<String, Vec<_>>::new();
        for line in numbers::lines(&numbers::text()) {
            fields.entry(line.definition.to_owned()).or_default().push(line.field.to_owned());
        }
        Table(fields)
    }

    fn fields(&self, schema: &Schema) -> &[String] {
        self.0.get(definition(schema)).map_or(&[], Vec::as_slice)
    }
}

fn bytes(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_bytes(&mut out, number, bytes);
    out
}

fn int(number: u32, value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    write_int(&mut out, number, value);
    out
}

/// A whole body.
fn body(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    seal(&mut out, api_version, kind, |out| out.extend_from_slice(message));
    out
}

fn message(schema: &Schema, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode(schema, value, &mut out).unwrap();
    out
}

/// Definition, protobuf, JSON.
fn recorded() -> impl Iterator<Item = (&'static str, Vec<u8>, &'static str)> {
    lines(RECORDED)
}

fn lines(table: &'static str) -> impl Iterator<Item = (&'static str, Vec<u8>, &'static str)> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let [definition, protobuf, json] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        (definition, STANDARD.decode(protobuf).unwrap(), json)
    })
}

/// Decoded as a request body is.
fn as_request(definition: &str, body: &[u8], format: BodyFormat) -> Result<Value, String> {
    let schema = Schemas::reference(definition);
    let [.., package, version, kind] = *definition.split('.').collect::<Vec<_>>() else { panic!() };
    let group = match package {
        "core" => String::new(),
        "apps" | "batch" | "policy" => package.to_owned(),
        "rbac" => "rbac.authorization.k8s.io".into(),
        package => format!("{package}.k8s.io"),
    };
    let is_registered = |_: &str, version: &str, kind: &str| version == "v1" && kind != "Nothing";
    let target =
        DecodeTarget { group: &group, version, kind, schema, typed: true, is_registered: &is_registered };
    let decoded = decode::decode(&target, body, format).map_err(|error| error.to_string())?;
    assert_eq!(decoded.strict_errors, [""; 0]);
    Ok(decoded.value)
}

fn deployment(body: &[u8]) -> Result<Value, String> {
    as_request(DEPLOYMENT, body, BodyFormat::Protobuf)
}

#[test]
fn the_same_command_gives_the_same_object_in_protobuf_as_in_json() {
    for (definition, protobuf, json) in recorded() {
        let schema = Schemas::reference(definition);
        let [left, right] =
            [(protobuf.as_slice(), BodyFormat::Protobuf), (json.as_bytes(), BodyFormat::Json)].map(
                |(body, format)| {
                    let mut value = as_request(definition, body, format).unwrap();
                    complete(schema, &mut value);
                    value
                },
            );
        assert_eq!(left, right, "{definition}");
    }
}

/// What kubectl sent as protobuf, written again, is the same to the byte.
#[test]
fn what_was_read_is_written_as_it_was() {
    for (definition, protobuf, _) in recorded() {
        let schema = Schemas::reference(definition);
        let envelope = open(&protobuf).unwrap();
        let value = decode(schema, envelope.raw).unwrap();
        let again = body(&envelope.api_version, &envelope.kind, &message(schema, &value));
        assert_eq!(STANDARD.encode(again), STANDARD.encode(&protobuf), "{definition}");
    }
}

/// Every kind of value: times, quantities, maps in order, pointers to zero, JSON in bytes, choices.
#[test]
fn objects_are_written_as_go_writes_them() {
    for (definition, protobuf, json) in lines(ANSWERS) {
        let value: Value = serde_json::from_str(json).unwrap();
        let [api_version, kind] = ["apiVersion", "kind"].map(|name| value[name].as_str().unwrap());
        let ours = body(api_version, kind, &message(Schemas::reference(definition), &value));
        assert_eq!(STANDARD.encode(ours), STANDARD.encode(&protobuf), "{definition}");
    }
}

#[test]
fn zeros_go_unless_they_hang_on_a_pointer() {
    let spec = [int(1, 0), int(5, 0), int(7, 0)].concat();
    let value = deployment(&body("apps/v1", "Deployment", &bytes(2, &spec))).unwrap();
    assert_eq!(value, json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 0}}));
}

/// Every property but the name of the type, which is in the envelope.
#[test]
fn the_table_knows_the_fields_of_the_types_and_no_others() {
    let table = Table::new();
    for name in Schemas::builtin().names() {
        let schema = Schemas::reference(name);
        let numbered: Vec<&str> = table.fields(schema).iter().map(String::as_str).collect();
        for field in &numbered {
            assert!(schema.property(field).is_some(), "{name} has no {field}");
        }
        let fields = schema.fields().into_iter().flat_map(|fields| fields.iter());
        for (field, _) in fields.filter(|_| !numbered.is_empty()) {
            let is_type = matches!(field, "apiVersion" | "kind");
            assert!(numbered.contains(&field) || is_type, "{name} {field} has no number");
        }
    }
}

#[test]
fn a_type_without_numbers_is_refused_and_not_read_as_empty() {
    let schema = Schemas::reference("io.k8s.apimachinery.pkg.version.Info");
    let error = decode(schema, b"").unwrap_err().to_string();
    assert_eq!(
        error,
        "object *version.Info does not implement the protobuf marshalling interface and cannot be encoded to \
         a protobuf message"
    );
}

/// A value with every field, `depth` messages deep.
fn sample(table: &Table, schema: &Schema, depth: usize) -> Option<Value> {
    let resolved = schema.resolve();
    let name = definition(schema);
    Some(match &resolved.shape {
        Shape::Free => match name.strip_prefix(json_schema::PREFIX) {
            Some("JSONSchemaPropsOrBool") => json!(true),
            Some("JSONSchemaPropsOrArray") => json!({"type": "string"}),
            Some("JSONSchemaPropsOrStringArray") => json!(["a", "b"]),
            _ => json!({"any": [1, null, {"thing": ""}]}),
        },
        Shape::Reference(_) => unreachable!("references are resolved"),
        Shape::Object(_) if depth == 0 => return None,
        Shape::Object(_) => {
            let mut object = Map::new();
            for name in table.fields(schema) {
                let value = sample(table, schema.property(name)?, depth - 1);
                object.extend(value.map(|value| (name.clone(), value)));
            }
            Value::Object(object)
        }
        Shape::Map(values) => {
            json!({"": sample(table, values, depth)?, "b": sample(table, values, depth)?})
        }
        Shape::List(items) => json!([sample(table, items, depth)?, sample(table, items, depth)?]),
        Shape::String => json!("text"),
        Shape::Bytes => json!("AAEC/w=="),
        Shape::Time => json!("2026-01-02T03:04:05Z"),
        Shape::MicroTime => json!("2026-01-02T03:04:05.000006Z"),
        Shape::Boolean => json!(true),
        Shape::Integer32 | Shape::Integer64 => json!(-3),
        Shape::Number => json!(1.5),
        Shape::IntOrString if depth.is_multiple_of(2) => json!(-7),
        Shape::IntOrString => json!("50%"),
        Shape::Quantity => json!("100m"),
    })
}

#[test]
fn every_field_of_every_type_is_read_back() {
    let table = Table::new();
    for name in Schemas::builtin().names() {
        let schema = Schemas::reference(name);
        if schema.fields().is_none() || table.fields(schema).is_empty() {
            continue;
        }
        let mut value = sample(&table, schema, 3).unwrap();
        complete(schema, &mut value);
        let mut read = decode(schema, &message(schema, &value)).unwrap();
        complete(schema, &mut read);
        assert_eq!(read, value, "{name}");
    }
}

#[test]
fn packed_numbers_are_read_too() {
    let schema = Schemas::reference("io.k8s.api.core.v1.PodSecurityContext");
    let value = decode(schema, &[bytes(4, &[1, 2]), int(4, 3)].concat()).unwrap();
    assert_eq!(value, json!({"supplementalGroups": [1, 2, 3]}));
}

#[test]
fn unknown_fields_of_any_wire_type_are_skipped() {
    let unknown = [int(900, 5), bytes(901, b"x"), vec![0xa3, 0x38, 0x0b, 0x0c, 0xa4, 0x38]].concat();
    let message = [unknown.clone(), bytes(1, &[unknown, bytes(1, b"web")].concat())].concat();
    let value = decode(Schemas::reference(DEPLOYMENT), &message).unwrap();
    assert_eq!(value, json!({"metadata": {"name": "web"}}));
}

#[test]
fn a_body_that_is_no_protobuf_is_refused_in_upstreams_words() {
    let refused = |body: &[u8]| deployment(body).unwrap_err();
    let unrecognized = "the object provided is unrecognized (must be of type Deployment): ";
    let prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    assert_eq!(refused(b"{\"a\":1}"), format!("{unrecognized}{prefix} ({{\"a\":1}})"));
    assert_eq!(refused(b"k8s"), format!("{unrecognized}{prefix} (6b3873)"));
    assert_eq!(refused(b""), format!("{unrecognized}empty data (<empty>)"));
    assert_eq!(refused(b"k8s\0"), format!("{unrecognized}empty body (6b387300)"));
    assert_eq!(refused(b"k8s\0\x12\x05ab"), format!("{unrecognized}unexpected EOF (6b38730012056162)"));
    assert_eq!(
        refused(&body("apps/v1", "Nothing", b"")),
        "Nothing in version \"v1\" cannot be handled as a Deployment: no kind \"Nothing\" is registered for \
         version \"apps/v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
    );
}

#[test]
fn a_broken_message_is_refused_in_gogos_words() {
    let refused = |message: &[u8]| decode(Schemas::reference(DEPLOYMENT), message).unwrap_err().to_string();
    assert_eq!(refused(&int(1, 1)), "proto: wrong wireType = 0 for field Metadata");
    assert_eq!(refused(&bytes(0, b"")), "proto: Deployment: illegal tag 0 (wire type 2)");
    assert_eq!(refused(&[0x0c]), "proto: Deployment: wiretype end group for non-group");
    assert_eq!(refused(&[0x0f]), "proto: illegal wireType 7");
    assert_eq!(refused(&[0xff; 11]), "proto: integer overflow");
    assert_eq!(
        refused(&[&[0x0a][..], &[0xff; 9], &[1]].concat()),
        "proto: negative length found during unmarshaling"
    );
    assert_eq!(refused(&[0x0a, 5, 1]), "unexpected EOF");
}

#[test]
fn depth_has_a_bound() {
    let name = format!("{}JSONSchemaProps", json_schema::PREFIX);
    let not = numbers::lines(&numbers::text())
        .find_map(|line| (line.definition == name && line.field == "not").then(|| line.path[0]))
        .unwrap();
    let nested = |depth: usize| (1..depth).fold(Vec::new(), |message, _| bytes(not, &message));
    assert!(decode(Schemas::reference(&name), &nested(super::message::MAX_DEPTH)).is_ok());
    assert_eq!(
        decode(Schemas::reference(&name), &nested(super::message::MAX_DEPTH + 1)),
        Err(ProtobufError::TooDeep)
    );
}

#[test]
fn no_bytes_make_it_panic() {
    let mut state = 1_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for (definition, whole, _) in recorded() {
        for end in 0..whole.len() {
            let _ = as_request(definition, &whole[..end], BodyFormat::Protobuf);
        }
        for _ in 0..500 {
            let mut broken = whole.clone();
            for _ in 0..=draw(4) {
                let at = draw(broken.len());
                broken[at] = draw(256) as u8;
            }
            let _ = as_request(definition, &broken, BodyFormat::Protobuf);
        }
    }
    assert!(open(&[0; 64]).is_err());
}
