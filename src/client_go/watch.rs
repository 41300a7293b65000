//! The client's end of a watch: `cache.ListWatch`, and events out of bytes (`watch.StreamWatcher`).
//! Next: src/client_go/reflector.rs

use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::mpsc;

use super::client::Client;
use super::reflector::ListerWatcher;
use super::response::object_of;
use apimachinery::fields::FieldSelector;
use apimachinery::list::List;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::watch::{Bookmark, WatchEvent};
use apis::kind::{Kind, Selectable};

/// How many decoded events may wait for the reader of a watch in bytes. At the bound decoding waits, and with
/// it the server, which cuts a watch that is too slow.
const DECODED: usize = 100;

/// Lists and watches the objects of a kind, in one namespace or all, with one field selector
/// (`cache.ListWatch`).
pub struct ListWatch {
    client: Client,
    kind: Arc<Kind>,
    namespace: String,
    fields: FieldSelector,
}

impl ListWatch {
    /// An empty namespace means all.
    pub fn new(client: Client, kind: Arc<Kind>, namespace: &str, fields: FieldSelector) -> ListWatch {
        ListWatch { client, kind, namespace: namespace.to_owned(), fields }
    }

    /// The reflector's options, and which objects.
    fn select(&self, options: &ListOptions) -> ListOptions {
        let predicate = Predicate { fields: self.fields.clone(), ..Predicate::default() };
        ListOptions { predicate, ..options.clone() }
    }
}

impl ListerWatcher for ListWatch {
    type Events = mpsc::Receiver<WatchEvent>;

    async fn list(&self, options: &ListOptions) -> Result<List, Status> {
        self.client.list(&self.kind, &self.namespace, &self.select(options)).await
    }

    async fn watch(&self, options: &ListOptions) -> Result<Self::Events, Status> {
        self.client.watch(&self.kind, &self.namespace, &self.select(options)).await
    }
}

/// Reads events, one JSON document a line, until the body ends or nobody listens.
pub(super) fn decode(body: Body, kind: &Kind) -> mpsc::Receiver<WatchEvent> {
    let (events, receiver) = mpsc::channel(DECODED);
    let decoder = Decoder { selectable: kind.selectable.clone(), pending: Vec::new(), events };
    tokio::spawn(decoder.run(body));
    receiver
}

struct Decoder {
    selectable: Vec<Selectable>,
    /// The beginning of a line whose end has not come yet.
    pending: Vec<u8>,
    events: mpsc::Sender<WatchEvent>,
}

impl Decoder {
    async fn run(mut self, mut body: Body) {
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = self.events.closed() => return,
            };
            let data = match frame {
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return self.fail(Status::internal(error)).await,
                None => return,
            };
            self.pending.extend_from_slice(&data);
            if self.send_lines().await.is_none() {
                return;
            }
        }
    }

    /// Sends every whole line; none when there is no use in going on.
    async fn send_lines(&mut self) -> Option<()> {
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            match event_of(&self.selectable, &line) {
                Ok(event) => self.events.send(event).await.ok()?,
                Err(status) => {
                    self.fail(status).await;
                    return None;
                }
            }
        }
        Some(())
    }

    async fn fail(&self, status: Status) {
        // Whoever stopped listening does not need to know.
        let _ = self.events.send(WatchEvent::error(status)).await;
    }
}

fn event_of(selectable: &[Selectable], line: &[u8]) -> Result<WatchEvent, Status> {
    let mut tree: Value = serde_json::from_slice(line).map_err(Status::internal)?;
    let object = tree["object"].take();
    let shared = || object_of(selectable, &object).map(Arc::new);
    match tree["type"].as_str().unwrap_or_default() {
        "ADDED" => Ok(WatchEvent::Added(shared()?)),
        "MODIFIED" => Ok(WatchEvent::Modified(shared()?)),
        "DELETED" => Ok(WatchEvent::Deleted(shared()?)),
        "BOOKMARK" => Ok(WatchEvent::Bookmark(bookmark_of(&object))),
        "ERROR" => Ok(WatchEvent::error(serde_json::from_value(object).map_err(Status::internal)?)),
        other => Err(Status::internal(format!("unknown watch event {other:?}"))),
    }
}

fn bookmark_of(object: &Value) -> Bookmark {
    let metadata = &object["metadata"];
    Bookmark {
        resource_version: metadata["resourceVersion"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0),
        initial_events_end: metadata["annotations"]["k8s.io/initial-events-end"] == "true",
    }
}
