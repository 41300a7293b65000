//! `Printer`: the bytes of objects, lists and events in the form that the client asked for
//! (`endpoints/handlers/response.go`, `transformObject`).

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use super::json::{write_head, write_partial, write_string, write_typed};
use super::messages::{self, Messages};
use super::negotiation::{Output, Transform};
use super::table::{IncludeObject, Table, scale_columns};
use apimachinery::accept::MediaType;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::watch::{Bookmark, WatchEvent};
use apis::kind::Kind;
use apis::scale::scale_of;
use apis::table::{CellsSource, Column};
use clock::Clock;

/// What is about as much as stands around an object in an event: one that is written needs no second buffer.
const EVENT_BYTES: usize = 160;

/// A list that is its items one after the other: what stands in front of them, and how each is written.
#[derive(Clone)]
pub(crate) struct Pieces {
    /// What stands in front of the items.
    pub head: Bytes,
    /// What an item begins with instead of a brace, if it says its type.
    item_type: Bytes,
}

/// Writes what one request is answered with.
pub(crate) struct Printer {
    kind: Arc<Kind>,
    /// `apiVersion` of what is written.
    api_version: String,
    /// The columns of a Scale, where that is what is written.
    scale: Option<(Vec<Column>, CellsSource)>,
    output: Output,
    /// What writes it, where it is protobuf.
    messages: Option<Messages>,
    include: IncludeObject,
    clock: Clock,
    /// A watch writes the columns of its tables once.
    with_columns: bool,
}

impl Printer {
    /// For objects of `kind`, or for its Scales.
    ///
    /// # Errors
    /// 406 for protobuf of a kind that has no message.
    pub(crate) fn new(
        kind: &Arc<Kind>,
        is_scale: bool,
        output: Output,
        include: IncludeObject,
        clock: Clock,
    ) -> Result<Printer, Status> {
        let scale = is_scale.then(|| scale_columns(kind.is_custom));
        let api_version = if is_scale { scale_of(kind).0.to_string() } else { kind.api_version() };
        let (kind, messages, with_columns) = (kind.clone(), None, true);
        let mut printer =
            Printer { kind, api_version, scale, output, messages, include, clock, with_columns };
        if printer.output.media_type == MediaType::Protobuf {
            printer.messages = Some(printer.new_messages()?);
        }
        Ok(printer)
    }

    fn new_messages(&self) -> Result<Messages, Status> {
        if let Transform::PartialMetadata { version, .. } = &self.output.transform {
            return Ok(Messages::of_metadata(version));
        }
        let (api_version, kind) = self.type_meta();
        let definition = match &self.scale {
            Some(_) => scale_of(&self.kind).1,
            None => self.kind.definition.to_string(),
        };
        Messages::of(api_version.to_owned(), kind, &self.kind.list_kind, &definition)
    }

    /// One object.
    pub(crate) fn object(&self, out: &mut BytesMut, object: &Arc<Object>) {
        if let Some(messages) = &self.messages {
            return messages.object(out, object);
        }
        let (api_version, kind) = self.type_meta();
        match &self.output.transform {
            Transform::None => write_typed(out, api_version, kind, object),
            Transform::PartialMetadata { version, .. } => write_partial(out, version, object),
            Transform::Table(version) => {
                let metadata = format!("\"resourceVersion\":\"{}\"", object.metadata.resource_version);
                let rows = std::slice::from_ref(object);
                self.table(version, api_version).write(out, &metadata, self.with_columns, rows);
            }
        }
    }

    /// A list. Items of built-in kinds carry no type, those of custom kinds do: as upstream's typed and
    /// unstructured lists.
    pub(crate) fn list(&self, out: &mut BytesMut, list: &List) {
        if let Some(messages) = &self.messages {
            let metadata = format!("{{{}}}", list_metadata(list));
            return messages.list(out, &metadata, list.items.iter().map(|object| &**object));
        }
        match &self.output.transform {
            Transform::Table(version) => {
                let (metadata, api_version) = (list_metadata(list), self.type_meta().0);
                self.table(version, api_version).write(out, &metadata, true, &list.items);
            }
            Transform::PartialMetadata { version, .. } => {
                write_head(out, &format!("meta.k8s.io/{version}"), "PartialObjectMetadataList");
                write_items(out, &list_metadata(list), list, |out, object| {
                    write_partial(out, version, object)
                });
            }
            Transform::None => {
                let pieces = self.pieces(list);
                out.put_slice(&pieces.head);
                list.items.iter().enumerate().for_each(|(at, object)| pieces.write_item(out, at, object));
                out.put_slice(Pieces::TAIL);
            }
        }
    }

    /// How a list is written piece by piece; None where it is not its items, one after the other.
    pub(crate) fn list_in_pieces(&self, list: &List) -> Option<Pieces> {
        (self.output.transform == Transform::None && self.messages.is_none()).then(|| self.pieces(list))
    }

    fn pieces(&self, list: &List) -> Pieces {
        let (api_version, kind) = self.type_meta();
        let mut head = BytesMut::new();
        write_head(&mut head, api_version, &self.kind.list_kind);
        // What is no Go type has the field even where it is empty.
        let no_more =
            if self.kind.is_custom && list.continue_token.is_empty() { ",\"continue\":\"\"" } else { "" };
        for part in [",\"metadata\":{", &list_metadata(list), no_more, "},\"items\":["] {
            head.put_slice(part.as_bytes());
        }
        let mut item_type = BytesMut::new();
        if self.kind.is_custom {
            write_head(&mut item_type, api_version, kind);
            item_type.put_u8(b',');
        }
        Pieces { head: head.freeze(), item_type: item_type.freeze() }
    }

    /// One event of a watch: as a line, or as a message of protobuf, whose end nothing tells.
    pub(crate) fn event(&mut self, out: &mut BytesMut, event: &WatchEvent) {
        if let Some(messages) = &self.messages {
            let message = messages::event(event.type_name(), &self.content(messages, event));
            return out.put_slice(&message);
        }
        if let Some(object) = event.object().filter(|_| self.output.transform == Transform::None) {
            out.reserve(object.written_bytes() + EVENT_BYTES);
        }
        for part in ["{\"type\":\"", event.type_name(), "\",\"object\":"] {
            out.put_slice(part.as_bytes());
        }
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                self.object(out, object);
                self.with_columns = false;
            }
            WatchEvent::Bookmark(bookmark) => match &self.output.transform {
                Transform::Table(_) => {
                    self.object(out, &bare(*bookmark));
                    self.with_columns = false;
                }
                _ => self.bookmark(out, *bookmark),
            },
            WatchEvent::Error(status) => {
                serde_json::to_writer(out.writer(), status).expect("a status is JSON");
            }
        }
        out.put_slice(b"}\n");
    }

    /// What an event is about, in its envelope.
    fn content(&self, messages: &Messages, event: &WatchEvent) -> BytesMut {
        let mut content = BytesMut::new();
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                messages.object(&mut content, object);
            }
            WatchEvent::Bookmark(bookmark) => messages.bare(&mut content, &bookmark_metadata(*bookmark)),
            WatchEvent::Error(status) => {
                content.put_slice(&messages::document(&status.to_value()).expect("a status has a message"));
            }
        }
        content
    }

    /// An object of the kind with nothing but a revision.
    fn bookmark(&self, out: &mut BytesMut, bookmark: Bookmark) {
        let (api_version, kind) = self.type_meta();
        match &self.output.transform {
            Transform::PartialMetadata { version, .. } => {
                write_head(out, &format!("meta.k8s.io/{version}"), "PartialObjectMetadata");
            }
            _ => write_head(out, api_version, kind),
        }
        let revision = bookmark.resource_version;
        out.put_slice(format!(",\"metadata\":{{\"resourceVersion\":\"{revision}\"").as_bytes());
        if bookmark.initial_events_end {
            out.put_slice(b",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}");
        }
        out.put_slice(b"}}");
    }

    /// `apiVersion` and `kind` of what is written.
    fn type_meta(&self) -> (&str, &str) {
        (&self.api_version, if self.scale.is_some() { "Scale" } else { &self.kind.kind })
    }

    fn table<'a>(&'a self, version: &'a str, api_version: &'a str) -> Table<'a> {
        let (columns, cells) = match &self.scale {
            Some((columns, cells)) => (&columns[..], cells),
            None => (&self.kind.columns[..], &self.kind.cells),
        };
        let type_meta = (api_version, self.type_meta().1);
        Table { columns, cells, type_meta, version, include: self.include, now: self.clock.now() }
    }
}

/// What a bookmark knows of its object.
fn bookmark_metadata(bookmark: Bookmark) -> Value {
    let mut metadata = json!({"resourceVersion": bookmark.resource_version.to_string()});
    if bookmark.initial_events_end {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    metadata
}

/// The object of a bookmark, which a table has as a row like any other.
fn bare(bookmark: Bookmark) -> Arc<Object> {
    let tree = json!({"metadata": bookmark_metadata(bookmark)});
    Arc::new(Object::from_value(&tree, vec![]).expect("an object needs nothing but metadata"))
}

impl Pieces {
    /// What stands behind the items.
    pub(crate) const TAIL: &[u8] = b"]}";

    /// The item at a place in the list, with the comma in front of it.
    pub(crate) fn write_item(&self, out: &mut BytesMut, at: usize, object: &Object) {
        self.write_item_head(out, at, object);
        out.put_slice(&object.stored_end());
    }

    /// The item at a place in the list up to [`Object::stored_end`].
    pub(crate) fn write_item_head(&self, out: &mut impl BufMut, at: usize, object: &Object) {
        if at > 0 {
            out.put_u8(b',');
        }
        out.put_slice(if self.item_type.is_empty() { b"{" } else { &self.item_type });
        object.write_start(out);
    }

    /// How many bytes that writes.
    pub(crate) fn item_bytes(&self, at: usize, object: &Object) -> usize {
        usize::from(at > 0) + self.item_type.len().saturating_sub(1) + object.written_bytes()
    }
}

fn write_items(out: &mut BytesMut, metadata: &str, list: &List, write: impl Fn(&mut BytesMut, &Object)) {
    for part in [",\"metadata\":{", metadata, "},\"items\":["] {
        out.put_slice(part.as_bytes());
    }
    for (at, object) in list.items.iter().enumerate() {
        if at > 0 {
            out.put_u8(b',');
        }
        write(out, object);
    }
    out.put_slice(b"]}");
}

/// `metav1.ListMeta` without its braces.
fn list_metadata(list: &List) -> String {
    let mut out = BytesMut::new();
    // What is not kept is of no revision.
    if list.resource_version != 0 {
        out.put_slice(format!("\"resourceVersion\":\"{}\"", list.resource_version).as_bytes());
    }
    if !list.continue_token.is_empty() {
        out.put_slice(b",\"continue\":");
        write_string(&mut out, &list.continue_token);
    }
    if let Some(count) = list.remaining_item_count {
        out.put_slice(format!(",\"remainingItemCount\":{count}").as_bytes());
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use serde_json::{Value, json};

    fn print(transform: Transform, write: impl FnOnce(&mut Printer, &mut BytesMut)) -> Value {
        let kind = Arc::new(Kind::builtin("", "v1", "ConfigMap", "configmaps", "x"));
        let output = Output { transform, ..Output::default() };
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let printer = Printer::new(&kind, false, output, IncludeObject::Metadata, clock);
        let mut printer = printer.unwrap();
        let mut out = BytesMut::new();
        write(&mut printer, &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    fn object() -> Arc<Object> {
        let tree = json!({"metadata": {"name": "a", "resourceVersion": "7"}, "data": {"k": "v"}});
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    #[test]
    fn lists_and_their_items() {
        let list = List {
            remaining_item_count: Some(3),
            continue_token: "go\"on".into(),
            ..List::complete(vec![object(), object()], 9)
        };
        let printed = print(Transform::None, |printer, out| printer.list(out, &list));
        assert_eq!(
            printed["metadata"],
            json!({"resourceVersion": "9", "continue": "go\"on", "remainingItemCount": 3})
        );
        assert_eq!((&printed["kind"], &printed["items"][1]["kind"]), (&json!("ConfigMapList"), &Value::Null));
        let table = print(Transform::Table("v1".into()), |printer, out| printer.list(out, &list));
        assert_eq!(table["rows"][0]["cells"][0], "a");
        assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    }

    #[test]
    fn events_and_their_objects() {
        let added = WatchEvent::Added(object());
        let printed = print(Transform::None, |printer, out| printer.event(out, &added));
        assert_eq!((&printed["type"], &printed["object"]["kind"]), (&json!("ADDED"), &json!("ConfigMap")));
        let end = WatchEvent::Bookmark(Bookmark { resource_version: 8, initial_events_end: true });
        let printed = print(Transform::None, |printer, out| printer.event(out, &end));
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        assert_eq!(
            printed["object"]["metadata"],
            json!({"resourceVersion": "8", "annotations": annotations})
        );
        let second = print(Transform::Table("v1".into()), |printer, out| {
            printer.event(&mut BytesMut::new(), &added);
            printer.event(out, &added);
        });
        assert_eq!(second["object"]["columnDefinitions"], Value::Null);
        let marked = print(Transform::Table("v1".into()), |printer, out| printer.event(out, &end));
        let row = &marked["object"]["rows"][0];
        assert_eq!(row["object"]["metadata"], printed["object"]["metadata"]);
        assert_eq!(
            (&row["cells"][0], &marked["object"]["metadata"]),
            (&json!(""), &json!({"resourceVersion": "8"}))
        );
    }
}
