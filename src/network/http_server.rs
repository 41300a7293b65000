//! A web server on one connection: HTTP/1.1, one request after the other.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::pipe::AnyPipe;

/// The largest body of a request that is read; a larger one is answered with 413.
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// The body of an answer that is sent as it comes.
pub type StreamedBody = UnsyncBoxBody<Bytes, BrokenOff>;

/// Why an answer has no end: its connection is broken off, too.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off: {0}")]
pub struct BrokenOff(pub String);

/// Who answers requests, whoever that is.
type AnyHandler<'a> = dyn Fn(Request<Bytes>) -> BoxFuture<'a, Response<StreamedBody>> + Send + Sync + 'a;

/// Serves a connection until its end: each request is read whole, and answered by `handler`.
pub async fn serve<Io, Handler, Answer>(io: Io, handler: Handler)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send,
    Handler: Fn(Request<Bytes>) -> Answer + Send + Sync,
    Answer: Future<Output = Response<Bytes>> + Send,
{
    let handler = &handler;
    let handler = move |request: Request<Bytes>| handler(request).map(at_once).boxed();
    serve_any(Box::new(io), &handler).await;
}

/// As [`serve`], but an answer goes out as it comes, however long it is: a watch has no end.
pub async fn serve_streams<Io, Handler, Answer>(io: Io, handler: Handler)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send,
    Handler: Fn(Request<Bytes>) -> Answer + Send + Sync,
    Answer: Future<Output = Response<StreamedBody>> + Send,
{
    let handler = &handler;
    let handler = move |request: Request<Bytes>| handler(request).boxed();
    serve_any(Box::new(io), &handler).await;
}

/// Serves a connection as [`serve`] does. Where an answer is 101, the connection goes on with what was asked
/// for (`hyper::upgrade::OnUpgrade`, which is among the extensions of the request).
pub async fn serve_and_go_on<Io, Handler, Answer>(io: Io, handler: Handler)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    Handler: Fn(Request<Bytes>) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Response<Bytes>> + Send + 'static,
{
    let handler = move |request: Request<Bytes>| handler(request).map(at_once);
    serve_streams_and_go_on(io, handler).await;
}

/// As [`serve_and_go_on`], but an answer goes out as it comes, as those of [`serve_streams`].
pub async fn serve_streams_and_go_on<Io, Handler, Answer>(io: Io, handler: Handler)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    Handler: Fn(Request<Bytes>) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Response<StreamedBody>> + Send + 'static,
{
    let handler: Arc<AnyHandler<'static>> = Arc::new(move |request| handler(request).boxed());
    go_on_with_any(Box::new(io), handler).await;
}

/// Compiled once, too.
async fn go_on_with_any(io: AnyPipe<'static>, handler: Arc<AnyHandler<'static>>) {
    let answer = move |request: Request<Incoming>| {
        let handler = handler.clone();
        answered(request, move |request| handler(request))
    };
    let serving = http1::Builder::new().serve_connection(TokioIo::new(io), service_fn(answer));
    if let Err(error) = serving.with_upgrades().await {
        tracing::debug!(%error, "a connection within the process ended");
    }
}

/// HTTP itself is compiled here once, for speed, and not in each crate that has a handler.
async fn serve_any<'a>(io: AnyPipe<'a>, handler: &AnyHandler<'a>) {
    let answer = |request: Request<Incoming>| answered(request, handler);
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

/// What a handler says to a request that was read whole, or that it was too large.
async fn answered<Answer>(
    request: Request<Incoming>,
    handler: impl FnOnce(Request<Bytes>) -> Answer,
) -> Result<Response<StreamedBody>, Infallible>
where
    Answer: Future<Output = Response<StreamedBody>>,
{
    let (head, body) = request.into_parts();
    Ok(match whole(body).await {
        Some(body) => handler(Request::from_parts(head, body)).await,
        None => too_large(),
    })
}

/// All of a body; nothing of one that is too large, or breaks off.
async fn whole(body: Incoming) -> Option<Bytes> {
    if body.is_end_stream() {
        return Some(Bytes::new());
    }
    Some(Limited::new(body, MAX_BODY_BYTES).collect().await.ok()?.to_bytes())
}

/// An answer all of which is there.
fn at_once(response: Response<Bytes>) -> Response<StreamedBody> {
    response.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync())
}

fn too_large() -> Response<StreamedBody> {
    let mut response = at_once(Response::default());
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{StreamExt, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use hyper::client::conn::http1 as client;
    use tokio::sync::mpsc;

    /// The first words of an answer are there before it has an end, and it may be as long as it likes.
    #[tokio::test]
    async fn an_answer_is_sent_as_it_comes() {
        let (words, said) = mpsc::channel::<Bytes>(1);
        let said = stream::unfold(said, |mut said| async { Some((said.recv().await?, said)) });
        let body = StreamBody::new(said.map(|word| Ok::<_, BrokenOff>(Frame::data(word)))).boxed_unsync();
        let body = std::sync::Mutex::new(Some(body));
        let (near, far) = tokio::io::duplex(1024);
        let server = tokio::spawn(async move {
            let answer = |_| async { Response::new(body.lock().unwrap().take().unwrap_or_default()) };
            serve_streams(far, answer).await;
        });
        let (mut sender, connection) = client::handshake(TokioIo::new(near)).await.unwrap();
        let connection = tokio::spawn(connection);
        let request = Request::get("/watch").body(Full::<Bytes>::default()).unwrap();
        let mut answer = sender.send_request(request).await.unwrap().into_body();
        words.send("ADDED".into()).await.unwrap();
        let first = answer.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "ADDED");
        let long = Bytes::from(vec![b'x'; 5 << 20]);
        let sending = tokio::spawn(async move { words.send(long).await });
        assert_eq!(answer.collect().await.unwrap().to_bytes().len(), 5 << 20);
        sending.await.unwrap().unwrap();
        drop(sender);
        connection.await.unwrap().unwrap();
        server.await.unwrap();
    }
}
