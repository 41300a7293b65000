//! Bytes in the form that a client reads, compressed where that is worth it
//! (`endpoints/handlers/responsewriters`).

use std::io::Write;

use axum::body::Body;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;

use super::json::indent;
use super::negotiation::Output;
use apimachinery::accept::MediaType;
use apimachinery::wire::ApiResponse;
use apimachinery::yaml;

/// Answers larger than this are compressed for clients that can read that (upstream's threshold).
const GZIP_THRESHOLD_BYTES: usize = 128 * 1024;

/// Bytes as the client wants them: JSON as it is, with line breaks or as YAML, and protobuf; compressed.
pub(crate) fn write_bytes(headers: &HeaderMap, output: &Output, code: u16, bytes: Bytes) -> ApiResponse {
    let body = match output.media_type {
        MediaType::Yaml => to_yaml(&bytes),
        MediaType::Json if output.pretty => with_newline(indent(&bytes)),
        MediaType::Json => with_newline(bytes.into()),
        MediaType::Protobuf => bytes,
    };
    let media_type = output.media_type.name();
    let mut response = ApiResponse::default();
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    *response.body_mut() = Body::from(compress(headers, response.headers_mut(), body));
    response
}

/// A redirect for good.
pub(crate) fn moved(location: &str) -> ApiResponse {
    let mut response = ApiResponse::default();
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

fn with_newline(mut bytes: Vec<u8>) -> Bytes {
    bytes.push(b'\n');
    bytes.into()
}

fn to_yaml(json: &[u8]) -> Bytes {
    let tree: Value = serde_json::from_slice(json).expect("we wrote JSON");
    yaml::to_string(&tree).into()
}

/// Whether an answer of so many bytes is compressed for this client.
pub(crate) fn is_compressed(request: &HeaderMap, bytes: usize) -> bool {
    bytes >= GZIP_THRESHOLD_BYTES && reads_gzip(request)
}

/// Compresses what is worth it.
pub(crate) fn compress(request: &HeaderMap, answer: &mut HeaderMap, body: Bytes) -> Bytes {
    if !is_compressed(request, body.len()) {
        return body;
    }
    answer.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    answer.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    gzip(&body)
}

/// Quickly rather than well.
pub(crate) fn gzip(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.expect("memory does not refuse").into()
}

fn reads_gzip(request: &HeaderMap) -> bool {
    let accepted = request.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|part| part.split(';').next().unwrap_or_default().trim() == "gzip")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_are_compressed_on_request() {
        let mut request = HeaderMap::new();
        let mut answer = HeaderMap::new();
        let body = Bytes::from(vec![b'a'; GZIP_THRESHOLD_BYTES]);
        assert_eq!(compress(&request, &mut answer, body.clone()).len(), body.len());
        request.insert(ACCEPT_ENCODING, HeaderValue::from_static("br, gzip;q=0.9"));
        assert!(compress(&request, &mut answer, body).len() < 2000);
        assert_eq!(answer[CONTENT_ENCODING], "gzip");
    }
}
