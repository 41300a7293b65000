//! Content that is there already, for clients that may have it already (Go's `http.ServeContent`, behind
//! `gziphandler`).

use axum::body::Body;
use bytes::Bytes;
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::endpoints::response::writers::gzip;
use apimachinery::wire::ApiResponse;

/// Content that is smaller goes as it is (`gziphandler.DefaultMinSize`).
const GZIP_THRESHOLD_BYTES: usize = 1400;
/// As headers write times.
const TIME: &str = "%a, %d %b %Y %H:%M:%S GMT";

/// What is served, and what tells it from what the client has.
pub(crate) struct Content<'a> {
    pub media_type: &'static str,
    pub body: Bytes,
    /// None where the client is not told.
    pub hash: Option<&'a str>,
    /// Since when it is as it is.
    pub made: DateTime<Utc>,
}

impl Content<'_> {
    /// As it is.
    pub(crate) fn plain(self, request: &Parts) -> ApiResponse {
        let etag = self.hash.map(|hash| format!("\"{hash}\""));
        let mut response = ApiResponse::default();
        if let Some(etag) = &etag {
            put(&mut response, ETAG, etag);
        }
        if let Some(code) = self.is_known(request, etag.as_deref()) {
            *response.status_mut() = code;
            return response;
        }
        put(&mut response, CONTENT_TYPE, self.media_type);
        put(&mut response, LAST_MODIFIED, &self.made.format(TIME).to_string());
        put(&mut response, ACCEPT_RANGES, "bytes");
        *response.body_mut() = Body::from(self.body);
        response
    }

    /// With gzip for those who read it.
    pub(crate) fn compressed(self, request: &Parts) -> ApiResponse {
        let body = self.body.clone();
        let mut response = self.plain(request);
        let is_worth_it = body.len() >= GZIP_THRESHOLD_BYTES && request.method != Method::HEAD;
        if is_worth_it && response.status() == StatusCode::OK && reads_gzip(&request.headers) {
            put(&mut response, CONTENT_ENCODING, "gzip");
            *response.body_mut() = Body::from(gzip(&body));
        }
        response
    }

    /// The code for a client that has it (`checkPreconditions`). A time counts where no tag was sent.
    fn is_known(&self, request: &Parts, etag: Option<&str>) -> Option<StatusCode> {
        let said = |name: HeaderName| request.headers.get(name).and_then(|value| value.to_str().ok());
        let is_read = matches!(request.method, Method::GET | Method::HEAD);
        let is_known = match said(IF_NONE_MATCH) {
            Some(tags) => tags
                .split(',')
                .map(|tag| tag.trim().trim_start_matches("W/"))
                .any(|tag| tag == "*" || Some(tag) == etag),
            None => is_read && said(IF_MODIFIED_SINCE).is_some_and(|since| self.is_not_after(since)),
        };
        let code = if is_read { StatusCode::NOT_MODIFIED } else { StatusCode::PRECONDITION_FAILED };
        is_known.then_some(code)
    }

    fn is_not_after(&self, since: &str) -> bool {
        let made = self.made.duration_trunc(TimeDelta::seconds(1)).unwrap_or(self.made);
        DateTime::parse_from_rfc2822(since).is_ok_and(|since| made <= since)
    }
}

/// An answer without a body.
pub(crate) fn empty(code: StatusCode) -> ApiResponse {
    let mut response = ApiResponse::default();
    *response.status_mut() = code;
    response
}

/// One that is not the same for all: a line for each of the headers that decide.
pub(crate) fn varying(mut response: ApiResponse, names: &[&'static str]) -> ApiResponse {
    for name in names {
        response.headers_mut().append(VARY, HeaderValue::from_static(name));
    }
    response
}

/// Sets a header of ours.
pub(crate) fn put(response: &mut ApiResponse, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("it is plain text");
    response.headers_mut().insert(name, value);
}

/// A quality of zero is a no.
fn reads_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|part| {
        let (name, quality) = part.split_once(';').unwrap_or((part, "q=1"));
        let quality = quality.trim().trim_start_matches("q=").parse().unwrap_or(0.0_f32);
        name.trim().eq_ignore_ascii_case("gzip") && quality > 0.0
    })
}
