//! Watches over a websocket (RFC 6455): what browsers and a few clients ask for instead of a stream of lines
//! (`handlers/watch.go`, `HandleWS`; `golang.org/x/net/websocket`).

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use http::header::{
    CONNECTION, HeaderName, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::printer::Printer;
use super::unread_watches::{HangUp, UnreadWatches};
use crate::metrics::WatchCounts;
use apimachinery::accept::MediaType;
use apimachinery::watch::WatchEvent;
use apimachinery::wire::ApiResponse;
use network::websocket_frames::{self, BINARY, CLOSE, FrameHead, FrameSide, PING, PONG, TEXT};

/// What is hashed with the client's key, so that it knows that it was understood.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const VERSION: &str = "13";
/// The code of a close that nothing is wrong with.
pub(crate) const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();
/// The most that a frame may carry which is not for the user.
const MAX_CONTROL_BYTES: u64 = 125;

/// Whether a request wants one (`wsstream.IsWebSocketRequest`).
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    text(headers, UPGRADE).eq_ignore_ascii_case("websocket")
        && text(headers, CONNECTION).split(',').any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
}

/// What is sent over one.
pub(crate) struct WebSocketWatch {
    /// Writes each event.
    pub printer: Printer,
    /// As what.
    pub media_type: MediaType,
    /// The events.
    pub events: Receiver<WatchEvent>,
    /// Counts what the client does not take.
    pub unread: UnreadWatches,
    /// Counts what is sent.
    pub counts: WatchCounts,
}

/// Opens one and sends the events on it, each as a message of its own: text where it is JSON.
pub(crate) fn watch_response(headers: &HeaderMap, upgrade: OnUpgrade, watch: WebSocketWatch) -> ApiResponse {
    let mut response = ApiResponse::default();
    match accept(headers) {
        Err((code, text)) => {
            *response.status_mut() = code;
            *response.body_mut() = Body::from(text);
            if text == BAD_VERSION {
                response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
            }
        }
        Ok(answer) => {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            *response.headers_mut() = answer;
            // It ends with the events, which end with the server, or with the client.
            tokio::spawn(async move {
                if let Ok(upgraded) = upgrade.await {
                    let _ = send(TokioIo::new(upgraded), watch).await;
                }
            });
        }
    }
    response
}

const BAD_VERSION: &str = "missing or bad WebSocket Version";

/// The headers of the answer that opens a websocket.
fn accept(headers: &HeaderMap) -> Result<HeaderMap, (StatusCode, &'static str)> {
    let key = text(headers, SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return Err((StatusCode::BAD_REQUEST, "mismatch challenge/response"));
    }
    if text(headers, SEC_WEBSOCKET_VERSION) != VERSION {
        return Err((StatusCode::BAD_REQUEST, BAD_VERSION));
    }
    if text(headers, ORIGIN).is_empty() {
        return Err((StatusCode::FORBIDDEN, ""));
    }
    let mut answer = opening(key);
    // One may be named; which of several is meant nobody says.
    match text(headers, SEC_WEBSOCKET_PROTOCOL).trim() {
        "" => {}
        protocols if protocols.contains(',') => return Err((StatusCode::BAD_REQUEST, "")),
        _ => {
            answer.insert(SEC_WEBSOCKET_PROTOCOL, headers[SEC_WEBSOCKET_PROTOCOL].clone());
        }
    }
    Ok(answer)
}

/// The headers that open a websocket for a client, and tell it that its key was understood.
pub(crate) fn opening(key: &str) -> HeaderMap {
    let digest = STANDARD.encode(Sha1::digest(format!("{key}{GUID}")));
    HeaderMap::from_iter([
        (UPGRADE, HeaderValue::from_static("websocket")),
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (SEC_WEBSOCKET_ACCEPT, HeaderValue::from_str(&digest).expect("base64 is plain text")),
    ])
}

pub(crate) fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Until there are no more events, or the client has enough, or takes nothing while all clients together have
/// too much on their way. What it says is heard for nothing else.
async fn send(stream: impl AsyncRead + AsyncWrite, watch: WebSocketWatch) -> std::io::Result<()> {
    let WebSocketWatch { mut printer, media_type, mut events, unread, counts } = watch;
    let opcode = if media_type == MediaType::Json { TEXT } else { BINARY };
    let hang_up = HangUp::default();
    let sending = unread.begin(&hang_up);
    let (reader, mut writer) = tokio::io::split(stream);
    // One ping is answered at a time: a client that sends more of them waits.
    let (pings, mut asked) = mpsc::channel(1);
    let mut closed = std::pin::pin!(read_until_closed(reader, pings));
    loop {
        tokio::select! {
            _ = &mut closed => break,
            () = sending.over() => break,
            Some(ping) = asked.recv() => writer.write_all(&frame(PONG, &ping)).await?,
            event = events.recv() => {
                let Some(event) = event else { break };
                let mut out = BytesMut::new();
                printer.event(&mut out, &event);
                counts.sent(&event, out.len());
                let mut piece = sending.send(frame(opcode, &out).into());
                drop(out);
                tokio::select! {
                    written = writer.write_all_buf(&mut piece) => written?,
                    () = hang_up.asked() => return Ok(()),
                }
                writer.flush().await?;
            }
        }
    }
    // The client may have closed right behind its ping.
    if let Ok(ping) = asked.try_recv() {
        writer.write_all(&frame(PONG, &ping)).await?;
    }
    writer.write_all(&frame(CLOSE, &NORMAL)).await?;
    writer.shutdown().await
}

/// A whole message in one frame of ours.
pub(crate) fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    websocket_frames::frame(FrameSide::Server, opcode, &[payload])
}

/// Reads frames for their pings, until one closes or the connection ends.
async fn read_until_closed(
    mut reader: impl AsyncRead + Unpin,
    pings: Sender<Vec<u8>>,
) -> std::io::Result<()> {
    loop {
        let head = FrameHead::read(&mut reader).await?;
        match head.opcode {
            CLOSE => return Ok(()),
            PING if head.length <= MAX_CONTROL_BYTES => {
                drop(pings.send(head.payload(&mut reader).await?).await)
            }
            _ => {
                let mut rest = (&mut reader).take(head.length);
                tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::response::negotiation::Output;
    use crate::endpoints::response::table::IncludeObject;
    use crate::metrics::Metrics;
    use crate::request::RequestContext;
    use apimachinery::watch::Bookmark;
    use apis::core::config_map::CONFIG_MAPS;
    use clock::Clock;
    use std::sync::Arc;

    fn headers(all: &[(HeaderName, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    /// The example of RFC 6455.
    #[test]
    fn the_key_is_answered() {
        let mut asked = headers(&[
            (UPGRADE, "websocket"),
            (CONNECTION, "keep-alive, Upgrade"),
            (SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ=="),
            (SEC_WEBSOCKET_VERSION, "13"),
        ]);
        assert!(is_wanted(&asked));
        assert_eq!(accept(&asked).unwrap_err().0, StatusCode::FORBIDDEN);
        asked.insert(ORIGIN, HeaderValue::from_static("http://localhost"));
        assert_eq!(accept(&asked).unwrap()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        asked.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("a"));
        assert_eq!(accept(&asked).unwrap()[SEC_WEBSOCKET_PROTOCOL], "a");
        asked.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("a,b"));
        assert_eq!(accept(&asked).unwrap_err().0, StatusCode::BAD_REQUEST);
        asked.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("8"));
        assert_eq!(accept(&asked).unwrap_err().1, BAD_VERSION);
    }

    #[test]
    fn lengths_take_as_much_as_they_need() {
        assert_eq!(frame(TEXT, b"ab"), b"\x81\x02ab");
        assert_eq!(frame(BINARY, &[0; 126])[..4], [0x82, 126, 0, 126]);
        assert_eq!(frame(TEXT, &[0; 65536])[..10], [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[tokio::test]
    async fn pings_are_answered_and_the_rest_is_passed_over_until_the_end() {
        let (pings, mut asked) = mpsc::channel(1);
        let sent: &[u8] = b"\x81\x82\x01\x01\x01\x01zz\x89\x81\x01\x01\x01\x01b\x88\x00rest";
        read_until_closed(sent, pings).await.unwrap();
        assert_eq!(asked.recv().await.unwrap(), b"c");
        assert!(read_until_closed(&b"\x81"[..], mpsc::channel(1).0).await.is_err());
    }

    #[tokio::test]
    async fn a_watch_that_is_not_read_ends_when_all_are_too_much() {
        let (client, server) = tokio::io::duplex(64);
        let (sender, events) = mpsc::channel(4);
        let unread = UnreadWatches::at_most(256);
        let (output, include) = (Output::default(), IncludeObject::Metadata);
        let printer = Printer::new(&CONFIG_MAPS, false, output, include, Clock::real()).unwrap();
        let metrics = Arc::new(Metrics::new(Clock::real(), vec![]));
        let counts = WatchCounts::begin(&metrics, &RequestContext::default());
        let watch =
            WebSocketWatch { printer, media_type: MediaType::Json, events, unread: unread.clone(), counts };
        let bookmark = Bookmark { resource_version: 1, initial_events_end: false };
        sender.send(WatchEvent::Bookmark(bookmark)).await.unwrap();
        let mut sent = Box::pin(send(server, watch));
        assert!(futures::poll!(&mut sent).is_pending(), "nobody reads, and there is room");
        let other = HangUp::default();
        let sending = unread.begin(&other);
        let _piece = sending.send(vec![0; 256].into());
        sent.await.unwrap();
        drop(client);
    }
}
