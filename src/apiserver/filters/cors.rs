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
use golang::go_text::regexp_error;

golang::text_error! {
    /// What is no pattern of origins; in upstream's words.
    pub(super) struct BadOrigin;
}

const METHODS: &str = "POST, GET, OPTIONS, PUT, DELETE, PATCH";
const HEADERS: &str = "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, \
                       X-Requested-With, If-Modified-Since";

/// What is said of the flag wherever it is wrong.
pub(super) const ORIGINS_HELP: &str = "List of allowed origins for CORS, comma separated. An allowed \
     origin can be a regular expression to support subdomain matching. If this list is empty CORS will not be enabled. Please ensure each expression \
     matches the entire hostname by anchoring to the start with '^' or including the '//' prefix, and by \
     anchoring to the end with '$' or including the ':' port separator suffix. Examples of valid expressions \
     are '//example\\.com(:|$)' and '^https://example\\.com(:|$)'";

/// An origin that may ask, as `--cors-allowed-origins` gives it.
///
/// # Errors
/// What is wrong with it.
pub(super) fn allowed_origin(pattern: &str) -> Result<Regex, BadOrigin> {
    if pattern.is_empty() {
        return Err(format!("empty value in --cors-allowed-origins, help: {ORIGINS_HELP}").into());
    }
    let invalid = |why: &str| {
        format!("--cors-allowed-origins has an invalid regular expression: {why}, help: {ORIGINS_HELP}")
    };
    // One that matches a part of a host would let strangers in, so it must say where a host begins and ends.
    let regex = Regex::new(pattern).map_err(|_| invalid(&regexp_error(pattern)))?;
    let has = |marks: [&str; 2]| marks.iter().any(|mark| pattern.contains(mark));
    if !has(["^", "//"]) || !has(["$", ":"]) {
        return Err(
            invalid("regular expression does not pin to start/end of host in the origin header").into()
        );
    }
    Ok(regex)
}

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
