//! Heads that are no requests: hyper refuses them before a handler hears of them, with a code and nothing
//! else. Here its refusals become those of Go's server (`net/http`, `conn.serve`), which say why in a body.
//!
//! A connection's bytes pass as they are. Only what is written while no handler has anything to say can be
//! such a refusal.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use apimachinery::connection_cut::ConnectionCut;
use bytes::{Buf, Bytes};
use http::{StatusCode, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

/// How long what a refused client goes on to say is read and dropped (Go's `rstAvoidanceDelay`): hung up on
/// at once, it might never read why.
const LINGER: Duration = Duration::from_millis(500);
/// How much of that is read; beyond it the connection ends at once.
const MAX_LINGER_BYTES: usize = 1 << 20;

/// Whose words are written to a connection.
#[derive(Clone, Default)]
pub(super) struct AnswerSpeaker(Arc<Spoken>);

#[derive(Default)]
struct Spoken {
    /// How many handlers answer.
    turns: AtomicUsize,
    /// Of an answer that is over not all may be on its way.
    is_unsent: AtomicBool,
    /// It is not HTTP/1 any more.
    is_other: AtomicBool,
    /// By what it may be ended from elsewhere; only where it is to go on with another protocol.
    cut: OnceLock<ConnectionCut>,
}

/// A handler's turn; it ends when the answer's body is dropped.
pub(super) struct AnswerTurn(AnswerSpeaker);

/// A connection whose refusals are explained.
pub(super) struct Explained<S> {
    stream: S,
    speaker: AnswerSpeaker,
    /// What is still to be written instead of hyper's words.
    instead: Option<Bytes>,
    lingering: Option<LingeringSocket>,
    /// Its place among the connections.
    _place: Arc<OwnedSemaphorePermit>,
}

struct LingeringSocket {
    until: Pin<Box<Sleep>>,
    read: usize,
}

impl AnswerSpeaker {
    /// A request of that version was understood.
    pub(super) fn begin(&self, version: Version) -> AnswerTurn {
        self.0.turns.fetch_add(1, Ordering::AcqRel);
        if version >= Version::HTTP_2 {
            self.0.is_other.store(true, Ordering::Release);
        }
        AnswerTurn(self.clone())
    }

    /// By what the connection may be ended, once it has asked to go on with another protocol.
    pub(super) fn cut(&self) -> ConnectionCut {
        self.0.cut.get_or_init(ConnectionCut::default).clone()
    }

    fn is_cut(&self) -> bool {
        self.0.cut.get().is_some_and(ConnectionCut::is_made)
    }

    /// Whether what is written now is hyper's own.
    fn is_idle(&self) -> bool {
        let Spoken { turns, is_unsent, is_other, .. } = &*self.0;
        turns.load(Ordering::Acquire) == 0
            && !is_unsent.load(Ordering::Acquire)
            && !is_other.load(Ordering::Acquire)
    }
}

impl AnswerTurn {
    /// The answer has that code: with one of them the connection becomes another protocol's.
    pub(super) fn answers(&self, code: StatusCode) {
        if code == StatusCode::SWITCHING_PROTOCOLS {
            self.0.0.is_other.store(true, Ordering::Release);
        }
    }
}

impl Drop for AnswerTurn {
    fn drop(&mut self) {
        self.0.0.is_unsent.store(true, Ordering::Release);
        self.0.0.turns.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<S> Explained<S> {
    /// A connection, and what has to be told when a handler speaks on it.
    pub(super) fn new(stream: S, place: Arc<OwnedSemaphorePermit>) -> (Explained<S>, AnswerSpeaker) {
        let speaker = AnswerSpeaker::default();
        let stream =
            Explained { stream, speaker: speaker.clone(), instead: None, lingering: None, _place: place };
        (stream, speaker)
    }

    fn is_refused(&self) -> bool {
        self.instead.is_some()
    }
}

impl<S: AsyncWrite + Unpin> Explained<S> {
    /// Writes the better words; `length` is what they stand for.
    fn explain(&mut self, cx: &mut Context<'_>, length: usize) -> Poll<io::Result<usize>> {
        let Some(rest) = &mut self.instead else { return Poll::Ready(Ok(length)) };
        while rest.has_remaining() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            rest.advance(written);
        }
        Poll::Ready(Ok(length))
    }
}

impl<S: AsyncRead + Unpin> Explained<S> {
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let start = || LingeringSocket { until: Box::pin(tokio::time::sleep(LINGER)), read: 0 };
        let lingering = self.lingering.get_or_insert_with(start);
        let mut scratch = [0; 4096];
        while lingering.read < MAX_LINGER_BYTES {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return lingering.until.as_mut().poll(cx),
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => lingering.read += buffer.filled().len(),
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(())
    }
}

/// What Go's server says instead of a refusal of hyper's.
fn explanation(written: &[u8]) -> Option<Bytes> {
    let code = written.strip_prefix(b"HTTP/1.1 ").or_else(|| written.strip_prefix(b"HTTP/1.0 "))?;
    let says = match code.get(..3)? {
        b"400" => "400 Bad Request",
        b"414" => "414 Request URI Too Long",
        b"431" => "431 Request Header Fields Too Large",
        _ => return None,
    };
    let headers = "Content-Type: text/plain; charset=utf-8\r\nConnection: close";
    Some(format!("HTTP/1.1 {says}\r\n{headers}\r\n\r\n{says}").into())
}

impl<S: AsyncWrite + AsyncRead + Unpin> AsyncWrite for Explained<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.speaker.is_cut() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.speaker.is_idle() && !self.is_refused() {
            self.instead = bytes.first().and_then(|first| explanation(first));
        }
        if self.is_refused() {
            return self.explain(cx, bytes.iter().map(|slice| slice.len()).sum());
        }
        match bytes {
            [only] => Pin::new(&mut self.stream).poll_write(cx, only),
            several => Pin::new(&mut self.stream).poll_write_vectored(cx, several),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        self.speaker.0.is_unsent.store(false, Ordering::Release);
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        if self.is_refused() {
            ready!(self.linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Explained<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.speaker.is_cut() {
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        match self.speaker.0.cut.get() {
            Some(cut) if read.is_pending() => cut.poll_made(cx).map(Ok),
            _ => read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const REFUSAL: &[u8] = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
    const EXPLAINED: &str = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; \
                             charset=utf-8\r\nConnection: close\r\n\r\n431 Request Header Fields Too Large";

    fn place() -> Arc<OwnedSemaphorePermit> {
        Arc::new(Arc::new(tokio::sync::Semaphore::new(1)).try_acquire_owned().unwrap())
    }

    #[tokio::test]
    async fn only_what_nobody_else_says_is_explained() {
        for (version, code, drops, is_explained) in [
            (None, 200, true, true),
            (Some(Version::HTTP_11), 200, true, true),
            (Some(Version::HTTP_11), 200, false, false),
            (Some(Version::HTTP_11), 101, true, false),
            (Some(Version::HTTP_2), 200, true, false),
        ] {
            // So small that what is said instead goes out in pieces.
            let (near, mut far) = tokio::io::duplex(16);
            let (mut stream, speaker) = Explained::new(near, place());
            let mut turn = version.map(|version| speaker.begin(version));
            turn.iter().for_each(|turn| turn.answers(StatusCode::from_u16(code).unwrap()));
            turn.take_if(|_| drops);
            stream.flush().await.unwrap();
            let mut heard = String::new();
            let speaking = async {
                stream.write_all(REFUSAL).await.unwrap();
                drop(stream);
            };
            let ((), read) = tokio::join!(speaking, far.read_to_string(&mut heard));
            read.unwrap();
            let wanted = if is_explained { EXPLAINED.as_bytes() } else { REFUSAL };
            assert_eq!(heard.as_bytes(), wanted, "{version:?} {code} {drops}");
        }
    }

    #[tokio::test]
    async fn who_is_cut_off_has_hung_up() {
        let (near, mut far) = tokio::io::duplex(64);
        let (mut stream, speaker) = Explained::new(near, place());
        let cut = speaker.cut();
        far.write_all(b"x").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'x');
        let reading = async { stream.read(&mut [0; 8]).await.unwrap() };
        let cutting = async {
            tokio::task::yield_now().await;
            cut.make();
        };
        assert_eq!(tokio::join!(reading, cutting).0, 0);
        assert!(stream.write_all(b"x").await.is_err());
        far.write_all(b"more").await.unwrap();
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "whatever else it says");
    }

    #[tokio::test]
    async fn whoever_is_refused_is_listened_to_for_a_while() {
        let (near, mut far) = tokio::io::duplex(2 * MAX_LINGER_BYTES);
        let (mut stream, _) = Explained::new(near, place());
        stream.write_all(REFUSAL).await.unwrap();
        let mut shutdown = Box::pin(stream.shutdown());
        assert!(futures::poll!(&mut shutdown).is_pending(), "there may be more to come");
        far.write_all(b"more").await.unwrap();
        assert!(futures::poll!(&mut shutdown).is_pending());
        far.write_all(&vec![b'x'; MAX_LINGER_BYTES]).await.unwrap();
        shutdown.await.unwrap();
        let (near, far) = tokio::io::duplex(64);
        let (mut stream, _) = Explained::new(near, place());
        drop(far);
        stream.shutdown().await.unwrap();
    }
}
