//! Answers of gRPC: one message or several, and how it ended behind them.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use futures::Stream;
use futures::stream::{self, StreamExt};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response};
use http_body::Frame;
use http_body_util::StreamBody;

use crate::frames::{Received, framed};
use crate::status::EtcdStatus;
use crate::wire::ProtoMessage;

/// Reads the message of a call and answers it.
pub(crate) async fn unary<Q: ProtoMessage, A: ProtoMessage>(
    body: Body,
    answer: impl AsyncFnOnce(Q, usize) -> Result<A, EtcdStatus>,
) -> Response<Body> {
    let mut received = Received::new(body);
    let answered = match received.only().await {
        Ok(request) => answer(request, received.message_bytes()).await,
        Err(status) => Err(status),
    };
    match answered {
        Ok(message) => streamed(stream::iter([Ok(framed(&message))])),
        Err(status) => failed(&status),
    }
}

/// An answer of messages as they come; an error ends it.
pub(crate) fn streamed(
    messages: impl Stream<Item = Result<Bytes, EtcdStatus>> + Send + 'static,
) -> Response<Body> {
    let ended = stream::once(std::future::ready(Err(None)));
    let frames = messages.map(|message| message.map_err(Some)).chain(ended).scan(false, |is_over, next| {
        let frame = match next {
            _ if *is_over => return std::future::ready(None),
            Ok(message) => Frame::data(message),
            Err(status) => {
                *is_over = true;
                Frame::trailers(trailers(status.as_ref()))
            }
        };
        std::future::ready(Some(Ok::<_, Infallible>(frame)))
    });
    answer(Body::new(StreamBody::new(frames)))
}

/// A failure before anything was sent.
pub(crate) fn failed(status: &EtcdStatus) -> Response<Body> {
    let mut response = answer(Body::empty());
    response.headers_mut().extend(trailers(Some(status)));
    response
}

fn answer(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

fn trailers(failure: Option<&EtcdStatus>) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", failure.map_or(0, |failure| failure.code).into());
    if let Some(failure) = failure
        && let Ok(message) = HeaderValue::try_from(percent_encoded(&failure.message))
    {
        trailers.insert("grpc-message", message);
    }
    trailers
}

/// As gRPC wants it: what is not printable ASCII, and the percent sign, by their bytes.
fn percent_encoded(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte {
        b' '..=b'~' if byte != b'%' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}
