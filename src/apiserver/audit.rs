//! The audit id and the headers of every answer (`filters.WithAuditInit`, `WithCacheControl`). Events of
//! the audit log are not written yet.

use std::sync::Arc;

use axum::extract::State;
use axum::middleware::Next;
use http::HeaderValue;
use http::header::CACHE_CONTROL;

use crate::apimachinery::wire::{ApiRequest, ApiResponse, InProcessUser};
use crate::entropy::Entropy;

const AUDIT_ID: &str = "audit-id";
/// Upstream ignores longer ids of clients.
const MAX_AUDIT_ID_BYTES: usize = 64;

/// On a request: the id under which it can be found in logs.
#[derive(Clone, Debug, Default)]
pub struct AuditId(pub Arc<str>);

/// Gives the request an id, the client's own if it sent one, and answers with it; an API's answers are not
/// to be cached by anybody. Callers in this process see no headers and are not given any.
pub async fn identify(State(entropy): State<Entropy>, mut request: ApiRequest, next: Next) -> ApiResponse {
    if request.extensions().get::<InProcessUser>().is_some() {
        return next.run(request).await;
    }
    let sent = request.headers().get(AUDIT_ID).and_then(|value| value.to_str().ok());
    let id: Arc<str> = match sent.filter(|id| !id.is_empty() && id.len() <= MAX_AUDIT_ID_BYTES) {
        Some(id) => id.into(),
        None => entropy.uid().into(),
    };
    request.extensions_mut().insert(AuditId(id.clone()));
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(AUDIT_ID, value);
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    response
}
