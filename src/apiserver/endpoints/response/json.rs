//! JSON as bytes: the parts of a canonical object, and line breaks for people.

use bytes::{BufMut, BytesMut};
use serde_json::Value;

use apimachinery::object::Object;

/// The object with its type in front: `{"kind":"Pod","apiVersion":"v1","metadata":...}`.
pub(crate) fn write_typed(out: &mut BytesMut, api_version: &str, kind: &str, object: &Object) {
    write_head(out, api_version, kind);
    out.put_u8(b',');
    object.write_members(out);
}

/// `{"kind":"Pod","apiVersion":"v1"`, to be gone on with.
pub(crate) fn write_head(out: &mut BytesMut, api_version: &str, kind: &str) {
    for part in ["{\"kind\":\"", kind, "\",\"apiVersion\":\"", api_version, "\""] {
        out.put_slice(part.as_bytes());
    }
}

/// Only the metadata of an object: `metav1.PartialObjectMetadata`, in a version of `meta.k8s.io`.
pub(crate) fn write_partial(out: &mut BytesMut, version: &str, object: &Object) {
    write_head(out, &format!("meta.k8s.io/{version}"), "PartialObjectMetadata");
    out.put_u8(b',');
    let start = out.len();
    object.write_members(out);
    // What follows the metadata, which stands first, is taken off again.
    let end = br#""metadata":"#.len();
    out.truncate(start + end + object_len(&out[start + end..]));
    out.put_u8(b'}');
}

/// How long the JSON object is that stands first in `json`.
fn object_len(json: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in json.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    json.len()
}

/// A text as a JSON string.
pub(crate) fn write_string(out: &mut BytesMut, text: &str) {
    serde_json::to_writer(out.writer(), text).expect("a string is JSON");
}

/// A document with its fields in the order that Go writes them, which is that of its types; those that are
/// not named follow by name.
pub(crate) fn in_order(document: &Value, fields: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    write_in_order(&mut out, document, fields);
    out
}

fn write_in_order(out: &mut Vec<u8>, value: &Value, fields: &[&str]) {
    match value {
        Value::Object(members) => {
            let place = |name: &str| fields.iter().position(|field| *field == name).unwrap_or(fields.len());
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(name, _)| place(name));
            out.push(b'{');
            for (at, (name, member)) in members.into_iter().enumerate() {
                out.extend_from_slice(if at == 0 { b"\"" } else { b",\"" });
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b"\":");
                write_in_order(out, member, fields);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                out.extend_from_slice(if at == 0 { b"" } else { b"," });
                write_in_order(out, item, fields);
            }
            out.push(b']');
        }
        other => serde_json::to_writer(out, other).expect("what is JSON can be written"),
    }
}

/// Two blanks a level, as Go's `json.MarshalIndent`; the order of fields stays.
pub(crate) fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut opened = false;
    let line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    };
    for &byte in json {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            out.push(byte);
            continue;
        }
        if opened && !matches!(byte, b'}' | b']') {
            line(&mut out, depth);
        }
        match byte {
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !opened {
                    line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
        opened = matches!(byte, b'{' | b'[');
        depth += usize::from(opened);
        in_string = byte == b'"';
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn indentation_is_gos() {
        let value = json!({"a": [1, {"b": "x\"{,:\\"}], "c": {}, "d": [], "e": null});
        let indented = indent(value.to_string().as_bytes());
        assert_eq!(String::from_utf8(indented).unwrap(), serde_json::to_string_pretty(&value).unwrap());
    }

    #[test]
    fn fields_have_an_order() {
        let value = json!({"a": [{"x": 1, "name": "\"n\""}], "kind": "K", "b": {}});
        let written = in_order(&value, &["kind", "name"]);
        assert_eq!(written, br#"{"kind":"K","a":[{"name":"\"n\"","x":1}],"b":{}}"#);
    }

    #[test]
    fn metadata_is_cut_out() {
        let tree =
            json!({"metadata": {"name": "a", "annotations": {"x": "}\"{", "y": "\\"}}, "spec": {"b": {}}});
        let object = Object::from_value(&tree, vec![]).unwrap();
        let mut out = BytesMut::new();
        write_partial(&mut out, "v1", &object);
        let partial: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(partial["metadata"]["annotations"], tree["metadata"]["annotations"]);
        assert_eq!((&partial["kind"], &partial["spec"]), (&json!("PartialObjectMetadata"), &Value::Null));
    }
}
