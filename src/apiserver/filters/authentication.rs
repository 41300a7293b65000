//! Finds out who asks, or answers 401 (`filters.WithAuthentication`).

use std::sync::Arc;

use axum::extract::State;
use axum::middleware::Next;

use super::refuse;
use crate::apimachinery::status::Status;
use crate::apimachinery::wire::{ApiRequest, ApiResponse};
use crate::apiserver::authentication::Authenticators;

/// Puts an `Arc<UserInfo>` into the extensions and takes the credentials out of the headers, so that nobody
/// below can leak them.
pub async fn authenticate(
    State(authenticators): State<Arc<Authenticators>>,
    mut request: ApiRequest,
    next: Next,
) -> ApiResponse {
    match authenticators.authenticate(&request) {
        Ok(user) => {
            request.headers_mut().remove(http::header::AUTHORIZATION);
            request.extensions_mut().insert(user);
            next.run(request).await
        }
        Err(error) => {
            tracing::debug!(error, "unable to authenticate the request");
            refuse(&request, Status::unauthorized())
        }
    }
}
