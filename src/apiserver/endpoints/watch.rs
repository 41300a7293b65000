//! watch: what happens to objects, as it happens (`handlers/watch.go`).
//! Next: src/client_go/watch.rs

use std::convert::Infallible;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use tokio::sync::mpsc::Receiver;

use super::negotiation::MediaType;
use super::printer::Printer;
use super::request_scope::Scope;
use super::response::Answer;
use crate::apimachinery::fields::FieldSelector;
use crate::apimachinery::status::Status;
use crate::apimachinery::watch::WatchEvent;
use crate::apimachinery::wire::ApiResponse;

/// Upstream's `--min-request-timeout`: a client's watch without a timeout ends after this to twice this.
const MIN_TIMEOUT_SECONDS: usize = 1800;
/// Events that are ready are sent together, up to about so many bytes.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// Begins to watch what the query selects; a name in the path selects one object.
pub(super) async fn watch(scope: &Scope) -> Result<Answer, Status> {
    if scope.output.media_type == MediaType::Yaml {
        let text = "only the following media types are accepted: application/json;stream=watch";
        return Err(Status::failure(406, "NotAcceptable", text));
    }
    let mut options = scope.query.list_options(&scope.kind)?;
    options.predicate.only_initialized = scope.sees_only_initialized();
    if scope.ctx.info.parts.len() == 2 && !scope.name().is_empty() {
        options.predicate.fields = FieldSelector::equal("metadata.name", scope.name());
    }
    if options.timeout_seconds.is_none() && !scope.wants_objects {
        let seconds = MIN_TIMEOUT_SECONDS + scope.server.entropy.below(MIN_TIMEOUT_SECONDS);
        options.timeout_seconds = Some(seconds as u64);
    }
    let events = scope.server.registry.watch(&scope.kind, scope.namespace(), &options).await?;
    Ok(Answer::Watch(events))
}

/// The events as lines of JSON. Each is sent as soon as it is there; what is ready at the same moment goes
/// together.
pub(super) fn watch_response(printer: Printer, events: Receiver<WatchEvent>) -> ApiResponse {
    let lines = futures::stream::unfold((events, printer), |(mut events, mut printer)| async move {
        let mut out = BytesMut::new();
        let mut next = events.recv().await;
        while let Some(event) = next {
            printer.event(&mut out, &event);
            next = if out.len() < MAX_CHUNK_BYTES { events.try_recv().ok() } else { None };
        }
        let chunk = Some(out.freeze()).filter(|chunk| !chunk.is_empty())?;
        Some((Ok::<Bytes, Infallible>(chunk), (events, printer)))
    });
    let mut response = ApiResponse::new(Body::from_stream(lines));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
