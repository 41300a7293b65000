//! A web server on one connection: HTTP/1.1, one request after the other.

use std::convert::Infallible;
use std::future::Future;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

/// The largest body of a request that is read; a larger one is answered with 413.
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// Serves a connection until its end: each request is read whole, and answered by `handler`.
pub async fn serve<Io, Handler, Answer>(io: Io, handler: Handler)
where
    Io: AsyncRead + AsyncWrite + Unpin,
    Handler: Fn(Request<Bytes>) -> Answer,
    Answer: Future<Output = Response<Bytes>>,
{
    let answer = |request: Request<Incoming>| {
        let handler = &handler;
        async move {
            let (head, body) = request.into_parts();
            let response = match Limited::new(body, MAX_BODY_BYTES).collect().await {
                Ok(body) => handler(Request::from_parts(head, body.to_bytes())).await,
                Err(_) => too_large(),
            };
            Ok::<_, Infallible>(response.map(Full::new))
        }
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

fn too_large() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response
}
