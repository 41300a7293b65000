//! Streams over a websocket (`k8s.io/apimachinery/pkg/util/httpstream/wsstream`, `remotecommand`): the
//! handshake, and messages whose first byte names a channel.

use axum::body::Body;
use futures::future::BoxFuture;
use http::header::{SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::endpoints::response::answer::Answer;
use crate::endpoints::response::websocket::{
    BINARY, CLOSE, FrameHead, NORMAL, PING, PONG, frame, opening, text,
};
use apimachinery::status::Status;
use apimachinery::wire::ApiResponse;

/// A message of a client is no larger; one that is ends the connection.
const MAX_MESSAGE_BYTES: u64 = 1 << 20;
/// Bytes of a message that is sent.
const MESSAGE_BYTES: usize = 32 * 1024;

/// Both ways of a connection that speaks HTTP no more.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// What goes on over such a connection, until its end.
pub(crate) type Conversation = Box<dyn FnOnce(Box<dyn Duplex>) -> BoxFuture<'static, ()> + Send>;

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Bytes on a channel.
    Data(u8, Vec<u8>),
    /// The end.
    Close,
}

/// Agrees on the first of the client's protocols that is among `known`, and goes on with `conversation`.
///
/// # Errors
/// 403, as upstream's handshake answers when there is none.
pub(crate) fn accept(
    headers: &HeaderMap,
    upgrade: OnUpgrade,
    known: &[&'static str],
    conversation: impl FnOnce(&'static str) -> Conversation,
) -> Result<Answer, Status> {
    let offered = text(headers, SEC_WEBSOCKET_PROTOCOL);
    let mut wanted = offered.split(',').map(str::trim);
    let chosen = wanted.find_map(|offer| known.iter().find(|known| **known == offer).copied());
    let Some(protocol) = chosen.or(if offered.is_empty() { Some("") } else { None }) else {
        let why = format!("requested protocol(s) are not supported: [{offered}]; supports {known:?}");
        return Err(Status::failure(403, "Forbidden", why));
    };
    let mut response = ApiResponse::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = opening(text(headers, SEC_WEBSOCKET_KEY));
    if !protocol.is_empty() {
        response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    }
    let conversation = conversation(protocol);
    // It ends with what it tells, or with the client.
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            conversation(Box::new(TokioIo::new(upgraded))).await;
        }
    });
    Ok(Answer::Raw(response))
}

/// Sends bytes on a channel, in as many messages as it takes; without a channel as they are.
pub(crate) async fn send(io: &mut dyn Duplex, channel: Option<u8>, bytes: &[u8]) -> std::io::Result<()> {
    let mut chunks = bytes.chunks(MESSAGE_BYTES).peekable();
    let empty: &[u8] = &[];
    let first = if chunks.peek().is_none() { Some(empty) } else { None };
    for chunk in first.into_iter().chain(chunks) {
        let message: Vec<u8> = channel.into_iter().chain(chunk.iter().copied()).collect();
        io.write_all(&frame(BINARY, &message)).await?;
    }
    io.flush().await
}

/// Says goodbye.
pub(crate) async fn close(io: &mut dyn Duplex) -> std::io::Result<()> {
    io.write_all(&frame(CLOSE, &NORMAL)).await?;
    io.flush().await?;
    io.shutdown().await
}

/// The next message; pings are answered.
pub(crate) async fn receive(io: &mut dyn Duplex) -> std::io::Result<Message> {
    loop {
        let head = FrameHead::read(io).await?;
        if head.length > MAX_MESSAGE_BYTES {
            return Ok(Message::Close);
        }
        let mut payload = head.payload(io).await?;
        match head.opcode {
            CLOSE => return Ok(Message::Close),
            PING => {
                io.write_all(&frame(PONG, &payload[..payload.len().min(125)])).await?;
                io.flush().await?;
            }
            PONG => {}
            _ if payload.is_empty() => {}
            _ => {
                let channel = payload.remove(0);
                return Ok(Message::Data(channel, payload));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_go_both_ways() {
        let (mut here, mut there) = tokio::io::duplex(1 << 16);
        send(&mut here, Some(1), &[7; 300]).await.unwrap();
        send(&mut here, Some(2), b"").await.unwrap();
        assert_eq!(receive(&mut there).await.unwrap(), Message::Data(1, vec![7; 300]));
        assert_eq!(receive(&mut there).await.unwrap(), Message::Data(2, vec![]));
        there.write_all(&[0x82, 0x83, 1, 2, 3, 4, 1, b'a' ^ 2, b'b' ^ 3]).await.unwrap();
        assert_eq!(receive(&mut here).await.unwrap(), Message::Data(0, b"ab".to_vec()));
        close(&mut here).await.unwrap();
        assert_eq!(receive(&mut there).await.unwrap(), Message::Close);
    }
}
