//! `Object`: one API object as it is stored, cached and sent: its bytes, and the metadata read from them
//! once.
//!
//! The bytes are JSON without `apiVersion` and `kind` (those belong to the version a client asked for, and
//! are written in front by whoever sends), `metadata` first and `resourceVersion` first in it, so that a
//! revision is put in by splicing and never by parsing:
//! `{"metadata":{"resourceVersion":"7","name":...},"spec":...}`. A tree (`serde_json::Value`) exists only
//! while a write is being worked on; readers use views.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::time::Time;

const HEAD: &[u8] = b"{\"metadata\":{";

/// One API object at one resource version. Never changed: a change is a new object.
pub struct Object {
    /// What list, watch, garbage collection and selectors need of it.
    pub metadata: ObjectMeta,
    /// The values of its kind's selectable fields, in the order in which the kind declares them.
    pub fields: Vec<String>,
    body: Bytes,
    /// The first view that was asked for: in practice the one its controllers share.
    view: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// The part of `metadata` that machinery reads (`metav1.ObjectMeta`); annotations and managed fields stay in
/// the bytes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Unique in its namespace and resource.
    pub name: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Unique in time and space.
    pub uid: String,
    /// The store's revision of the last write; 0 when it was never stored.
    #[serde(deserialize_with = "revision")]
    pub resource_version: u64,
    /// Counts the changes of desired state.
    pub generation: i64,
    /// When the server created it.
    pub creation_timestamp: Option<Time>,
    /// When it will be gone; set by the server on a graceful delete.
    pub deletion_timestamp: Option<Time>,
    /// Seconds of grace that it was given; only beside `deletionTimestamp`.
    pub deletion_grace_period_seconds: Option<i64>,
    /// What selectors match.
    #[serde(deserialize_with = "nullable")]
    pub labels: BTreeMap<String, String>,
    /// The objects that it depends on.
    #[serde(deserialize_with = "nullable")]
    pub owner_references: Vec<OwnerReference>,
    /// Who must agree before it is removed.
    #[serde(deserialize_with = "nullable")]
    pub finalizers: Vec<String>,
}

/// `metav1.OwnerReference`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// The owner's `apiVersion`.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name, in the dependent's namespace or cluster-scoped.
    pub name: String,
    /// The owner's uid: a new object of the same name is another owner.
    pub uid: String,
    /// Whether this owner is the managing controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether foreground deletion of the owner waits for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// Bytes that are not an object.
#[derive(Debug, thiserror::Error)]
#[error("not an API object: {0}")]
pub struct Malformed(String);

#[derive(Deserialize)]
struct Head {
    metadata: ObjectMeta,
}

impl Object {
    /// Reads an object from its canonical bytes (see the module's text); `fields` are its selectable fields.
    pub fn from_bytes(body: Bytes, fields: Vec<String>) -> Result<Object, Malformed> {
        let head: Head = serde_json::from_slice(&body).map_err(|error| Malformed(error.to_string()))?;
        Ok(Object { metadata: head.metadata, fields, body, view: OnceLock::new() })
    }

    /// Makes an object of a tree; `apiVersion` and `kind` are left out.
    pub fn from_value(value: &Value, fields: Vec<String>) -> Result<Object, Malformed> {
        let revision = value["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let stored = encode_for_storage(value)?;
        Object::from_bytes(with_revision(&stored, revision.unwrap_or(0)), fields)
    }

    /// The same state under another revision: what a deletion, or leaving a selector, shows of an object.
    pub fn at_revision(&self, revision: u64) -> Object {
        let metadata = ObjectMeta { resource_version: revision, ..self.metadata.clone() };
        let body = replace_revision(&self.body, revision);
        Object { metadata, fields: self.fields.clone(), body, view: OnceLock::new() }
    }

    /// Whether it waits for initializers. Looked for in the bytes: hardly any cluster has them.
    pub fn is_uninitialized(&self) -> bool {
        const NAME: &[u8] = b"\"initializers\":";
        #[derive(Deserialize)]
        struct Head {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            initializers: Option<serde::de::IgnoredAny>,
        }
        let head = || serde_json::from_slice::<Head>(&self.body);
        self.body.windows(NAME.len()).any(|window| window == NAME)
            && head().is_ok_and(|head| head.metadata.initializers.is_some())
    }

    /// The canonical bytes: an object without `apiVersion` and `kind`.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The object as a tree, without `apiVersion` and `kind`.
    pub fn to_value(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the bytes were read as JSON when the object was made")
    }

    /// Reads the fields that `T` names. The first type asked for is kept, so controllers that share one view
    /// type parse once per object; any other type is parsed each time.
    ///
    /// A field of an unexpected type is an error of the caller's view: stored objects are validated.
    pub fn view<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Arc<T> {
        if let Some(view) = self.view.get() {
            if let Ok(view) = view.clone().downcast::<T>() {
                return view;
            }
            return Arc::new(self.parse());
        }
        let view: Arc<T> = Arc::new(self.parse());
        let _ = self.view.set(view.clone());
        view
    }

    fn parse<T: DeserializeOwned>(&self) -> T {
        let text = || String::from_utf8_lossy(&self.body).into_owned();
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{}: {error}: {}", std::any::type_name::<T>(), text()))
    }

    /// Whether deletion has begun.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// `namespace/name`, or `name` for a cluster-scoped object: the key of client-go's stores and queues.
    pub fn key(&self) -> String {
        object_key(&self.metadata.namespace, &self.metadata.name)
    }

    /// The owner that manages this object (`metav1.GetControllerOf`).
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// Bytes that this object holds, for accounting.
    pub fn size_bytes(&self) -> usize {
        self.body.len()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.metadata.resource_version)
    }
}

/// client-go's `MetaNamespaceKeyFunc`.
pub fn object_key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// client-go's `SplitMetaNamespaceKey`: namespace (empty when there is none) and name.
pub fn split_key(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

/// The bytes to store: canonical, without `resourceVersion`, which is not known before the write.
pub fn encode_for_storage(value: &Value) -> Result<Bytes, Malformed> {
    let Some(object) = value.as_object() else { return Err(Malformed("not a JSON object".into())) };
    let Some(Value::Object(metadata)) = object.get("metadata") else {
        return Err(Malformed("metadata is missing".into()));
    };
    let mut out = BytesMut::with_capacity(1024).writer();
    out.get_mut().put_slice(HEAD);
    write_members(&mut out, metadata, |name| name != "resourceVersion", false);
    out.get_mut().put_u8(b'}');
    write_members(&mut out, object, |name| !matches!(name, "metadata" | "apiVersion" | "kind"), true);
    out.get_mut().put_u8(b'}');
    Ok(out.into_inner().freeze())
}

/// Canonical bytes: what was stored, with the revision that stored it.
pub fn with_revision(stored: &[u8], revision: u64) -> Bytes {
    let rest = stored.strip_prefix(HEAD).unwrap_or(b"}}");
    let separator: &[u8] = if rest.first() == Some(&b'}') { b"" } else { b"," };
    let text = revision.to_string();
    let mut out = BytesMut::with_capacity(stored.len() + text.len() + 24);
    out.put_slice(HEAD);
    out.put_slice(b"\"resourceVersion\":\"");
    out.put_slice(text.as_bytes());
    out.put_slice(b"\"");
    out.put_slice(separator);
    out.put_slice(rest);
    out.freeze()
}

/// `body` is canonical: its revision stands in front.
fn replace_revision(body: &[u8], revision: u64) -> Bytes {
    const REVISION: &[u8] = b"\"resourceVersion\":\"";
    let rest = body.strip_prefix(HEAD).and_then(|rest| rest.strip_prefix(REVISION)).unwrap_or_default();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = revision.to_string();
    let mut out = BytesMut::with_capacity(body.len() + text.len());
    for part in [HEAD, REVISION, text.as_bytes(), &rest[digits..]] {
        out.put_slice(part);
    }
    out.freeze()
}

fn write_members(
    out: &mut impl std::io::Write,
    map: &Map<String, Value>,
    keep: fn(&str) -> bool,
    after: bool,
) {
    let mut separator = after;
    for (name, value) in map.iter().filter(|(name, _)| keep(name)) {
        if separator {
            out.write_all(b",").expect("memory does not refuse");
        }
        separator = true;
        serde_json::to_writer(&mut *out, name).expect("a string is JSON");
        out.write_all(b":").expect("memory does not refuse");
        serde_json::to_writer(&mut *out, value).expect("a tree is JSON");
    }
}

fn revision<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = Option::<std::borrow::Cow<'de, str>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(text.parse().unwrap_or(0))
}

/// `null` reads as the default, as it does in Go.
pub fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_revision_is_spliced_in_front() {
        let tree = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "resourceVersion": "3"}, "data": {"k": "v"}});
        let stored = encode_for_storage(&tree).unwrap();
        assert_eq!(&stored[..], br#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#);
        let body = with_revision(&stored, 12);
        assert_eq!(&body[..], br#"{"metadata":{"resourceVersion":"12","name":"a"},"data":{"k":"v"}}"#);
        let object = Object::from_bytes(body, vec![]).unwrap();
        assert_eq!((object.metadata.resource_version, object.key()), (12, "a".to_owned()));
        let later = object.at_revision(345);
        assert_eq!(
            &later.body()[..],
            br#"{"metadata":{"resourceVersion":"345","name":"a"},"data":{"k":"v"}}"#
        );
        assert_eq!(later.metadata.resource_version, 345);
    }

    #[test]
    fn an_object_without_metadata_is_malformed() {
        assert!(encode_for_storage(&json!({"data": {}})).is_err());
        assert!(Object::from_bytes(Bytes::from_static(b"[]"), vec![]).is_err());
    }
}
