//! Protobuf bodies: `application/vnd.kubernetes.protobuf` in, the tree that JSON would have been out. Pure
//! data.
//!
//! client-go's typed clients have sent their objects so since 1.32, `kubectl create deployment` among them.
//! An envelope (`runtime.Unknown` behind four bytes of magic) names the kind; the fields are numbered as in
//! upstream's `generated.proto`, which `manifests/protobuf/messages.tsv` keeps. Answers are never written
//! so: every client accepts JSON as well. Fields with unknown numbers are passed over, as protobuf has it.

mod messages;
mod wire;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::DateTime;
use serde_json::{Map, Value, json};

use super::time::{rfc3339, rfc3339_micro};
use messages::{Arity, Field, Message, Type};
use wire::{Reader, Wire};

/// Its media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
const MAGIC: &[u8] = b"k8s\0";
/// Messages in messages; deeper ones are nobody's object.
const MAX_DEPTH: usize = 64;

/// A body that cannot be read; the text is in upstream's words where it has any.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

/// An object with its `apiVersion` and `kind`; `definition` is the OpenAPI name of the kind that is
/// expected. A body that says another kind gives an object with nothing else in it, for the caller to
/// refuse.
///
/// # Errors
/// [`Malformed`].
pub fn decode(body: &[u8], kind: &str, definition: &str) -> Result<Value, Malformed> {
    let Some(envelope) = body.strip_prefix(MAGIC) else {
        let text = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        return Err(Malformed(text.into()));
    };
    let (mut type_meta, mut raw) = (&b""[..], &b""[..]);
    for field in Reader::new(envelope) {
        match field? {
            (1, Wire::Bytes(bytes)) => type_meta = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let mut object = Map::new();
    for field in Reader::new(type_meta) {
        match field? {
            (1, Wire::Bytes(bytes)) => object.insert("apiVersion".into(), text(bytes)?),
            (2, Wire::Bytes(bytes)) => object.insert("kind".into(), text(bytes)?),
            _ => None,
        };
    }
    let says_other =
        object.get("kind").and_then(Value::as_str).is_some_and(|given| !given.is_empty() && given != kind);
    if !says_other {
        let message = messages::find(definition);
        let message = message.ok_or_else(|| Malformed(format!("{kind} has no protobuf form")))?;
        read_message(message, raw, &mut object, 0)?;
    }
    Ok(Value::Object(object))
}

fn read_message(
    message: &Message,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), Malformed> {
    if depth > MAX_DEPTH {
        return Err(Malformed("proto: exceeded max recursion depth".into()));
    }
    for field in Reader::new(bytes) {
        let (number, wire) = field?;
        let Some(field) = message.field(number) else { continue };
        if let (Type::Message(name), true) = (&field.kind, field.is_inline()) {
            let inline = messages::find(name).ok_or_else(|| unknown(name))?;
            read_message(inline, wire.bytes()?, object, depth + 1)?;
            continue;
        }
        read_field(field, wire, object, depth)?;
    }
    Ok(())
}

fn read_field(
    field: &Field,
    wire: Wire,
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), Malformed> {
    match field.arity {
        Arity::One => {
            object.insert(field.name.into(), read_value(&field.kind, wire, depth)?);
        }
        Arity::List => {
            let value = read_value(&field.kind, wire, depth)?;
            let list = object.entry(field.name).or_insert_with(|| json!([]));
            list.as_array_mut().into_iter().for_each(|list| list.push(value.clone()));
        }
        Arity::Map => {
            let (mut key, mut value) = (String::new(), None);
            for entry in Reader::new(wire.bytes()?) {
                match entry? {
                    (1, wire) => key = text(wire.bytes()?)?.as_str().unwrap_or_default().into(),
                    (2, wire) => value = Some(read_value(&field.kind, wire, depth)?),
                    _ => {}
                }
            }
            let value = value.unwrap_or_else(|| field.kind.zero());
            let map = object.entry(field.name).or_insert_with(|| json!({}));
            map.as_object_mut().into_iter().for_each(|map| {
                map.insert(key.clone(), value.clone());
            });
        }
    }
    Ok(())
}

fn read_value(kind: &Type, wire: Wire, depth: usize) -> Result<Value, Malformed> {
    Ok(match kind {
        Type::String => text(wire.bytes()?)?,
        Type::Int => wire.integer()?.into(),
        Type::Bool => (wire.integer()? != 0).into(),
        Type::Double => wire.double()?.into(),
        Type::Bytes => BASE64_STANDARD.encode(wire.bytes()?).into(),
        Type::Raw => raw(wire.bytes()?)?,
        Type::Quantity => first(wire.bytes()?, 1)?.map_or(Ok("".into()), |wire| text(wire.bytes()?))?,
        Type::IntOrString => int_or_string(wire.bytes()?)?,
        Type::Time { micro } => time(wire.bytes()?, *micro)?,
        Type::Message(name) => {
            let message = messages::find(name).ok_or_else(|| unknown(name))?;
            let mut object = Map::new();
            read_message(message, wire.bytes()?, &mut object, depth + 1)?;
            Value::Object(object)
        }
    })
}

/// The last field of a number.
fn first(bytes: &[u8], number: u32) -> Result<Option<Wire<'_>>, Malformed> {
    let mut found = None;
    for field in Reader::new(bytes) {
        let (given, wire) = field?;
        if given == number {
            found = Some(wire);
        }
    }
    Ok(found)
}

/// `runtime.RawExtension`, `metav1.FieldsV1`: JSON as it was sent.
fn raw(bytes: &[u8]) -> Result<Value, Malformed> {
    let Some(wire) = first(bytes, 1)? else { return Ok(Value::Null) };
    serde_json::from_slice(wire.bytes()?).map_err(|error| Malformed(error.to_string()))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, Malformed> {
    let is_string = first(bytes, 1)?.map_or(Ok(0), |wire| wire.integer())? == 1;
    match first(bytes, if is_string { 3 } else { 2 })? {
        Some(wire) if is_string => text(wire.bytes()?),
        Some(wire) => Ok(wire.integer()?.into()),
        None if is_string => Ok("".into()),
        None => Ok(0.into()),
    }
}

/// No time at all is an empty message, and `null` in JSON.
fn time(bytes: &[u8], micro: bool) -> Result<Value, Malformed> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let number = |wire: Option<Wire>| wire.map_or(Ok(0), |wire| wire.integer());
    let (seconds, nanos) = (number(first(bytes, 1)?)?, number(first(bytes, 2)?)?);
    let nanos = u32::try_from(nanos).unwrap_or(0);
    let time =
        DateTime::from_timestamp(seconds, nanos).ok_or_else(|| Malformed("time out of range".into()))?;
    Ok(if micro { rfc3339_micro(time) } else { rfc3339(time) }.into())
}

fn text(bytes: &[u8]) -> Result<Value, Malformed> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(_) => Err(Malformed("proto: a string contains invalid UTF-8".into())),
    }
}

fn unknown(name: &str) -> Malformed {
    Malformed(format!("{name} has no protobuf form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(mut value: u64, out: &mut Vec<u8>) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    fn bytes(number: u64, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        varint(number << 3 | 2, &mut out);
        varint(content.len() as u64, &mut out);
        out.extend(content);
        out
    }

    fn integer(number: u64, value: i64) -> Vec<u8> {
        let mut out = Vec::new();
        varint(number << 3, &mut out);
        varint(value as u64, &mut out);
        out
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &type_meta), bytes(2, raw), bytes(3, b""), bytes(4, b"")].concat()
    }

    #[test]
    fn an_object_is_read_by_its_field_numbers() {
        let label = [bytes(1, b"app"), bytes(2, b"web")].concat();
        let metadata = [bytes(1, b"web"), bytes(8, b""), bytes(11, &label)].concat();
        let surge = [integer(1, 1), integer(2, 0), bytes(3, b"25%")].concat();
        let rolling = bytes(2, &surge);
        let strategy = [bytes(1, b"RollingUpdate"), bytes(2, &rolling)].concat();
        let quantity = [bytes(1, b"cpu"), bytes(2, &bytes(1, b"100m"))].concat();
        let container = [bytes(1, b"c"), bytes(8, &bytes(2, &quantity))].concat();
        let template = bytes(2, &bytes(2, &container));
        let spec = [integer(1, 3), bytes(3, &template), bytes(4, &strategy), integer(5, -1)].concat();
        let body = envelope("apps/v1", "Deployment", &[bytes(1, &metadata), bytes(2, &spec)].concat());
        let decoded = decode(&body, "Deployment", "io.k8s.api.apps.v1.Deployment").unwrap();
        assert_eq!((&decoded["apiVersion"], &decoded["kind"]), (&json!("apps/v1"), &json!("Deployment")));
        assert_eq!(
            decoded["metadata"],
            json!({"name": "web", "creationTimestamp": null, "labels": {"app": "web"}})
        );
        assert_eq!(
            (&decoded["spec"]["replicas"], &decoded["spec"]["minReadySeconds"]),
            (&json!(3), &json!(-1))
        );
        assert_eq!(decoded["spec"]["strategy"]["rollingUpdate"], json!({"maxSurge": "25%"}));
        let container = &decoded["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["resources"]["requests"], json!({"cpu": "100m"}));
    }

    #[test]
    fn embedded_structs_stand_in_the_message_around_them() {
        let secret = bytes(6, &bytes(1, b"token"));
        let volume = [bytes(1, b"v"), bytes(2, &secret)].concat();
        let spec = bytes(1, &volume);
        let body = envelope("v1", "Pod", &bytes(2, &spec));
        let decoded = decode(&body, "Pod", "io.k8s.api.core.v1.Pod").unwrap();
        assert_eq!(decoded["spec"]["volumes"], json!([{"name": "v", "secret": {"secretName": "token"}}]));
    }

    #[test]
    fn bytes_and_times_are_written_as_in_json() {
        let entry = [bytes(1, b"k"), bytes(2, b"\x00\xff")].concat();
        let metadata = bytes(8, &[integer(1, 1_767_323_045), integer(2, 0)].concat());
        let body = envelope("v1", "Secret", &[bytes(1, &metadata), bytes(2, &entry)].concat());
        let decoded = decode(&body, "Secret", "io.k8s.api.core.v1.Secret").unwrap();
        assert_eq!(decoded["data"], json!({"k": "AP8="}));
        assert_eq!(decoded["metadata"]["creationTimestamp"], "2026-01-02T03:04:05Z");
    }

    #[test]
    fn garbage_is_refused() {
        let read = |body: &[u8]| decode(body, "Pod", "io.k8s.api.core.v1.Pod");
        assert!(read(b"{}").unwrap_err().to_string().ends_with("expected prefix [107 56 115 0]"));
        assert!(read(b"k8s\0\x12\xff\xff\xff").is_err());
        assert!(read(&envelope("v1", "Pod", &bytes(1, &bytes(1, b"\xff")))).is_err());
        let other = read(&envelope("v1", "Node", b"\x01\x02")).unwrap();
        assert_eq!(other, json!({"apiVersion": "v1", "kind": "Node"}));
    }
}
