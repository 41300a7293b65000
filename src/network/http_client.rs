//! A request over one connection.

use bytes::Bytes;
use clock::Clock;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

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

/// Asks, and reads the whole answer, up to `limit` bytes of it. Where it is 101, `said` is said on what the
/// connection goes on with, and what is heard there until its end is the body.
///
/// # Errors
/// That the other side hangs up before it has answered, or does not speak HTTP/1.
pub async fn ask_whole<Io>(
    clock: &Clock,
    io: Io,
    request: Request<Bytes>,
    (said, limit): (&[u8], usize),
) -> Result<Response<Bytes>, hyper::Error>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut response = ask(clock, io, request).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, limit).collect().await.map(|body| body.to_bytes());
        return Ok(Response::from_parts(head, body.unwrap_or_default()));
    }
    let upgraded = hyper::upgrade::on(&mut response).await?;
    let (reader, mut writer) = tokio::io::split(TokioIo::new(upgraded));
    let mut heard = Vec::new();
    let mut reader = reader.take(limit as u64);
    // Both at once: who is told much may say something before he has heard all of it.
    let saying = async {
        // Whoever hangs up has heard enough.
        let _ = writer.write_all(said).await;
        let _ = writer.flush().await;
    };
    let (_, read) = tokio::join!(saying, reader.read_to_end(&mut heard));
    if let Err(error) = read {
        tracing::debug!(%error, "a connection that went on with something else broke off");
    }
    Ok(response.map(|_| Bytes::from(heard)))
}
