//! A panic becomes a 500 (`filters.WithPanicRecovery`): the request fails, the server goes on, the log says
//! where.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;

use super::{Next, Passing};
use apimachinery::status::Status;
use apimachinery::wire::{ApiResponse, status_response, text_response};

const TEXT: &str = "This request caused apiserver to panic. Look in the logs for details.";

/// Runs the rest of the chain and answers 500 if it panics.
pub async fn recover_from_panic(request: Passing, next: Next<'_>) -> ApiResponse {
    // Sharing them costs less than to write down what is seldom told.
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let wants_objects = request.ctx.wants_objects;
    let run = AssertUnwindSafe(async move { next.run(request).await });
    if let Ok(response) = run.catch_unwind().await {
        return response;
    }
    tracing::error!(request = %format_args!("{method} {uri}"), "apiserver panicked");
    if wants_objects {
        status_response(Status::internal(TEXT), true)
    } else {
        text_response(http::StatusCode::INTERNAL_SERVER_ERROR, format!("{TEXT}\n"))
    }
}
