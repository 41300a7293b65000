//! The client's end of a watch: events as the server shares them, or out of bytes (`watch.StreamWatcher`).

use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::mpsc;

use super::response::{failure, object_of};
use apimachinery::status::Status;
use apimachinery::watch::{Bookmark, WatchEvent};
use apimachinery::wire::{ApiResponse, StatusAnswer, WatchAnswer};
use apis::kind::{Kind, Selectable};
use clock::Clock;

/// How many decoded events may wait for the reader of a watch in bytes. At the bound decoding waits, and with
/// it the server, which cuts a watch that is too slow.
const DECODED: usize = 100;

/// An answer that is a watch.
pub(super) async fn watch(
    kind: &Kind,
    response: ApiResponse,
    clock: &Clock,
) -> Result<mpsc::Receiver<WatchEvent>, Status> {
    if let Some(answer) = response.extensions().get::<WatchAnswer>() {
        return answer.take().ok_or_else(|| Status::internal("the watch was taken before"));
    }
    if response.extensions().get::<StatusAnswer>().is_some() || !response.status().is_success() {
        return Err(failure(response).await);
    }
    Ok(decode(response.into_body(), kind, clock))
}

/// Reads events, one JSON document a line, until the body ends or nobody listens.
fn decode(body: Body, kind: &Kind, clock: &Clock) -> mpsc::Receiver<WatchEvent> {
    let (events, receiver) = mpsc::channel(DECODED);
    let decoder = Decoder { selectable: kind.selectable.clone(), pending: Vec::new(), events };
    clock.spawn(decoder.run(body));
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
                biased;
                frame = body.frame() => frame,
                () = self.events.closed() => return,
            };
            let data = match frame {
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                // A connection that is lost is the end of the watch: it is gone on with from where it was.
                Some(Err(error)) => return tracing::debug!(%error, "a watch broke off"),
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
