//! gRPC over one connection, as far as a call with one message each way goes: HTTP/2, a message behind its
//! length, and a status in the trailers. Messages are bytes here.

use std::convert::Infallible;
use std::future::Future;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Collected, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2 as client;
use hyper::rt::Executor;
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use clock::Clock;

/// The largest message that is read; a larger one ends the call.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// So many calls are under way on one connection; more wait.
const MAX_STREAMS: u32 = 64;
/// A message is not compressed, and has its length before it.
const HEAD_BYTES: usize = 5;

/// How a call ended (`google.golang.org/grpc/status`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcStatus {
    /// 0 is well; 5 is `NotFound`, 12 `Unimplemented`.
    pub code: u32,
    /// For people.
    pub message: String,
}

/// A call that somebody makes.
#[derive(Clone, Debug)]
pub struct GrpcCall<'a> {
    /// Whom it is for, as `10.0.0.1:5000`.
    pub authority: &'a str,
    /// `/package.Service/Method`
    pub path: &'a str,
    /// `user-agent`
    pub agent: &'a str,
    /// The message.
    pub message: Bytes,
}

/// Why there is neither an answer nor a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrpcFailure {
    /// Who is there does not speak HTTP/2.
    NoHttp2,
    /// The call broke off.
    BrokeOff,
}

/// Runs on the cluster's clock what HTTP/2 does beside a connection.
#[derive(Clone)]
struct OnClock(Clock);

impl<F> Executor<F> for OnClock
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}

/// Calls over a connection that is for this one call. A status that is not 0 is an answer, too.
///
/// # Errors
/// [`GrpcFailure`]
pub async fn call<Io>(
    clock: &Clock,
    io: Io,
    call: GrpcCall<'_>,
) -> Result<Result<Bytes, GrpcStatus>, GrpcFailure>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = client::handshake(OnClock(clock.clone()), TokioIo::new(io)).await;
    let (mut sender, connection) = handshake.map_err(|_| GrpcFailure::NoHttp2)?;
    clock.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a simulated server ended");
        }
    });
    let request = Request::post(format!("http://{}{}", call.authority, call.path))
        .header("content-type", "application/grpc")
        .header("user-agent", call.agent)
        .header("te", "trailers")
        .body(Full::new(framed(&call.message)));
    let request = request.map_err(|_| GrpcFailure::BrokeOff)?;
    // Whoever speaks something else breaks off the first stream.
    let response = sender.send_request(request).await.map_err(|_| GrpcFailure::NoHttp2)?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_MESSAGE_BYTES).collect().await.map_err(|_| GrpcFailure::BrokeOff)?;
    answered(&head.headers, body).ok_or(GrpcFailure::BrokeOff)
}

/// The status stands behind the message, or in the head where there is none.
fn answered(head: &HeaderMap, body: Collected<Bytes>) -> Option<Result<Bytes, GrpcStatus>> {
    let trailers = body.trailers().cloned().unwrap_or_default();
    let text = |name: &str| trailers.get(name).or_else(|| head.get(name))?.to_str().ok().map(str::to_owned);
    let code = text("grpc-status")?.parse().ok()?;
    if code != 0 {
        return Some(Err(GrpcStatus { code, message: text("grpc-message").unwrap_or_default() }));
    }
    message(&body.to_bytes()).map(Ok)
}

fn framed(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(HEAD_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(message);
    framed.freeze()
}

/// Nothing for what is compressed, or not whole.
fn message(framed: &Bytes) -> Option<Bytes> {
    let head = framed.get(..HEAD_BYTES)?;
    let length = u32::from_be_bytes(head[1..].try_into().ok()?) as usize;
    (head[0] == 0 && framed.len() == HEAD_BYTES + length).then(|| framed.slice(HEAD_BYTES..))
}

/// Serves a connection until its end: `handler` is given each call's path and message.
pub async fn serve<Io, Handler>(clock: &Clock, io: Io, handler: Handler)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    Handler: Fn(&str, Bytes) -> Result<Bytes, GrpcStatus> + Clone + Send + Sync + 'static,
{
    let answer = move |request: Request<Incoming>| {
        let handler = handler.clone();
        async move {
            let (head, body) = request.into_parts();
            let read = Limited::new(body, MAX_MESSAGE_BYTES).collect().await;
            let message = read.ok().and_then(|body| message(&body.to_bytes()));
            let no_message = || GrpcStatus { code: 13, message: "no message that is understood".into() };
            let answered = message.ok_or_else(no_message);
            let answered = answered.and_then(|message| handler(head.uri.path(), message));
            Ok::<_, Infallible>(response(answered))
        }
    };
    let mut builder = server::Builder::new(OnClock(clock.clone()));
    builder.max_concurrent_streams(MAX_STREAMS);
    if let Err(error) = builder.serve_connection(TokioIo::new(io), service_fn(answer)).await {
        tracing::debug!(%error, "a connection to a simulated server ended");
    }
}

fn response(
    answered: Result<Bytes, GrpcStatus>,
) -> Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>> {
    let (body, status) = match answered {
        Ok(message) => (framed(&message), GrpcStatus::default()),
        Err(status) => (Bytes::new(), status),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(status.code));
    if let Ok(message) = HeaderValue::try_from(status.message) {
        trailers.insert("grpc-message", message);
    }
    let body = Full::new(body).with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::connection;
    use tokio::io::AsyncWriteExt;

    fn asked(path: &'static str, text: &'static str) -> GrpcCall<'static> {
        GrpcCall {
            authority: "10.0.0.1:5000",
            path,
            agent: "test",
            message: Bytes::from_static(text.as_bytes()),
        }
    }

    #[tokio::test]
    async fn a_call_has_an_answer_or_a_status() {
        let clock = Clock::real();
        let answer = async |path: &'static str| {
            let (near, far) = connection();
            let serving = clock.clone();
            tokio::spawn(async move {
                serve(&serving, far, |path: &str, message| match path {
                    "/a.B/Echo" => Ok(message),
                    path => Err(GrpcStatus { code: 12, message: format!("unknown method {path}") }),
                })
                .await;
            });
            call(&clock, near, asked(path, "hello")).await
        };
        assert_eq!(answer("/a.B/Echo").await, Ok(Ok(Bytes::from_static(b"hello"))));
        let unknown = GrpcStatus { code: 12, message: "unknown method /a.B/C".into() };
        assert_eq!(answer("/a.B/C").await, Ok(Err(unknown)));
    }

    #[tokio::test]
    async fn who_speaks_something_else_is_told_from_who_breaks_off() {
        let (near, mut far) = connection();
        tokio::spawn(async move {
            let _ = far.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
        });
        assert_eq!(call(&Clock::real(), near, asked("/a.B/C", "")).await, Err(GrpcFailure::NoHttp2));
        assert_eq!(message(&Bytes::from_static(b"\0\0\0\0\x05abc")), None);
        assert_eq!(message(&Bytes::from_static(b"\x01\0\0\0\0")), None);
    }
}
