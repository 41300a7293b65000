//! Answers in Kubernetes' protobuf: objects, lists and events, each in an envelope that names its kind
//! (`runtime/serializer/protobuf`).

use bytes::{BufMut, BytesMut};
use serde_json::{Value, json};

use super::json::write_partial;
use apimachinery::object::Object;
use apimachinery::protobuf::{ProtobufError, encode, encode_document, seal, write_bytes, write_nested};
use apimachinery::schema::{Schema, Schemas};
use apimachinery::status::Status;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// How the objects of one answer are written.
pub(crate) struct Messages {
    /// `apiVersion` on the envelopes.
    pub api_version: String,
    /// `kind` on the envelope of an object.
    pub kind: String,
    /// `kind` on the envelope of a list.
    pub list_kind: String,
    /// What an object is written by; nothing where only its metadata is.
    schema: Option<&'static Schema>,
}

impl Messages {
    /// Of the type of that name in OpenAPI.
    ///
    /// # Errors
    /// 406 for a type that no message is known of.
    pub(crate) fn of(
        api_version: String,
        kind: &str,
        list_kind: &str,
        definition: &str,
    ) -> Result<Messages, Status> {
        let schema = Schemas::lookup(definition).unwrap_or(&Schema::FREE);
        encode(schema, &Value::Null, &mut Vec::new()).map_err(|error| not_acceptable(&error))?;
        Ok(Messages { api_version, kind: kind.into(), list_kind: list_kind.into(), schema: Some(schema) })
    }

    /// `metav1.PartialObjectMetadata`, in a version of `meta.k8s.io`.
    pub(crate) fn of_metadata(version: &str) -> Messages {
        Messages {
            api_version: format!("meta.k8s.io/{version}"),
            kind: "PartialObjectMetadata".into(),
            list_kind: "PartialObjectMetadataList".into(),
            schema: None,
        }
    }

    /// One object.
    pub(crate) fn object(&self, out: &mut BytesMut, object: &Object) {
        self.sealed(out, &self.kind, |message| self.write(message, object));
    }

    /// A list; `metadata` is JSON.
    pub(crate) fn list<'o>(
        &self,
        out: &mut BytesMut,
        metadata: &str,
        items: impl Iterator<Item = &'o Object>,
    ) {
        let metadata: Value = serde_json::from_str(metadata).unwrap_or_default();
        self.sealed(out, &self.list_kind, |list| {
            write_nested(list, 1, |message| write_as("ListMeta", &metadata, message));
            for object in items {
                write_nested(list, 2, |message| self.write(message, object));
            }
        });
    }

    /// An object of the kind of which nothing but some metadata is known: a bookmark.
    pub(crate) fn bare(&self, out: &mut BytesMut, metadata: &Value) {
        self.sealed(out, &self.kind, |message| match self.schema {
            Some(schema) => {
                encode(schema, &json!({"metadata": metadata}), message).expect("it was asked for at first");
            }
            None => write_nested(message, 1, |message| write_as("ObjectMeta", metadata, message)),
        });
    }

    fn sealed(&self, out: &mut BytesMut, kind: &str, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        seal(&mut bytes, &self.api_version, kind, write);
        out.put_slice(&bytes);
    }

    fn write(&self, message: &mut Vec<u8>, object: &Object) {
        match self.schema {
            Some(schema) => {
                encode(schema, &object.to_value(), message).expect("it was asked for at first");
            }
            None => {
                let mut partial = BytesMut::new();
                write_partial(&mut partial, "v1", object);
                let partial: Value = serde_json::from_slice(&partial).unwrap_or_default();
                write_nested(message, 1, |out| write_as("ObjectMeta", &partial["metadata"], out));
            }
        }
    }
}

/// What happened (`metav1.WatchEvent`) around an object in its envelope.
pub(crate) fn event(event_type: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len() + 32);
    write_bytes(&mut out, 1, event_type.as_bytes());
    write_nested(&mut out, 2, |raw| write_bytes(raw, 1, object));
    out
}

/// A document of the machinery, such as a list of groups.
///
/// # Errors
/// 406 for what is no type of `meta/v1`.
pub(crate) fn document(document: &Value) -> Result<Vec<u8>, Status> {
    encode_document(document).map_err(|error| not_acceptable(&error))
}

fn write_as(kind: &str, value: &Value, out: &mut Vec<u8>) {
    encode(Schemas::reference(&format!("{META}.{kind}")), value, out).expect("it has a message");
}

fn not_acceptable(error: &ProtobufError) -> Status {
    Status::failure(406, "NotAcceptable", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_holds_an_envelope() {
        assert_eq!(event("ADDED", b"k8s"), b"\x0a\x05ADDED\x12\x05\x0a\x03k8s");
    }

    #[test]
    fn documents_name_themselves() {
        let versions = json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []});
        assert_eq!(
            document(&versions).unwrap(),
            b"k8s\0\x0a\x0f\x0a\0\x12\x0bAPIVersions\x12\x04\x0a\x02v1\x1a\0\x22\0"
        );
        assert_eq!(document(&json!({"kind": "Table"})).unwrap_err().code, 406);
    }
}
