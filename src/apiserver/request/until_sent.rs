//! Something that is held as long as an answer is being sent, watches and other streams included.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use apimachinery::wire::ApiResponse;

struct Holding<T> {
    body: Body,
    _held: T,
}

/// Lends the answer on; `held` is dropped when its body has ended, or its reader has gone.
pub fn until_sent<T: Send + Unpin + 'static>(response: ApiResponse, held: T) -> ApiResponse {
    response.map(|body| Body::new(Holding { body, _held: held }))
}

impl<T: Unpin> http_body::Body for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
