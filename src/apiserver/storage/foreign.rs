//! Values that somebody else has put: etcd's other clients, or upstream's apiserver, as JSON with kind and
//! version, or as protobuf. They are read into the form in which this apiserver keeps objects.

use bytes::Bytes;
use serde_json::Value;

use apimachinery::object::{Malformed, encode_for_storage};
use apimachinery::protobuf;
use apimachinery::schema::Schemas;
use apis::kind::Kind;

/// What a value begins with that this apiserver has put as JSON.
const OWN: &[u8] = b"{\"metadata\":{";
/// What JSON begins with that this apiserver has put where others read it: Go writes the kind of types first.
const TOLD_TO_OTHERS: &[u8] = b"{\"apiVersion\":";
/// What protobuf begins with.
const PROTOBUF: &[u8] = b"k8s\0";

/// The value in this apiserver's own form; at once, if it is in that.
///
/// # Errors
/// What is neither JSON nor protobuf of that kind.
pub(super) fn own_form(kind: &Kind, value: Bytes) -> Result<Bytes, Malformed> {
    if value.starts_with(OWN) {
        return Ok(value);
    }
    if value.starts_with(TOLD_TO_OTHERS)
        && !kind.is_custom
        && let Some(rest) = value.strip_prefix(&head(kind)[..]).filter(|rest| rest.starts_with(&OWN[1..]))
    {
        return Ok([b"{", rest].concat().into());
    }
    let tree = if value.starts_with(PROTOBUF) { message(kind, &value)? } else { json(&value)? };
    encode_for_storage(&tree)
}

/// The object as JSON that tells its kind and version, as others who read the same etcd expect it; `value` is
/// its own form.
pub(super) fn as_json(kind: &Kind, value: &Bytes) -> Bytes {
    [&head(kind)[..], &value[1..]].concat().into()
}

fn head(kind: &Kind) -> Vec<u8> {
    format!("{{\"apiVersion\":\"{}\",\"kind\":\"{}\",", kind.group_version, kind.kind).into_bytes()
}

fn json(value: &[u8]) -> Result<Value, Malformed> {
    serde_json::from_slice(value).map_err(|error| Malformed::new(error.to_string()))
}

fn message(kind: &Kind, value: &[u8]) -> Result<Value, Malformed> {
    let wrong = |error: protobuf::ProtobufError| Malformed::new(error.to_string());
    let envelope = protobuf::open(value).map_err(wrong)?;
    let schema =
        Schemas::lookup(&kind.definition).ok_or_else(|| Malformed::new("its kind has no protobuf"))?;
    let mut tree = protobuf::decode(schema, envelope.raw).map_err(wrong)?;
    if let Some(metadata) = tree.as_object_mut() {
        metadata.entry("metadata").or_insert_with(|| Value::Object(Default::default()));
    }
    Ok(tree)
}

/// The object as protobuf (`--storage-media-type=application/vnd.kubernetes.protobuf`); None if its kind has
/// none, as custom ones.
pub(super) fn as_protobuf(kind: &Kind, object: &Value) -> Option<Bytes> {
    let schema = Schemas::lookup(&kind.definition).filter(|_| !kind.is_custom)?;
    let mut stored = object.clone();
    if let Some(metadata) = stored.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    let mut message = Vec::new();
    protobuf::encode(schema, &stored, &mut message).ok()?;
    let mut out = Vec::with_capacity(message.len() + 64);
    let version = kind.group_version.to_string();
    protobuf::seal(&mut out, &version, &kind.kind, |out| out.append(&mut message));
    Some(out.into())
}
