//! What a request for streams goes on with (`k8s.io/apimachinery/pkg/util/httpstream`): a websocket, whose
//! messages name a channel by their first byte (`wsstream`, `remotecommand`), or SPDY; the handshake of both.

use std::time::Duration;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{CONNECTION, HeaderName, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::asked_streams::AskedStreams;
use super::idle;
use crate::endpoints::response::answer::Answer;
use crate::endpoints::response::unread_watches::{HangUp, Sending};
use crate::endpoints::response::websocket::{self, NORMAL, frame, opening, text};
use crate::kubelet_client::Duplex;
use apimachinery::status::Status;
use apimachinery::wire::ApiResponse;
use clock::Clock;
use network::websocket_frames::{
    BINARY, CLOSE, CONTINUATION, FrameHead, FrameTooLong, PING, PONG, TEXT, take_frame,
};

/// A message of a client is no larger; one that is ends the connection.
pub(super) const MAX_MESSAGE_BYTES: u64 = 1 << 20;
/// Bytes of a message that is sent.
const MESSAGE_BYTES: usize = 32 * 1024;

/// So long somebody is waited for who answers no ping.
const CLIENT_PATIENCE: Duration = Duration::from_millis(500);
/// So long a client has for making its streams that has begun to read.
const STREAMS_TAKE: Duration = Duration::from_millis(20);
/// From here on `kubectl` makes its streams first.
const STREAMS_FIRST: u32 = 34;

/// The channel that says how large the client's window is.
pub(super) const RESIZE: u8 = 4;

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

    /// What the client says next. Whoever does not wait for it to the end has lost nothing.
    fn next(&mut self) -> BoxFuture<'_, std::io::Result<Message>>;

    /// Answers a ping.
    fn pong<'a>(&'a mut self, payload: &'a [u8]) -> BoxFuture<'a, std::io::Result<()>>;

    /// What the client says next; pings are answered.
    fn receive(&mut self) -> BoxFuture<'_, std::io::Result<Message>> {
        async move {
            loop {
                match self.next().await? {
                    Message::Ping(payload) => self.pong(&payload).await?,
                    message => return Ok(message),
                }
            }
        }
        .boxed()
    }

    /// Says goodbye, behind all that was sent.
    fn close(&mut self) -> BoxFuture<'_, std::io::Result<()>>;
}

/// How messages of a websocket name a channel (`wsstream`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelEncoding {
    /// By a byte in front of what is said.
    Binary,
    /// By a digit, in front of base64.
    Base64,
}

impl ChannelEncoding {
    /// Of a protocol by its name.
    pub(crate) fn of(protocol: &str) -> ChannelEncoding {
        if protocol.contains("base64.") { ChannelEncoding::Base64 } else { ChannelEncoding::Binary }
    }

    fn encode(self, channel: Option<u8>, bytes: &[u8]) -> (u8, Vec<u8>) {
        match self {
            ChannelEncoding::Binary => (BINARY, channel.into_iter().chain(bytes.iter().copied()).collect()),
            ChannelEncoding::Base64 => {
                let digit = channel.map(|channel| b'0'.wrapping_add(channel));
                (TEXT, digit.into_iter().chain(STANDARD.encode(bytes).into_bytes()).collect())
            }
        }
    }

    /// The channel, and what is said on it; none where that cannot be read.
    fn decode(self, mut payload: Vec<u8>) -> Option<(u8, Vec<u8>)> {
        let channel = payload.remove(0);
        match self {
            ChannelEncoding::Binary => Some((channel, payload)),
            ChannelEncoding::Base64 => Some((channel.wrapping_sub(b'0'), STANDARD.decode(payload).ok()?)),
        }
    }
}

/// Channels as messages of a websocket.
pub(crate) struct WebSocket {
    io: Box<dyn Duplex>,
    encoding: ChannelEncoding,
    /// What came of a frame that is not whole. Bound: [`MAX_MESSAGE_BYTES`] and a head.
    buffer: BytesMut,
    /// What further frames of a message belong to.
    channel: u8,
}

impl WebSocket {
    pub(crate) fn new(io: Box<dyn Duplex>, encoding: ChannelEncoding) -> WebSocket {
        WebSocket { io, encoding, buffer: BytesMut::new(), channel: 0 }
    }

    async fn read_next(&mut self) -> std::io::Result<Message> {
        loop {
            match take_frame(&mut self.buffer, MAX_MESSAGE_BYTES) {
                Ok(Some((CLOSE, _))) | Err(FrameTooLong) => return Ok(Message::Close),
                Ok(Some((PING, payload))) => return Ok(Message::Ping(payload)),
                Ok(Some((PONG, _))) => {}
                Ok(Some((_, payload))) if payload.is_empty() => {}
                Ok(Some((CONTINUATION, payload))) => return Ok(Message::Data(self.channel, payload)),
                Ok(Some((_, payload))) => {
                    let Some((channel, bytes)) = self.encoding.decode(payload) else {
                        return Ok(Message::Close);
                    };
                    self.channel = channel;
                    return Ok(Message::Data(channel, bytes));
                }
                Ok(None) => {
                    if self.io.read_buf(&mut self.buffer).await? == 0 {
                        return Ok(Message::Close);
                    }
                }
            }
        }
    }

    /// Waits until the client answers a ping or speaks. What was said stays to be read. Whether it has
    /// answered.
    async fn is_answered(&mut self) -> std::io::Result<bool> {
        self.io.write_all(&frame(PING, b"")).await?;
        self.io.flush().await?;
        loop {
            if let Some((head, _)) = FrameHead::parse(&self.buffer) {
                return Ok(head.opcode == PONG);
            }
            if self.io.read_buf(&mut self.buffer).await? == 0 {
                return Ok(false);
            }
        }
    }

    /// Tells the client nothing before it hears it: client-go before 1.34 begins to read beside making its
    /// streams, and drops what comes for one that is not there yet (kubernetes/kubernetes#131189). A real
    /// kubelet is seldom fast enough to meet that. Whoever speaks has made them; of whoever only reads it is
    /// not known, so it has a moment for them, which is long enough on a machine that is busy.
    pub(crate) async fn await_client(&mut self, clock: &Clock) {
        // One that is gone is found out by whoever speaks to it.
        if let Ok(Ok(true)) = clock.timeout_outside(CLIENT_PATIENCE, self.is_answered()).await {
            clock.pause_outside(STREAMS_TAKE).await;
        }
    }

    async fn send_on(&mut self, channel: u8, bytes: &[u8]) -> std::io::Result<()> {
        send(&mut *self.io, self.encoding, Some(channel), bytes).await
    }

    async fn send_pong(&mut self, payload: &[u8]) -> std::io::Result<()> {
        self.io.write_all(&frame(PONG, &payload[..payload.len().min(125)])).await?;
        self.io.flush().await
    }
}

impl Channels for WebSocket {
    fn send<'a>(&'a mut self, channel: u8, bytes: &'a [u8]) -> BoxFuture<'a, std::io::Result<()>> {
        self.send_on(channel, bytes).boxed()
    }

    fn next(&mut self) -> BoxFuture<'_, std::io::Result<Message>> {
        self.read_next().boxed()
    }

    fn pong<'a>(&'a mut self, payload: &'a [u8]) -> BoxFuture<'a, std::io::Result<()>> {
        self.send_pong(payload).boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, std::io::Result<()>> {
        close(&mut *self.io).boxed()
    }
}

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Bytes on a channel.
    Data(u8, Vec<u8>),
    /// Wants to be answered.
    Ping(Vec<u8>),
    /// The end.
    Close,
}

/// Whether a client may drop what it is told at once: it is made of client-go, by what it calls itself unless
/// it is told otherwise (`kubectl/v1.32.4 (linux/amd64) kubernetes/59526cd`), and no `kubectl` that is new
/// enough.
pub(crate) fn is_late_with_streams(headers: &HeaderMap) -> bool {
    let agent = text(headers, USER_AGENT);
    let minor = agent.strip_prefix("kubectl/v1.").and_then(|version| version.split('.').next());
    let is_new = minor.and_then(|minor| minor.parse().ok()).is_some_and(|minor: u32| minor >= STREAMS_FIRST);
    agent.contains(" kubernetes/") && !is_new
}

/// Agrees on the first of the client's protocols that is among `known`, and goes on with `conversation`.
///
/// # Errors
/// 403, as upstream's handshake answers when there is none.
pub(crate) fn accept(
    asked: &AskedStreams<'_>,
    upgrade: OnUpgrade,
    known: &[&'static str],
    conversation: impl FnOnce(&'static str) -> Conversation,
) -> Result<Answer, Status> {
    let headers = asked.headers;
    let offered = text(headers, SEC_WEBSOCKET_PROTOCOL);
    let chosen = agreed(offered.split(',').map(str::trim), known);
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
    let idle_timeout = asked.kubelets.stream_idle_timeout();
    let sending = asked.unread.map(|unread| unread.begin(&HangUp::default()));
    go_on(asked.clock, (upgrade, sending), idle_timeout, conversation(protocol));
    Ok(Answer::Raw(response))
}

/// The first of the client's protocols that is among `known`.
fn agreed<'a>(mut offers: impl Iterator<Item = &'a str>, known: &[&'static str]) -> Option<&'static str> {
    offers.find_map(|offer| known.iter().find(|known| **known == offer).copied())
}

/// It ends with what it tells, with the client, with the server, or when nobody has said anything for so long
/// (zero is never).
fn go_on(
    clock: &Clock,
    (upgrade, sending): (OnUpgrade, Option<Sending>),
    idle_timeout: Duration,
    conversation: Conversation,
) {
    let own = clock.clone();
    clock.spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            let io = Box::new(TokioIo::new(upgraded));
            idle::until_idle(&own, idle_timeout, (io, sending), conversation).await;
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
    asked: &AskedStreams<'_>,
    upgrade: OnUpgrade,
    known: &[&'static str],
    conversation: impl FnOnce(&'static str) -> Conversation,
) -> Result<Answer, Status> {
    let headers = asked.headers;
    let offers = headers.get_all(SPDY_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let offered: Vec<&str> = offers.flat_map(|value| value.split(',')).map(str::trim).collect();
    let is_old = offered.is_empty() && known.contains(&"");
    let chosen = agreed(offered.iter().copied(), known);
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
    let idle_timeout = asked.kubelets.stream_idle_timeout();
    let sending = asked.unread.map(|unread| unread.begin(&HangUp::default()));
    go_on(asked.clock, (upgrade, sending), idle_timeout, conversation(protocol));
    Ok(Answer::Raw(response))
}

/// Sends bytes on a channel, in as many messages as it takes; without a channel as they are.
pub(crate) async fn send(
    io: &mut dyn Duplex,
    encoding: ChannelEncoding,
    channel: Option<u8>,
    bytes: &[u8],
) -> std::io::Result<()> {
    let mut chunks = bytes.chunks(MESSAGE_BYTES).peekable();
    let empty: &[u8] = &[];
    let first = if chunks.peek().is_none() { Some(empty) } else { None };
    for chunk in first.into_iter().chain(chunks) {
        let (opcode, message) = encoding.encode(channel, chunk);
        io.write_all(&frame(opcode, &message)).await?;
    }
    io.flush().await
}

/// Says goodbye.
pub(crate) async fn close(io: &mut dyn Duplex) -> std::io::Result<()> {
    io.write_all(&frame(CLOSE, &NORMAL)).await?;
    io.flush().await?;
    io.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(io: tokio::io::DuplexStream, encoding: ChannelEncoding) -> WebSocket {
        WebSocket::new(Box::new(io), encoding)
    }

    #[tokio::test]
    async fn messages_go_both_ways() {
        for encoding in [ChannelEncoding::Binary, ChannelEncoding::Base64] {
            let (here, there) = tokio::io::duplex(1 << 16);
            let (mut here, mut there) = (socket(here, encoding), socket(there, encoding));
            here.send(1, &[7; 300]).await.unwrap();
            here.send(2, b"").await.unwrap();
            here.close().await.unwrap();
            assert_eq!(there.receive().await.unwrap(), Message::Data(1, vec![7; 300]), "{encoding:?}");
            assert_eq!(there.receive().await.unwrap(), Message::Data(2, vec![]));
            assert_eq!(there.receive().await.unwrap(), Message::Close);
        }
    }

    #[tokio::test]
    async fn masked_frames_pings_and_pieces_are_understood() {
        let (here, mut client) = tokio::io::duplex(1 << 16);
        let mut here = socket(here, ChannelEncoding::Binary);
        let bytes = [0x02, 0x83, 1, 2, 3, 4, 1, b'a' ^ 2, b'b' ^ 3, 0x89, 1, b'p', 0x80, 1, b'c'];
        // Whoever stops waiting in the middle of a frame loses nothing.
        for byte in bytes {
            client.write_all(&[byte]).await.unwrap();
            if byte == 4 {
                assert!(futures::poll!(here.next()).is_pending());
            }
        }
        assert_eq!(here.next().await.unwrap(), Message::Data(0, b"ab".to_vec()));
        assert_eq!(here.receive().await.unwrap(), Message::Data(0, b"c".to_vec()), "the rest of the first");
        let mut pong = [0; 3];
        client.read_exact(&mut pong).await.unwrap();
        assert_eq!(pong, [0x80 | PONG, 1, b'p']);
    }

    /// What a client hears that answers once and says no more, and what it is heard to say.
    async fn awaited(answer: &[u8]) -> (Vec<u8>, Message) {
        let (here, mut client) = tokio::io::duplex(1 << 16);
        let mut here = socket(here, ChannelEncoding::Binary);
        let talk = async {
            here.await_client(&Clock::real()).await;
            here.send(1, b"hi").await.unwrap();
            here.receive().await.unwrap()
        };
        let answers = async {
            let mut heard = vec![];
            client.read_buf(&mut heard).await.unwrap();
            client.write_all(answer).await.unwrap();
            client.shutdown().await.unwrap();
            while !heard.ends_with(b"hi") && client.read_buf(&mut heard).await.unwrap() > 0 {}
            heard
        };
        let (message, heard) = tokio::join!(talk, answers);
        (heard, message)
    }

    #[tokio::test]
    async fn a_client_is_told_nothing_before_it_reads() {
        let told = [b"\x89\x00".as_slice(), b"\x82\x03\x01hi"].concat();
        assert_eq!(awaited(b"\x8a\x00").await, (told.clone(), Message::Close));
        // Whoever speaks is there, and what was said is heard.
        assert_eq!(awaited(b"\x82\x02\x00a").await, (told.clone(), Message::Data(0, b"a".to_vec())));
        // Nobody is waited for in vain.
        assert_eq!(awaited(b"").await, (told, Message::Close));
    }

    #[test]
    fn clients_that_are_late_with_their_streams_are_known_by_their_names() {
        let by = |agent: &'static str| {
            is_late_with_streams(&HeaderMap::from_iter([(USER_AGENT, HeaderValue::from_static(agent))]))
        };
        assert!(by("kubectl/v1.32.4 (linux/amd64) kubernetes/59526cd"));
        assert!(by("kubectl/v1.33.0-dispatcher (linux/amd64) kubernetes/59526cd"));
        assert!(!by("kubectl/v1.34.0 (linux/amd64) kubernetes/59526cd"));
        assert!(by("manager/v0.0.0 (linux/arm64) kubernetes/$Format"));
        assert!(!by("OpenAPI-Generator/36.0.2/python") && !by(""));
    }

    #[tokio::test]
    async fn what_is_too_long_or_cannot_be_read_ends_it() {
        let huge = [&[0x82, 127][..], &(MAX_MESSAGE_BYTES + 1).to_be_bytes()].concat();
        for bytes in [&huge[..], &[0x81, 2, b'0', b'!'], &[0x82, 5, 0]] {
            let (here, mut client) = tokio::io::duplex(1 << 16);
            client.write_all(bytes).await.unwrap();
            drop(client);
            let mut here = socket(here, ChannelEncoding::Base64);
            assert_eq!(here.receive().await.unwrap(), Message::Close, "{bytes:?}");
        }
    }
}
