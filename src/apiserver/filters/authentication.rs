//! Finds out who asks, or answers 401 (`filters.WithAuthentication`).

use std::sync::Arc;

use axum::extract::State;
use axum::middleware::Next;
use http::HeaderValue;
use http::header::WWW_AUTHENTICATE;

use super::refuse;
use crate::apimachinery::status::Status;
use crate::apimachinery::wire::{ApiRequest, ApiResponse};
use crate::apiserver::authentication::Authenticators;

/// Puts an `Arc<UserInfo>` and the `Authenticated` that tells where it comes from into the extensions, and
/// takes the credentials out of the headers, so that nobody below can leak them. What the authenticators said
/// of a request that is refused is in the answer's extensions, which no client sees.
pub async fn authenticate(
    State(authenticators): State<Arc<Authenticators>>,
    mut request: ApiRequest,
    next: Next,
) -> ApiResponse {
    let asked = authenticators.authenticate(&request);
    match asked.await {
        Ok(authenticated) => {
            authenticators.remove_credentials(&mut request);
            let extensions = request.extensions_mut();
            extensions.insert(authenticated.user.clone());
            extensions.insert(authenticated);
            next.run(request).await
        }
        Err(refused) => {
            tracing::debug!(error = refused.aggregate(), "unable to authenticate the request");
            let mut response = refuse(&request, Status::unauthorized());
            if authenticators.asks_for_password() {
                let realm = HeaderValue::from_static("Basic realm=\"kubernetes-master\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, realm);
            }
            response.extensions_mut().insert(refused);
            response
        }
    }
}
