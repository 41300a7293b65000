//! A request over one connection.

use bytes::Bytes;
use clock::Clock;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::pipe::AnyPipe;

/// Asks over a connection that is for this one request. The body of the answer comes while it is read. Where
/// the answer is 101, the connection goes on with what was asked for (`hyper::upgrade::on`). Whatever is
/// under way on it is under way on `clock`.
///
/// # Errors
/// That the other side hangs up, or does not speak HTTP/1.
pub async fn ask<Io>(
    clock: &Clock,
    io: Io,
    request: Request<Bytes>,
) -> Result<Response<Incoming>, hyper::Error>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    ask_any(clock, Box::new(io), request).await
}

/// HTTP itself is compiled here once, for speed, and not in each crate that asks.
async fn ask_any(
    clock: &Clock,
    io: AnyPipe<'static>,
    request: Request<Bytes>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await?;
    // It ends with the answer, or when nobody reads that any more; or it goes on with something else.
    clock.spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to a simulated server ended");
        }
    });
    sender.send_request(request.map(Full::new)).await
}
