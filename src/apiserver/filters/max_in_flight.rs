//! A bound on requests under way (`filters.WithMaxInFlightLimit`): reads and writes apart, so that a storm
//! of one leaves room for the other. Watches and streams are not counted.

use std::sync::Arc;

use axum::extract::State;
use http::header::RETRY_AFTER;
use tokio::sync::Semaphore;

use super::{Next, info_of, is_in_process, user_of};
use crate::apimachinery::wire::{ApiRequest, ApiResponse, text_response};

/// Upstream's `--max-requests-inflight`.
pub const MAX_REQUESTS: usize = 400;
/// Upstream's `--max-mutating-requests-inflight`.
pub const MAX_MUTATING_REQUESTS: usize = 200;
const SYSTEM_MASTERS: &str = "system:masters";

/// The places. At the bound a request is refused with 429 and told to come again in a second.
pub struct InFlight {
    read_only: Semaphore,
    mutating: Semaphore,
}

impl InFlight {
    /// With places for so many reads and writes at once.
    pub fn new(read_only: usize, mutating: usize) -> InFlight {
        InFlight { read_only: Semaphore::new(read_only), mutating: Semaphore::new(mutating) }
    }

    /// Places that are taken now: reads and writes.
    pub fn taken(&self) -> (usize, usize) {
        let taken = |all: usize, places: &Semaphore| all.saturating_sub(places.available_permits());
        (taken(MAX_REQUESTS, &self.read_only), taken(MAX_MUTATING_REQUESTS, &self.mutating))
    }
}

/// Holds a place while the rest of the chain runs. Components of this process and system:masters always go
/// on: the cluster must be able to work its way out, and somebody must be able to help it.
pub async fn limit_in_flight(
    State(in_flight): State<Arc<InFlight>>,
    request: ApiRequest,
    next: Next,
) -> ApiResponse {
    let info = info_of(&request);
    if info.is_long_running() || is_in_process(&request) {
        return next.run(request).await;
    }
    let places = if info.is_read_only() { &in_flight.read_only } else { &in_flight.mutating };
    let place = places.try_acquire();
    if place.is_err() && !user_of(&request).is_member_of(SYSTEM_MASTERS) {
        let text = "Too many requests, please try again later.\n";
        let mut response = text_response(http::StatusCode::TOO_MANY_REQUESTS, text);
        response.headers_mut().insert(RETRY_AFTER, 1.into());
        return response;
    }
    next.run(request).await
}
