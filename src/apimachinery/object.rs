//! `Object`: one API object as it is stored, cached and sent: its bytes, and the metadata read from them
//! once.
//!
//! The bytes are those that the store holds: JSON without `apiVersion` and `kind` (those belong to the
//! version a client asked for), `metadata` first, and without `metadata.resourceVersion`, which is the
//! store's number of the write: `{"metadata":{"name":...},"spec":...}`. Whoever sends an object writes type
//! and revision in front by splicing, never by parsing; so store, caches and answers share one piece of
//! memory, but for objects that rest ([`Object::rest`]). A tree (`serde_json::Value`) exists only while a
//! write is being worked on; readers use views.

use std::any::Any;
use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::stored_bytes::StoredBytes;
use super::{managed_fields, pick};
use golang::go_text;
use sync::Mutex;

pub use super::object_meta::{Malformed, ObjectMeta, OwnerReference, list, nullable};
pub use golang::object_key::object_key;

/// Enough for most objects, so that writing one does not move what is written already.
const ENCODED_BYTES: usize = 4096;
const HEAD: &[u8] = b"{\"metadata\":{";

/// One API object at one resource version. Never changed: a change is a new object.
///
/// What a list needs of each of its objects stands first and together, beside the count of those who share
/// it: objects lie all over the memory, and each further place costs a wait.
#[repr(C)]
pub struct Object {
    /// How many bytes are stored.
    len: usize,
    held: Mutex<HeldObject>,
    /// What list, watch, garbage collection and selectors need of it.
    pub metadata: ObjectMeta,
    key: Arc<str>,
    /// The values of its kind's selectable fields, in the order in which the kind declares them.
    pub fields: Vec<String>,
}

/// What is held of an object for those who read it.
struct HeldObject {
    stored: StoredBytes,
    /// The first view that was asked for since it rested: in practice the one its controllers share.
    view: Option<Arc<dyn Any + Send + Sync>>,
    /// Somebody has read it since [`Object::rest`].
    is_used: bool,
    /// To pack its bytes was tried in vain.
    is_unlike: bool,
}

impl Object {
    /// Reads an object from its stored bytes (see the module's text), as the write at `revision` left it; 0:
    /// it was never stored. `paths` are those of its selectable fields.
    pub fn from_stored(stored: Bytes, revision: u64, paths: &[&str]) -> Result<Object, Malformed> {
        let read = pick::metadata_and_fields(&stored, paths);
        let (metadata, fields) = read.map_err(|error| Malformed(error.to_string()))?;
        Ok(Object::new(metadata, fields, stored, revision))
    }

    /// Makes an object of the tree whose bytes these are: nothing has to be parsed.
    pub fn of_tree(tree: &Value, stored: Bytes, revision: u64, paths: &[&str]) -> Result<Object, Malformed> {
        let metadata = ObjectMeta::of_tree(&tree["metadata"])?;
        let fields = paths.iter().map(|path| pick::text_at(tree, path)).collect();
        Ok(Object::new(metadata, fields, stored, revision))
    }

    /// Makes an object of a tree; `apiVersion` and `kind` are left out.
    pub fn from_value(value: &Value, fields: Vec<String>) -> Result<Object, Malformed> {
        let revision = value["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let object = Object::of_tree(value, encode_for_storage(value)?, revision.unwrap_or(0), &[])?;
        Ok(Object { fields, ..object })
    }

    fn new(mut metadata: ObjectMeta, fields: Vec<String>, stored: Bytes, revision: u64) -> Object {
        metadata.resource_version = revision;
        let key = object_key(&metadata.namespace, &metadata.name).into();
        Object { len: stored.len(), held: HeldObject::new(stored), metadata, key, fields }
    }

    /// This state under another revision: what a deletion, or leaving a selector, shows of an object. It
    /// shares the bytes.
    pub fn at_revision(&self, revision: u64) -> Object {
        let metadata = ObjectMeta { resource_version: revision, ..self.metadata.clone() };
        let (fields, key) = (self.fields.clone(), self.key.clone());
        Object { len: self.len, held: HeldObject::new(self.stored()), metadata, key, fields }
    }

    /// Whether it waits for initializers.
    pub fn is_uninitialized(&self) -> bool {
        self.metadata.initializers
    }

    /// This object, as the write at `revision` left it: for a writer that made it before it knew.
    pub fn written_at(mut self, revision: u64) -> Object {
        self.metadata.resource_version = revision;
        self
    }

    /// The bytes that are stored: without type and revision.
    pub fn stored(&self) -> Bytes {
        let mut held = self.held.lock();
        // Who is read again and again is not made anew each time.
        if held.is_used && matches!(held.stored, StoredBytes::Packed(_)) {
            held.stored.unpack();
        }
        held.is_used = true;
        held.stored.whole()
    }

    /// What there is of these bytes in memory, for accounting; others may have the same.
    pub fn bytes_in_memory(&self) -> Vec<Bytes> {
        self.held.lock().stored.in_memory()
    }

    /// Writes the object as JSON without `apiVersion` and `kind`.
    pub fn write(&self, out: &mut BytesMut) {
        out.put_u8(b'{');
        self.write_members(out);
    }

    /// Writes the rest of the object behind an opening brace and the type: all members and the closing
    /// brace.
    pub fn write_members(&self, out: &mut BytesMut) {
        self.write_start(out);
        out.put_slice(&self.stored_end());
    }

    /// Writes the part of that which is not stored; behind it comes [`Object::stored_end`].
    pub fn write_start(&self, out: &mut impl BufMut) {
        out.put_slice(&HEAD[1..]);
        if self.metadata.resource_version != 0 {
            out.put_slice(b"\"resourceVersion\":\"");
            let mut digits = [0; 20];
            out.put_slice(decimal(self.metadata.resource_version, &mut digits));
            out.put_slice(if self.is_bare() { b"\"" } else { b"\"," });
        }
    }

    /// What is written as it is stored: all behind the revision.
    pub fn stored_end(&self) -> Bytes {
        let mut stored = self.stored();
        stored.advance(HEAD.len());
        stored
    }

    /// Whether its metadata has nothing but the revision. What has a name has more: only of others are the
    /// bytes looked at.
    fn is_bare(&self) -> bool {
        self.metadata.name.is_empty() && self.stored_end().first() == Some(&b'}')
    }

    /// How many bytes [`Object::write`] writes.
    pub fn written_bytes(&self) -> usize {
        let Some(digits) = self.metadata.resource_version.checked_ilog10() else {
            return self.len;
        };
        let punctuation = b"\"resourceVersion\":\"\"".len() + usize::from(!self.is_bare());
        self.len + punctuation + digits as usize + 1
    }

    /// The object as a tree, without `apiVersion` and `kind`; `metadata.managedFields` as
    /// [`managed_fields::Managed`] has it.
    pub fn to_value(&self) -> Value {
        let mut tree = managed_fields::read_tree(&self.stored())
            .expect("the bytes were read as JSON when the object was made");
        if self.metadata.resource_version != 0 {
            tree["metadata"]["resourceVersion"] = self.metadata.resource_version.to_string().into();
        }
        tree
    }

    /// Whether a text stands anywhere in it: cheaper than reading it, where that would mostly be for nothing.
    pub fn mentions(&self, text: &str) -> bool {
        std::str::from_utf8(&self.stored()).is_ok_and(|stored| stored.contains(text))
    }

    /// Reads the fields that `T` names. The first type asked for is kept, so controllers that share one view
    /// type parse once per object; any other type is parsed each time.
    ///
    /// A field of an unexpected type is an error of the caller's view: stored objects are validated.
    pub fn view<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut held = self.held.lock();
        held.is_used = true;
        let Some(view) = held.view.clone() else {
            let view: Arc<T> = Arc::new(parse(&held.stored.whole()));
            held.view = Some(view.clone());
            return view;
        };
        drop(held);
        view.downcast().unwrap_or_else(|_| Arc::new(parse(&self.stored())))
    }

    /// Whether this is the view that is kept of it, which is had again by asking for it.
    pub fn is_kept_view<T: Send + Sync + 'static>(&self, view: &Arc<T>) -> bool {
        let held = self.held.lock();
        held.view.as_ref().is_some_and(|kept| std::ptr::addr_eq(Arc::as_ptr(kept), Arc::as_ptr(view)))
    }

    /// Gives back what is not needed of an object that nobody has read since this was called last: the view,
    /// when nobody has it, which takes almost as much room as the bytes; and of the bytes all but what
    /// makes them of those of `sibling`, one of those that rested before it.
    pub fn rest(&self, sibling: &mut Option<Bytes>) {
        let mut held = self.held.lock();
        if std::mem::take(&mut held.is_used) {
            return;
        }
        held.view.take_if(|view| Arc::strong_count(view) == 1);
        if held.is_unlike {
            *sibling = Some(held.stored.whole());
        } else {
            held.is_unlike = held.stored.pack(sibling);
        }
    }

    /// Whether deletion has begun.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// `namespace/name`, or `name` for a cluster-scoped object: the key of client-go's stores and queues.
    pub fn key(&self) -> String {
        self.key.as_ref().to_owned()
    }

    /// The key, shared by all who keep the object under it.
    pub fn shared_key(&self) -> &Arc<str> {
        &self.key
    }

    /// The owner that manages this object (`metav1.GetControllerOf`).
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// How many bytes are stored, at rest, too.
    pub fn size_bytes(&self) -> usize {
        self.len
    }
}

impl HeldObject {
    fn new(stored: Bytes) -> Mutex<HeldObject> {
        Mutex::new(HeldObject {
            stored: StoredBytes::Whole(stored),
            view: None,
            is_used: true,
            is_unlike: false,
        })
    }
}

fn parse<T: DeserializeOwned>(stored: &[u8]) -> T {
    let text = || String::from_utf8_lossy(stored);
    serde_json::from_slice(stored)
        .unwrap_or_else(|error| panic!("{}: {error}: {}", std::any::type_name::<T>(), text()))
}

/// Brings objects that are about to be needed into the processor's caches. They lie all over the memory:
/// looked at one right after the other the processor waits for all of them at once; each when it is its turn,
/// for one after the other.
pub fn prefetch<'a>(objects: impl Iterator<Item = &'a Arc<Object>>) {
    black_box(objects.fold(0, |seen, object| seen ^ object.len));
}

/// [`Object::stored_end`] of each; the first byte of each is brought into the caches.
pub fn stored_ends<'a>(objects: impl Iterator<Item = &'a Arc<Object>>) -> Vec<Bytes> {
    let ends: Vec<Bytes> = objects.map(|object| object.stored_end()).collect();
    black_box(ends.iter().fold(0, |seen, end| seen ^ end.first().copied().unwrap_or(0)));
    ends
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.metadata.resource_version)
    }
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
    let mut out = Vec::with_capacity(ENCODED_BYTES);
    out.extend_from_slice(HEAD);
    write_members(&mut out, metadata, |name| name != "resourceVersion", false);
    out.push(b'}');
    write_members(&mut out, object, |name| !matches!(name, "metadata" | "apiVersion" | "kind"), true);
    out.push(b'}');
    // Kept for as long as the object lives: without the room that is left over.
    Ok(Bytes::copy_from_slice(&out))
}

/// The digits of a number, without an allocation.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    while at == digits.len() || number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    &digits[at..]
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
        match name.as_str() {
            "managedFields" if !after => managed_fields::write_entries(out, value),
            _ => write_json(&mut *out, value).map_err(Into::into),
        }
        .expect("memory does not refuse");
    }
}

/// Numbers as Go writes them: a whole one has no point.
struct GoNumbers;

impl serde_json::ser::Formatter for GoNumbers {
    fn write_f64<W: ?Sized + std::io::Write>(&mut self, out: &mut W, value: f64) -> std::io::Result<()> {
        out.write_all(go_text::float(value).as_bytes())
    }
}

fn write_json(out: impl std::io::Write, value: &Value) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, GoNumbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(object: &Object) -> String {
        let mut out = BytesMut::new();
        object.write(&mut out);
        assert_eq!(out.len(), object.written_bytes());
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn a_list_that_is_kept_has_no_room_for_more() {
        let metadata = |text: &str| serde_json::from_str::<ObjectMeta>(text).unwrap();
        let one = metadata(r#"{"finalizers": ["a"]}"#).finalizers;
        let three = metadata(r#"{"finalizers": ["a", "b", "c"]}"#).finalizers;
        assert_eq!((&one[..], one.capacity()), (&["a".to_owned()][..], 1));
        assert_eq!((three.len(), three.capacity()), (3, 3));
        for nothing in [r#"{"finalizers": null}"#, r#"{"finalizers": []}"#, "{}"] {
            assert_eq!(metadata(nothing).finalizers.capacity(), 0);
        }
        assert!(serde_json::from_str::<ObjectMeta>(r#"{"finalizers": "a"}"#).is_err());
    }

    #[test]
    fn at_rest_it_has_no_view_that_nobody_has_and_packed_bytes() {
        let object = |name: &str| {
            let tree = json!({"metadata": {"name": name}, "data": {"k": "value ".repeat(200)}});
            Object::from_value(&tree, vec![]).unwrap()
        };
        let (first, object) = (object("a"), object("b"));
        let is_packed = |object: &Object| object.bytes_in_memory()[0].len() < 100;
        let rest = || {
            let mut sibling = None;
            [&first, &object].into_iter().for_each(|object| object.rest(&mut sibling));
        };
        let whole = written(&object);
        let view = object.view::<Value>();
        rest();
        assert!(!is_packed(&object), "it was read since");
        rest();
        assert!(object.is_kept_view(&view), "somebody has it");
        assert!(is_packed(&object) && !is_packed(&first));
        drop(view);
        rest();
        assert!(object.held.lock().view.is_none());
        let again = object.view::<Value>();
        assert!(object.is_kept_view(&again));
        assert_eq!(again["metadata"]["name"], "b");
        let of_other_type = object.view::<ObjectMeta>();
        assert!(
            !object.is_kept_view(&of_other_type) && object.is_kept_view(&again),
            "the first type is kept"
        );
        assert_eq!(written(&object), whole);
        assert!(!is_packed(&object), "it was read again and again");
    }

    #[test]
    fn a_revision_is_spliced_in_front() {
        let tree = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "resourceVersion": "3"}, "data": {"k": "v"}});
        let stored = encode_for_storage(&tree).unwrap();
        assert_eq!(&stored[..], br#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#);
        let read = Object::from_stored(stored.clone(), 12, &["data.k", "data.none"]).unwrap();
        let of_tree = Object::of_tree(&tree, stored, 12, &["data.k", "data.none"]).unwrap();
        for object in [&read, &of_tree] {
            let text = r#"{"metadata":{"resourceVersion":"12","name":"a"},"data":{"k":"v"}}"#;
            assert_eq!((written(object).as_str(), &*object.key()), (text, "a"));
            assert_eq!(
                (object.metadata.resource_version, &object.fields[..]),
                (12, &["v".into(), "".into()][..])
            );
            assert_eq!(object.to_value(), serde_json::from_str::<Value>(text).unwrap());
        }
        assert_eq!(read.metadata, of_tree.metadata);
        let later = read.at_revision(345);
        assert_eq!(written(&later), r#"{"metadata":{"resourceVersion":"345","name":"a"},"data":{"k":"v"}}"#);
        assert_eq!(later.metadata.resource_version, 345);
        let nameless = Object::from_stored(Bytes::from_static(b"{\"metadata\":{}}"), 0, &[]).unwrap();
        assert_eq!(written(&nameless), "{\"metadata\":{}}");
        assert_eq!(written(&nameless.written_at(7)), r#"{"metadata":{"resourceVersion":"7"}}"#);
    }

    #[test]
    fn metadata_is_read_from_a_tree_as_from_its_text() {
        let whole = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "3", "generation": 2,
            "creationTimestamp": "2026-11-20T12:00:00Z", "deletionTimestamp": "2026-11-20T12:00:01.5+01:00",
            "deletionGracePeriodSeconds": 5, "labels": {"b": "c", "a": ""}, "initializers": {"pending": []},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "v", "controller": true}],
            "finalizers": ["f"], "annotations": {"x": "y"}, "managedFields": [{"manager": "m"}]});
        let wrong = [Value::Null, json!(1), json!("x"), json!([1]), json!({"a": 1})];
        let mut trees = vec![whole.clone(), json!({}), Value::Null];
        for name in whole.as_object().unwrap().keys() {
            for value in &wrong {
                let mut tree = whole.clone();
                tree[name] = value.clone();
                trees.push(tree);
            }
        }
        for tree in trees {
            let of_tree = ObjectMeta::of_tree(&tree).ok();
            let of_text = serde_json::from_str::<ObjectMeta>(&tree.to_string()).ok();
            assert_eq!(of_tree, of_text, "{tree}");
        }
    }

    #[test]
    fn an_object_without_metadata_is_malformed() {
        assert!(encode_for_storage(&json!({"data": {}})).is_err());
        for text in ["[]", "{}", r#"{"data":{}}"#, r#"{"data":{},"metadata":{}}"#, r#"{"metadata":{}"#] {
            assert!(Object::from_stored(text.into(), 1, &[]).is_err(), "{text}");
        }
    }
}
