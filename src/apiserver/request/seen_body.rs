//! A body of which the beginning is kept while somebody reads it.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use flow::PassingBytes;
use http_body::{Frame, SizeHint};

/// What passes by in this body from now on.
pub fn seen(body: &mut Body) -> PassingBytes {
    let passing = PassingBytes::default();
    let seen = SeenBody { body: std::mem::take(body), passing: passing.clone() };
    *body = Body::new(seen);
    passing
}

struct SeenBody {
    body: Body,
    passing: PassingBytes,
}

impl http_body::Body for SeenBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
        {
            self.passing.add(bytes);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
