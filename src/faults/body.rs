//! Bodies that end before their end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use http_body::{Frame, SizeHint};

use apimachinery::wire::{ApiResponse, Severed, WatchStream};
use clock::Clock;

/// How long what is sent before a cut has to leave the server: the error that cuts drops what has not.
const LEAVE_TIME: Duration = Duration::from_millis(100);

/// So many bytes of a body, and then an error.
struct CutShort {
    body: Body,
    left: u64,
    /// Goes by between the last byte and the error; none where nothing is to arrive.
    leaving: Option<BoxFuture<'static, ()>>,
}

/// Where an answer that is being sent is told to end.
#[derive(Default)]
pub(crate) struct BodyGate {
    state: AtomicU8,
    waker: AtomicWaker,
}

const OPEN: u8 = 0;
const CLOSED: u8 = 1;
const BROKEN: u8 = 2;

/// A body that ends when its gate says so.
struct GatedBody {
    body: Body,
    gate: Arc<BodyGate>,
}

/// An answer of which nothing arrives.
pub(crate) fn severed() -> ApiResponse {
    let mut response =
        http::Response::new(Body::new(CutShort { body: Body::empty(), left: 0, leaving: None }));
    response.extensions_mut().insert(Severed);
    response
}

/// An answer of which its head and the first bytes arrive. What its extensions say of the body is true no
/// longer.
pub(crate) fn cut_short(response: ApiResponse, bytes: u64, clock: &Clock) -> ApiResponse {
    let (mut parts, body) = response.into_parts();
    let is_watch = parts.extensions.get::<WatchStream>().copied();
    parts.extensions.clear();
    if let Some(watch) = is_watch {
        parts.extensions.insert(watch);
    }
    let clock = clock.clone();
    let leaving: BoxFuture<'static, ()> = Box::pin(async move { clock.pause_outside(LEAVE_TIME).await });
    http::Response::from_parts(parts, Body::new(CutShort { body, left: bytes, leaving: Some(leaving) }))
}

/// An answer that can be ended while it is sent.
pub(crate) fn gated(response: ApiResponse, gate: Arc<BodyGate>) -> ApiResponse {
    response.map(|body| Body::new(GatedBody { body, gate }))
}

impl BodyGate {
    /// Whether nobody has told it to end.
    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == OPEN
    }

    /// The answer ends here, as if there were no more.
    pub(crate) fn close(&self) {
        self.end(CLOSED);
    }

    /// The connection ends here.
    pub(crate) fn break_off(&self) {
        self.end(BROKEN);
    }

    fn end(&self, state: u8) {
        self.state.store(state, Ordering::Release);
        self.waker.wake();
    }
}

impl CutShort {
    fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(leaving) = &mut self.leaving {
            ready!(leaving.as_mut().poll(cx));
            self.leaving = None;
        }
        Poll::Ready(Some(Err(reset())))
    }
}

fn reset() -> axum::Error {
    axum::Error::new(io::Error::from(io::ErrorKind::ConnectionReset))
}

impl http_body::Body for CutShort {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.left == 0 {
            return self.poll_cut(cx);
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
            // It was shorter: the connection ends all the same, before its end is seen.
            self.left = 0;
            return self.poll_cut(cx);
        };
        let left = self.left;
        let frame =
            frame?.map_data(|data| data.slice(..data.len().min(usize::try_from(left).unwrap_or(usize::MAX))));
        self.left -= frame.data_ref().map_or(0, |data| data.len() as u64);
        Poll::Ready(Some(Ok(frame)))
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl http_body::Body for GatedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // In front of the look: whoever ends it behind that wakes this task.
        self.gate.waker.register(cx.waker());
        match self.gate.state.load(Ordering::Acquire) {
            OPEN => Pin::new(&mut self.body).poll_frame(cx),
            CLOSED => Poll::Ready(None),
            _ => Poll::Ready(Some(Err(reset()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use http_body_util::BodyExt;

    async fn read(mut body: Body) -> (String, bool) {
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => read.extend(frame.into_data().unwrap()),
                Err(_) => return (String::from_utf8(read).unwrap(), true),
            }
        }
        (String::from_utf8(read).unwrap(), false)
    }

    #[tokio::test]
    async fn a_body_is_cut_in_its_middle_or_at_its_end() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        for (bytes, expected) in [(0, ""), (3, "hel"), (5, "hello"), (9, "hello")] {
            let response = cut_short(http::Response::new(Body::from("hello")), bytes, &clock);
            assert_eq!(read(response.into_body()).await, (expected.into(), true), "{bytes}");
        }
        let response = severed();
        assert!(response.extensions().get::<Severed>().is_some());
        assert_eq!(read(response.into_body()).await, (String::new(), true));
    }

    /// Whoever sends the body has nothing else to do in between, and so sends what it has.
    #[tokio::test]
    async fn the_sender_waits_between_the_last_byte_and_the_cut() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let mut body = cut_short(http::Response::new(Body::from("hello")), 3, &clock).into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "hel");
        assert!(futures::poll!(std::pin::pin!(body.frame())).is_pending());
        assert_eq!(clock.work().count(), 1, "it is under way");
        assert!(body.frame().await.unwrap().is_err());
        assert_eq!(clock.work().count(), 0);
    }

    #[tokio::test]
    async fn a_gate_ends_what_waits() {
        for (end, is_error) in [(BodyGate::close as fn(&BodyGate), false), (BodyGate::break_off, true)] {
            let gate = Arc::new(BodyGate::default());
            let never = Body::from_stream(futures::stream::pending::<Result<Bytes, io::Error>>());
            let response = gated(http::Response::new(never), gate.clone());
            let reading = tokio::spawn(read(response.into_body()));
            tokio::task::yield_now().await;
            end(&gate);
            assert_eq!(reading.await.unwrap(), (String::new(), is_error));
        }
    }
}
