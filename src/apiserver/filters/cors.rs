//! Lets pages of other servers read the answers, if they are allowed to (`filters.WithCORS`).

use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN,
};
use http::{HeaderValue, Method, StatusCode};
use regex::Regex;

use super::{Next, Passing};
use apimachinery::wire::ApiResponse;

const METHODS: &str = "POST, GET, OPTIONS, PUT, DELETE, PATCH";
const HEADERS: &str = "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, \
                       X-Requested-With, If-Modified-Since";

/// Answers a browser that asks beforehand whether it may, and tells it the same with every other answer.
pub async fn allow_origins(allowed: &Arc<[Regex]>, request: Passing, next: Next<'_>) -> ApiResponse {
    let is_allowed = |origin: &&HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        allowed.iter().any(|regex| regex.is_match(origin))
    };
    let Some(origin) = request.headers().get(ORIGIN).filter(is_allowed).cloned() else {
        return next.run(request).await;
    };
    let mut response = if request.method() == Method::OPTIONS {
        let mut response = ApiResponse::default();
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (ACCESS_CONTROL_EXPOSE_HEADERS, "Date"),
        (ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
