//! What is sent: one message, or messages as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc;

/// Messages that wait for their turn on one stream. A request for progress that finds no room is left out:
/// one is under way.
const WAITING: usize = 8;

/// A request's body.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// One message.
    Once(Option<Bytes>),
    /// Messages until the sender is dropped.
    Many(mpsc::Receiver<Bytes>),
}

impl RequestBody {
    /// One that is written to later.
    pub(crate) fn open() -> (mpsc::Sender<Bytes>, RequestBody) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (sender, RequestBody::Many(receiver))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut *self {
            RequestBody::Once(message) => Poll::Ready(message.take()),
            RequestBody::Many(messages) => messages.poll_recv(context),
        };
        next.map(|message| message.map(|message| Ok(Frame::data(message))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, RequestBody::Once(None))
    }
}
