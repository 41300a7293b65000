//! What a request for streams goes on with (`k8s.io/apimachinery/pkg/util/httpstream`): a websocket, whose
//! messages name a channel by their first byte (`wsstream`, `remotecommand`), or SPDY; the handshake of both.

use axum::body::Body;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{CONNECTION, HeaderName, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;

use crate::endpoints::response::answer::Answer;
use crate::endpoints::response::websocket::{
    self, BINARY, CLOSE, FrameHead, NORMAL, PING, PONG, frame, opening, text,
};
use crate::kubelet_client::Duplex;
use apimachinery::status::Status;
use apimachinery::wire::ApiResponse;

/// A message of a client is no larger; one that is ends the connection.
pub(super) const MAX_MESSAGE_BYTES: u64 = 1 << 20;
/// Bytes of a message that is sent.
const MESSAGE_BYTES: usize = 32 * 1024;

/// What SPDY is called where it is asked for.
const SPDY: &str = "SPDY/3.1";
/// Which protocol goes on over it (`httpstream.HeaderProtocolVersion`).
const SPDY_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// What goes on over such a connection, until its end.
pub(crate) type Conversation = Box<dyn FnOnce(Box<dyn Duplex>) -> BoxFuture<'static, ()> + Send>;

/// The streams of a command, by the numbers that `remotecommand` gives them.
pub(crate) trait Channels: Send {
    /// Sends bytes on one.
    fn send<'a>(&'a mut self, channel: u8, bytes: &'a [u8]) -> BoxFuture<'a, std::io::Result<()>>;

    /// What the client says next.
    fn receive(&mut self) -> BoxFuture<'_, std::io::Result<Message>>;

    /// Says goodbye, behind all that was sent.
    fn close(&mut self) -> BoxFuture<'_, std::io::Result<()>>;
}

/// Channels as messages of a websocket.
pub(crate) struct WebSocket(pub Box<dyn Duplex>);

impl Channels for WebSocket {
    fn send<'a>(&'a mut self, channel: u8, bytes: &'a [u8]) -> BoxFuture<'a, std::io::Result<()>> {
        send(&mut *self.0, Some(channel), bytes).boxed()
    }

    fn receive(&mut self) -> BoxFuture<'_, std::io::Result<Message>> {
        receive(&mut *self.0).boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, std::io::Result<()>> {
        close(&mut *self.0).boxed()
    }
}

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
    go_on(upgrade, conversation(protocol));
    Ok(Answer::Raw(response))
}

/// It ends with what it tells, or with the client.
fn go_on(upgrade: OnUpgrade, conversation: Conversation) {
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            conversation(Box::new(TokioIo::new(upgraded))).await;
        }
    });
}

/// What a request is to go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpgradeTo {
    /// A websocket.
    WebSocket,
    /// SPDY/3.1.
    Spdy,
}

/// What the headers ask for; none where they ask for nothing that is known.
pub(crate) fn wanted(headers: &HeaderMap) -> Option<UpgradeTo> {
    if websocket::is_wanted(headers) {
        return Some(UpgradeTo::WebSocket);
    }
    let has =
        |name, word: &str| text(headers, name).split(',').any(|it| it.trim().eq_ignore_ascii_case(word));
    (has(CONNECTION, "upgrade") && has(UPGRADE, SPDY)).then_some(UpgradeTo::Spdy)
}

/// Agrees on the first of the client's protocols that is among `known`, and goes on in SPDY.
///
/// # Errors
/// 403, as upstream's handshake (`httpstream.Handshake`) answers when there is none.
pub(crate) fn accept_spdy(
    headers: &HeaderMap,
    upgrade: OnUpgrade,
    known: &[&'static str],
    conversation: impl FnOnce(&'static str) -> Conversation,
) -> Result<Answer, Status> {
    let offers = headers.get_all(SPDY_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let offered: Vec<&str> = offers.flat_map(|value| value.split(',')).map(str::trim).collect();
    let is_old = offered.is_empty() && known.contains(&"");
    let chosen = offered.iter().find_map(|offer| known.iter().find(|known| *known == offer).copied());
    let Some(protocol) = chosen.or(is_old.then_some("")) else {
        let why = format!(
            "unable to upgrade: unable to negotiate protocol: client supports {offered:?}, server accepts {known:?}"
        );
        return Err(Status::failure(403, "Forbidden", why));
    };
    let mut response = ApiResponse::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(SPDY));
    response.headers_mut().insert(SPDY_PROTOCOL, HeaderValue::from_static(protocol));
    go_on(upgrade, conversation(protocol));
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
