//! Reads the body of a request: bytes up to the limit, its media type, the object in it (`handlers/rest.go`).

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use super::form::Raw;
use super::negotiation::unsupported_media_type;
use crate::apimachinery::decode::Format;
use crate::apimachinery::patch::Document;
use crate::apimachinery::protobuf;
use crate::apimachinery::status::Status;
use crate::apimachinery::wire::DecodedBody;

/// Upstream's `MaxRequestBodyBytes`.
pub(super) const MAX_BYTES: usize = 3 * 1024 * 1024;
/// What is read of a body that is too large, and thrown away: a client that is cut off while it still sends
/// may never see the answer.
const MAX_DRAINED_BYTES: usize = 8 * MAX_BYTES;
const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The body of a request: bytes to come, or a tree from a caller in this process.
pub(super) enum Input {
    /// From a socket.
    Bytes(Body),
    /// Already decoded.
    Decoded(Arc<Value>),
}

/// A patch, read.
pub(super) enum PatchBody {
    /// From a socket.
    Text(Bytes),
    /// From a caller in this process.
    Tree(Arc<Value>),
}

impl PatchBody {
    /// What is to be applied.
    pub fn document(&self) -> Document<'_> {
        match self {
            PatchBody::Text(text) => Document::Text(text),
            PatchBody::Tree(tree) => Document::Tree(tree),
        }
    }

    /// As a tree; nothing where it is no JSON.
    pub fn to_value(&self) -> Value {
        match self {
            PatchBody::Text(text) => serde_json::from_slice(text).unwrap_or_default(),
            PatchBody::Tree(tree) => (**tree).clone(),
        }
    }
}

impl Input {
    /// What came with the request.
    pub fn new(body: Body, decoded: Option<DecodedBody>) -> Input {
        match decoded {
            Some(DecodedBody(value)) => Input::Decoded(value),
            None => Input::Bytes(body),
        }
    }

    /// All bytes.
    ///
    /// # Errors
    /// 413 above the limit; 400 when the client goes away in the middle.
    pub async fn bytes(self, headers: &HeaderMap) -> Result<Bytes, Status> {
        let body = match self {
            Input::Bytes(body) => body,
            Input::Decoded(value) => return Ok(value.to_string().into()),
        };
        let announced =
            headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        let mut body = body;
        if announced.is_none_or(|length| length <= MAX_BYTES) {
            match Limited::new(&mut body, MAX_BYTES).collect().await {
                Ok(collected) => return Ok(collected.to_bytes()),
                Err(error) if error.is::<LengthLimitError>() => {}
                Err(error) => return Err(Status::bad_request(format!("error reading the body: {error}"))),
            }
        }
        drain(body).await;
        Err(too_large())
    }

    /// All of a patch: its bytes, or its tree.
    ///
    /// # Errors
    /// As [`Input::bytes`].
    pub async fn patch(self, headers: &HeaderMap) -> Result<PatchBody, Status> {
        match self {
            Input::Decoded(value) => Ok(PatchBody::Tree(value)),
            body => body.bytes(headers).await.map(PatchBody::Text),
        }
    }

    /// All of it, or nothing where there is no body: then its media type does not matter.
    ///
    /// # Errors
    /// As [`Input::read`].
    pub async fn read_if_any(self, headers: &HeaderMap) -> Result<Option<Raw>, Status> {
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
    pub async fn read(self, headers: &HeaderMap) -> Result<Raw, Status> {
        if let Input::Decoded(value) = self {
            return Ok(Raw::Tree(Arc::unwrap_or_clone(value)));
        }
        let format = format(headers)?;
        Ok(Raw::Bytes(self.bytes(headers).await?, format))
    }
}

/// How the body is written; JSON when it does not say.
fn format(headers: &HeaderMap) -> Result<Format, Status> {
    match media_type(headers).as_str() {
        "" | "application/json" => Ok(Format::Json),
        "application/yaml" => Ok(Format::Yaml),
        protobuf::MEDIA_TYPE => Ok(Format::Protobuf),
        _ => Err(unsupported_media_type(ACCEPTED)),
    }
}

/// The content type without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
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
