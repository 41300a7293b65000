//! The body of a watch: events as they happen (`handlers.WatchServer`). Over a websocket it is `websocket`.

use std::convert::Infallible;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use tokio::sync::mpsc::Receiver;

use super::printer::Printer;
use crate::metrics::WatchCounts;
use apimachinery::accept::MediaType;
use apimachinery::watch::WatchEvent;
use apimachinery::wire::{ApiResponse, WatchStream};

/// Events that are ready are sent together, up to about so many bytes.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// The events as lines of JSON, or as messages of protobuf behind their lengths in four bytes. Each is sent
/// as soon as it is there; what is ready at the same moment goes together.
pub(crate) fn watch_response(
    printer: Printer,
    media_type: MediaType,
    events: Receiver<WatchEvent>,
    counts: WatchCounts,
) -> ApiResponse {
    let (content_type, is_framed) = match media_type {
        MediaType::Protobuf => ("application/vnd.kubernetes.protobuf;stream=watch", true),
        MediaType::Json | MediaType::Yaml => ("application/json", false),
    };
    let lines = futures::stream::unfold(
        (events, printer, counts),
        move |(mut events, mut printer, counts)| async move {
            let mut out = BytesMut::new();
            let mut next = events.recv().await;
            while let Some(event) = next {
                let start = out.len();
                if is_framed {
                    write_frame(&mut printer, &mut out, &event)
                } else {
                    printer.event(&mut out, &event)
                }
                counts.sent(&event, out.len() - start);
                next = if out.len() < MAX_CHUNK_BYTES { events.try_recv().ok() } else { None };
            }
            let chunk = Some(out.freeze()).filter(|chunk| !chunk.is_empty())?;
            Some((Ok::<Bytes, Infallible>(chunk), (events, printer, counts)))
        },
    );
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
