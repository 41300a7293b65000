//! What a handler leaves of a request's body is read before the answer goes out, as Go's server does: a
//! client that is refused early would else find its connection closed with the next request already in it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request, Response, Version};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sync::Mutex;

/// Go's `maxPostHandlerReadBytes`. Behind a body that is longer the connection ends.
const MAX_BYTES: usize = 256 * 1024;
/// So long a client may take to send what nobody reads; then the connection ends, too.
const PATIENCE: Duration = Duration::from_secs(5);

/// The rest of a body, once its reader has let go of it.
#[derive(Default)]
pub(super) struct Rest(Option<Arc<Mutex<Option<Incoming>>>>);

/// A body that comes back when it is dropped before its end.
struct Lent {
    body: Option<Incoming>,
    back: Arc<Mutex<Option<Incoming>>>,
}

/// A request for handlers, and where the rest of its body will be. A client that waits to be asked for its
/// body (`Expect`) is not asked for what nobody reads.
pub(super) fn lend(request: Request<Incoming>) -> (Request<Body>, Rest) {
    if request.body().is_end_stream() || request.headers().contains_key(EXPECT) {
        return (request.map(Body::new), Rest::default());
    }
    let back = Arc::new(Mutex::new(None));
    let request = request.map(|body| Body::new(Lent { body: Some(body), back: back.clone() }));
    (request, Rest(Some(back)))
}

impl Rest {
    /// Reads it, or has the connection end with this answer.
    pub(super) async fn finish(self, response: &mut Response<Body>, version: Version) {
        let back = self.0.and_then(|back| back.lock().take());
        let Some(body) = back else { return };
        let is_read = tokio::time::timeout(PATIENCE, discard(body)).await.unwrap_or(false);
        if !is_read && version < Version::HTTP_2 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Whether that was all.
async fn discard(mut body: Incoming) -> bool {
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MAX_BYTES {
            return false;
        }
    }
    true
}

impl http_body::Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            *self.back.lock() = Some(body);
        }
    }
}
