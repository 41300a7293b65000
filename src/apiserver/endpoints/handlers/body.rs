//! Reads the body of a request: bytes up to the limit, its media type, the object in it (`handlers/rest.go`).

use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body::Frame;
use http_body_util::BodyExt;
use serde_json::Value;

use super::body_budget::{BodyBudget, Counted, SMALL_BYTES};
use super::form::Raw;
use crate::endpoints::response::negotiation::unsupported_media_type;
use crate::request::Announced;
use apimachinery::decode::BodyFormat;
use apimachinery::patch::Document;
use apimachinery::status::Status;
use apimachinery::wire::DecodedBody;
use component_base::metrics::Histogram;

/// Upstream's `MaxRequestBodyBytes`.
pub(crate) const MAX_BYTES: usize = 3 * 1024 * 1024;
/// What is read of a body that is too large, and thrown away: a client that is cut off while it still sends
/// may never see the answer.
const MAX_DRAINED_BYTES: usize = 8 * MAX_BYTES;
const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The body of a request: bytes to come, or a tree from a caller in this process.
pub(crate) enum Input {
    /// From a socket.
    Bytes(BodySource),
    /// Already decoded.
    Decoded(Arc<Value>),
}

/// Bytes to come.
pub(crate) struct BodySource {
    /// Where from.
    pub body: Body,
    /// How much may be read of all bodies.
    pub bodies: BodyBudget,
    /// Where it is said when there are many.
    pub announced: Announced,
    /// Where it is counted how many there were.
    pub sizes: Option<Arc<Histogram>>,
}

/// A patch, read.
pub(crate) enum PatchBody {
    /// From a socket.
    Text(Bytes),
    /// From a caller in this process.
    Tree(Arc<Value>),
}

impl PatchBody {
    /// What is to be applied.
    pub(crate) fn document(&self) -> Document<'_> {
        match self {
            PatchBody::Text(text) => Document::Text(text),
            PatchBody::Tree(tree) => Document::Tree(tree),
        }
    }

    /// As a tree; nothing where it is no JSON.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            PatchBody::Text(text) => serde_json::from_slice(text).unwrap_or_default(),
            PatchBody::Tree(tree) => (**tree).clone(),
        }
    }
}

impl Input {
    /// What came with the request.
    pub(crate) fn new(source: BodySource, decoded: Option<DecodedBody>) -> Input {
        match decoded {
            Some(DecodedBody(value)) => Input::Decoded(value),
            None => Input::Bytes(source),
        }
    }

    /// All bytes. Where they are many, the caller then is on a thread that may be kept busy.
    ///
    /// # Errors
    /// 413 above the limit; 400 when the client goes away in the middle; 429 when it stops in the middle, and
    /// others want to go on.
    pub(crate) async fn bytes(self, headers: &HeaderMap) -> Result<Bytes, Status> {
        let source = match self {
            Input::Bytes(source) => source,
            Input::Decoded(value) => return Ok(value.to_string().into()),
        };
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        source.read(length).await
    }

    /// All of a patch: its bytes, or its tree.
    ///
    /// # Errors
    /// As [`Input::bytes`].
    pub(crate) async fn patch(self, headers: &HeaderMap) -> Result<PatchBody, Status> {
        match self {
            Input::Decoded(value) => Ok(PatchBody::Tree(value)),
            body => body.bytes(headers).await.map(PatchBody::Text),
        }
    }

    /// All of it, or nothing where there is no body: then its media type does not matter.
    ///
    /// # Errors
    /// As [`Input::read`].
    pub(crate) async fn read_if_any(self, headers: &HeaderMap) -> Result<Option<Raw>, Status> {
        let bytes = match self {
            Input::Decoded(value) => return Ok(Some(Raw::Tree(Arc::unwrap_or_clone(value)))),
            body => body.bytes(headers).await?,
        };
        if bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some(Raw::Bytes(bytes, format(headers)?)))
    }

    /// All of it, with how it is written.
    ///
    /// # Errors
    /// 415 for a media type that is none of ours; as [`Input::bytes`].
    pub(crate) async fn read(self, headers: &HeaderMap) -> Result<Raw, Status> {
        if let Input::Decoded(value) = self {
            return Ok(Raw::Tree(Arc::unwrap_or_clone(value)));
        }
        let format = format(headers)?;
        Ok(Raw::Bytes(self.bytes(headers).await?, format))
    }
}

impl BodySource {
    async fn read(self, length: Option<usize>) -> Result<Bytes, Status> {
        let BodySource { mut body, bodies, announced, sizes } = self;
        if length.is_none_or(|length| length <= MAX_BYTES)
            && let Some((bytes, counted)) = collect(&mut body, &bodies).await?
        {
            if let Some(sizes) = sizes {
                sizes.observe_amount(bytes.len() as u64);
            }
            announced.bytes(bytes.len()).await;
            // While it waited for a thread, it was held.
            drop(counted);
            return Ok(bytes);
        }
        drain(body).await;
        Err(too_large())
    }
}

/// All of a body, and the account of one that is not small; nothing when it is too long.
async fn collect(body: &mut Body, bodies: &BodyBudget) -> Result<Option<(Bytes, Option<Counted>)>, Status> {
    let mut length = 0;
    let mut first: Option<Bytes> = None;
    // Behind one another: each part of a few bytes by itself would hold many times what is counted.
    let mut all = BytesMut::new();
    let mut counted: Option<Counted> = None;
    while let Some(part) = next_part(body, &mut counted).await? {
        length += part.len();
        if length > MAX_BYTES {
            return Ok(None);
        }
        match &mut counted {
            Some(counted) => counted.add(part.len())?,
            None if length > SMALL_BYTES => counted = Some(bodies.count(length)?),
            None => {}
        }
        if first.is_none() && all.is_empty() {
            first = Some(part);
            continue;
        }
        if let Some(first) = first.take() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&part);
    }
    counted.as_mut().map(Counted::complete).transpose()?;
    let bytes = first.unwrap_or_else(|| all.freeze());
    Ok(Some((bytes, counted)))
}

/// What comes next; nothing at the end.
async fn next_part(body: &mut Body, counted: &mut Option<Counted>) -> Result<Option<Bytes>, Status> {
    loop {
        let frame = match counted {
            None => body.frame().await,
            Some(counted) => tokio::select! {
                biased;
                status = counted.given_up() => return Err(status),
                frame = body.frame() => frame,
            },
        };
        let frame = frame.transpose();
        let frame = frame.map_err(|error| Status::bad_request(format!("error reading the body: {error}")))?;
        match frame.map(Frame::into_data) {
            None => return Ok(None),
            Some(Ok(data)) => return Ok(Some(data)),
            // Trailers say nothing here.
            Some(Err(_)) => {}
        }
    }
}

/// How the body is written; JSON when it does not say.
fn format(headers: &HeaderMap) -> Result<BodyFormat, Status> {
    BodyFormat::of(headers).ok_or_else(|| unsupported_media_type(ACCEPTED))
}

/// The content type of a patch without parameters. Of these letter case counts.
pub(crate) fn patch_media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

async fn drain(mut body: Body) {
    let mut drained = 0;
    while let Some(Ok(frame)) = body.frame().await {
        drained += frame.data_ref().map_or(0, Bytes::len);
        if drained > MAX_DRAINED_BYTES {
            return;
        }
    }
}

fn too_large() -> Status {
    let text = format!("Request entity too large: limit is {MAX_BYTES}");
    Status::failure(413, "RequestEntityTooLarge", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream::{self, StreamExt};
    use std::convert::Infallible;

    const PART: usize = 50 * 1024;

    /// A client that sends so many parts and then nothing, or one that ends there.
    fn source(parts: usize, ends: bool, bodies: &BodyBudget) -> BodySource {
        let sent = stream::iter(vec![Ok::<_, Infallible>(Bytes::from(vec![b'x'; PART])); parts]);
        let body =
            if ends { Body::from_stream(sent) } else { Body::from_stream(sent.chain(stream::pending())) };
        BodySource { body, bodies: bodies.clone(), announced: Announced::default(), sizes: None }
    }

    #[tokio::test]
    async fn half_sent_bodies_make_room_for_those_that_are_sent() {
        let bodies = BodyBudget::at_most(10 * PART);
        let half_sent: Vec<_> = (0..5).map(|_| tokio::spawn(source(2, false, &bodies).read(None))).collect();
        tokio::task::yield_now().await;
        let small = tokio::spawn(source(1, false, &bodies).read(None));
        let read = source(9, true, &bodies).read(None).await.unwrap();
        assert_eq!(read.len(), 9 * PART);
        for half_sent in half_sent {
            let refused = half_sent.await.unwrap().unwrap_err();
            assert_eq!((refused.code, refused.details.unwrap().retry_after_seconds), (429, 1));
        }
        assert!(!small.is_finished());
        small.abort();
        assert_eq!(source(10, true, &bodies).read(None).await.unwrap().len(), 10 * PART);
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_refused_wherever_that_is_found() {
        let bodies = BodyBudget::default();
        for length in [None, Some(MAX_BYTES + 1)] {
            let refused = source(MAX_BYTES / PART + 1, true, &bodies).read(length).await.unwrap_err();
            assert_eq!(refused.code, 413);
        }
    }
}
