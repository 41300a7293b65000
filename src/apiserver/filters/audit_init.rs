//! The audit id of a request and of its answer (`filters.WithAuditInit`, `WithCacheControl`).

use std::sync::Arc;

use http::HeaderValue;
use http::header::CACHE_CONTROL;

use super::{Next, Passing};
use apimachinery::wire::{ApiResponse, InProcessUser};
use entropy::Entropy;

const AUDIT_ID: &str = "audit-id";

/// Gives the request an id, the client's own if it sent one, and answers with it; an API's answers are not
/// to be cached by anybody. Callers in this process see no headers and are not given any.
pub async fn identify(entropy: &Entropy, mut request: Passing, next: Next<'_>) -> ApiResponse {
    if request.extensions().get::<InProcessUser>().is_some() {
        return next.run(request).await;
    }
    let sent = request.headers().get(AUDIT_ID).and_then(|value| value.to_str().ok());
    let id: Arc<str> = match sent.filter(|id| !id.is_empty()) {
        Some(id) => id.into(),
        None => entropy.uid().into(),
    };
    request.ctx.audit_id = id.clone();
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(AUDIT_ID, value);
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    response
}
