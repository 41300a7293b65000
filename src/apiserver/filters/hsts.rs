//! Tells browsers to come over TLS only (`filters.WithHSTS`).

use http::HeaderValue;
use http::header::STRICT_TRANSPORT_SECURITY;

use super::{Next, Passing};
use apimachinery::wire::ApiResponse;

golang::text_error! {
    /// What `Strict-Transport-Security` cannot say; in upstream's words.
    pub(super) struct BadDirective;
}

/// Says so with every answer, where there is something to say.
pub async fn demand_tls(directives: &Option<HeaderValue>, request: Passing, next: Next<'_>) -> ApiResponse {
    let mut response = next.run(request).await;
    if let Some(directives) = directives {
        response.headers_mut().entry(STRICT_TRANSPORT_SECURITY).or_insert_with(|| directives.clone());
    }
    response
}

/// One of `--strict-transport-security-directives`.
///
/// # Errors
/// One that is none.
pub(super) fn check_directive(directive: &str) -> Result<(), BadDirective> {
    if directive.trim().is_empty() {
        return Err("empty value in strict-transport-security-directives".into());
    }
    let is_age = directive.split_once('=').is_some_and(|(name, age)| name == "max-age" && !age.contains('='));
    if matches!(directive, "includeSubDomains" | "preload") || is_age {
        return Ok(());
    }
    Err("--strict-transport-security-directives invalid, allowed values: max-age=expireTime, \
         includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
        .into())
}
