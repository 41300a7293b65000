//! watch: what happens to objects, as it happens (`handlers/watch.go`).
//! Next: src/client_go/watch.rs

use std::convert::Infallible;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use tokio::sync::mpsc::Receiver;

use super::negotiation::not_a_stream;
use super::printer::Printer;
use super::request_scope::Scope;
use super::response::Answer;
use super::websocket;
use apimachinery::accept::MediaType;
use apimachinery::fields::FieldSelector;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apimachinery::wire::{ApiResponse, WatchStream};

/// Upstream's `--min-request-timeout`: a client's watch without a timeout ends after this to twice this.
const MIN_TIMEOUT_SECONDS: usize = 1800;
/// Events that are ready are sent together, up to about so many bytes.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// Begins to watch what the query selects; a name in the path selects one object.
pub(super) async fn watch(scope: &mut Scope) -> Result<Answer, Status> {
    if scope.output.media_type == MediaType::Yaml {
        return Err(not_a_stream());
    }
    let mut options = scope.query.list_options(&scope.kind)?;
    options.predicate.only_initialized = scope.sees_only_initialized();
    if scope.ctx.info.depth == 2 && !scope.name().is_empty() {
        options.predicate.fields = FieldSelector::equal("metadata.name", scope.name());
    }
    if options.timeout_seconds.is_none() && !scope.wants_objects {
        let seconds = MIN_TIMEOUT_SECONDS + scope.server.entropy.below(MIN_TIMEOUT_SECONDS);
        options.timeout_seconds = Some(seconds as u64);
    }
    options.held = scope.held.take();
    let events = scope.server.registry.watch(&scope.kind, scope.namespace(), &options).await?;
    if websocket::is_wanted(&scope.headers)
        && let Some(upgrade) = scope.upgrade.take()
    {
        let (printer, media_type) = (scope.printer()?, scope.output.media_type);
        let unread = scope.unread.take().unwrap_or_default();
        let watch = websocket::Watch { printer, media_type, events, unread };
        return Ok(Answer::Raw(websocket::watch_response(&scope.headers, upgrade, watch)));
    }
    Ok(Answer::Watch(events))
}

/// The events as lines of JSON, or as messages of protobuf behind their lengths in four bytes. Each is sent
/// as soon as it is there; what is ready at the same moment goes together.
pub(super) fn watch_response(
    printer: Printer,
    media_type: MediaType,
    events: Receiver<WatchEvent>,
) -> ApiResponse {
    let (content_type, is_framed) = match media_type {
        MediaType::Protobuf => ("application/vnd.kubernetes.protobuf;stream=watch", true),
        MediaType::Json | MediaType::Yaml => ("application/json", false),
    };
    let lines = futures::stream::unfold((events, printer), move |(mut events, mut printer)| async move {
        let mut out = BytesMut::new();
        let mut next = events.recv().await;
        while let Some(event) = next {
            match is_framed {
                true => write_frame(&mut printer, &mut out, &event),
                false => printer.event(&mut out, &event),
            }
            next = if out.len() < MAX_CHUNK_BYTES { events.try_recv().ok() } else { None };
        }
        let chunk = Some(out.freeze()).filter(|chunk| !chunk.is_empty())?;
        Some((Ok::<Bytes, Infallible>(chunk), (events, printer)))
    });
    let mut response = ApiResponse::new(Body::from_stream(lines));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.extensions_mut().insert(WatchStream);
    response
}

fn write_frame(printer: &mut Printer, out: &mut BytesMut, event: &WatchEvent) {
    let start = out.len();
    out.put_u32(0);
    printer.event(out, event);
    let length = u32::try_from(out.len() - start - 4).expect("an event is far below four gigabytes");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}
