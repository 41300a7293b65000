//! A web server on one connection: HTTP/1.1, one request after the other.

use std::convert::Infallible;
use std::future::Future;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::pipe::AnyPipe;

/// The largest body of a request that is read; a larger one is answered with 413.
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// Who answers requests, whoever that is.
type AnyHandler<'a> = dyn Fn(Request<Bytes>) -> BoxFuture<'a, Response<Bytes>> + Send + Sync + 'a;

/// Serves a connection until its end: each request is read whole, and answered by `handler`.
pub async fn serve<Io, Handler, Answer>(io: Io, handler: Handler)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send,
    Handler: Fn(Request<Bytes>) -> Answer + Send + Sync,
    Answer: Future<Output = Response<Bytes>> + Send,
{
    let handler = &handler;
    let handler = move |request: Request<Bytes>| handler(request).boxed();
    serve_any(Box::new(io), &handler).await;
}

/// HTTP itself is compiled here once, for speed, and not in each crate that has a handler.
async fn serve_any<'a>(io: AnyPipe<'a>, handler: &AnyHandler<'a>) {
    let answer = |request: Request<Incoming>| async move {
        let (head, body) = request.into_parts();
        let response = match whole(body).await {
            Some(body) => handler(Request::from_parts(head, body)).await,
            None => too_large(),
        };
        Ok::<_, Infallible>(response.map(Full::new))
    };
    // A client that has said all may still wait for the answer. One that hangs up, or speaks something else,
    // ends its own connection.
    let serving = http1::Builder::new()
        .half_close(true)
        .title_case_headers(true)
        .serve_connection(TokioIo::new(io), service_fn(answer));
    if let Err(error) = serving.await {
        tracing::debug!(%error, "a connection to a simulated server ended");
    }
}

/// All of a body; nothing of one that is too large, or breaks off.
async fn whole(body: Incoming) -> Option<Bytes> {
    if body.is_end_stream() {
        return Some(Bytes::new());
    }
    Some(Limited::new(body, MAX_BODY_BYTES).collect().await.ok()?.to_bytes())
}

fn too_large() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response
}
