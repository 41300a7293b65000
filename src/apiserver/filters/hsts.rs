//! Tells browsers to come over TLS only (`filters.WithHSTS`).

use http::HeaderValue;
use http::header::STRICT_TRANSPORT_SECURITY;

use super::{Next, Passing};
use apimachinery::wire::ApiResponse;

/// Says so with every answer, where there is something to say.
pub async fn demand_tls(directives: &Option<HeaderValue>, request: Passing, next: Next<'_>) -> ApiResponse {
    let mut response = next.run(request).await;
    if let Some(directives) = directives {
        response.headers_mut().entry(STRICT_TRANSPORT_SECURITY).or_insert_with(|| directives.clone());
    }
    response
}
