//! A time limit for requests that are not long-running (`filters.WithTimeoutForNonLongRunningRequests` and
//! `WithRequestDeadline`): the client's `timeout`, at most upstream's `--request-timeout`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;

use super::stepping::{ClientThere, Holds, read_early};
use super::{Next, Passing, RequestTerminated, refuse};
use crate::audit::Audit;
use crate::audit::policy::AuditStage;
use crate::request::query_value;
use apimachinery::duration;
use apimachinery::status::Status;
use apimachinery::wire::{ApiResponse, InProcessUser, UnreadBody, status_response};
use clock::Clock;

/// Upstream's default `--request-timeout`.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Answers 504 when the rest of the chain takes too long. What it was doing is given up; a write that was
/// handed to the store may still happen.
pub async fn limit_time(
    (clock, audit, holds): &(Clock, Option<Arc<Audit>>, Holds),
    mut request: Passing,
    next: Next<'_>,
) -> ApiResponse {
    if request.ctx.info.is_long_running() {
        return next.run(request).await;
    }
    let limit = match requested(request.uri().query().unwrap_or_default()) {
        Ok(limit) => limit,
        Err(text) => {
            let message = format!("invalid timeout specified in the request URL - {text}");
            let status = Status::bad_request(message);
            let telling = audit.as_ref().and_then(|audit| audit.refused(&request, &request.ctx, &status));
            if let Some(telling) = telling {
                telling.tell(AuditStage::ResponseStarted, 400).await;
            }
            return refuse(&mut request, status);
        }
    };
    let wants_objects = request.ctx.wants_objects;
    let received = request.ctx.cause;
    let client = request.extensions_mut().remove::<ClientThere>();
    let is_in_process = request.extensions().get::<InProcessUser>().is_some();
    let kept = match client {
        Some(_) => clock.timeout_for_client(limit, read_early(&mut request)).await.ok().flatten(),
        None => None,
    };
    let answer = async {
        let Some(client) = client else { return Some(next.run(request).await) };
        tokio::select! {
            biased;
            response = next.run(request) => Some(response),
            () = client.gone() => None,
        }
    };
    let response = if is_in_process {
        // Who lives by the cluster's clock waits while it is held.
        clock.timeout_for_component(limit, answer).await
    } else {
        clock.timeout_for_client(limit, answer).await
    };
    response.ok().flatten().unwrap_or_else(|| {
        let mut response = status_response(Status::timeout(late(holds, received)), wants_objects);
        response.extensions_mut().insert(RequestTerminated);
        if let Some(bytes) = kept {
            response.extensions_mut().insert(UnreadBody::new(Body::from(bytes)));
        }
        response
    })
}

/// What is said to a client whose time is over: also where the request was held, if somebody steps the
/// cluster.
fn late(holds: &Holds, received: Option<u64>) -> String {
    let text = "request did not complete within requested timeout - context deadline exceeded";
    match holds.held_up(received) {
        Some(why) => format!("{text}; {why}"),
        None => text.to_owned(),
    }
}

/// The limit of a request that has passed here.
pub(super) fn requested_limit(query: &str) -> Duration {
    requested(query).unwrap_or(REQUEST_TIMEOUT)
}

/// The limit that the query asks for; 0 and more than the server's are the server's.
fn requested(query: &str) -> Result<Duration, String> {
    let Some(text) = query_value(query, "timeout").filter(|text| !text.is_empty()) else {
        return Ok(REQUEST_TIMEOUT);
    };
    // Less than nothing is no limit of the client's.
    let positive = text.strip_prefix('-').filter(|rest| duration::parse_flag(rest).is_ok());
    if positive.is_some() {
        return Ok(REQUEST_TIMEOUT);
    }
    let limit = duration::parse_flag(&text)?;
    Ok(if limit.is_zero() { REQUEST_TIMEOUT } else { limit.min(REQUEST_TIMEOUT) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_may_ask_for_less() {
        assert_eq!(requested("timeout=2m"), Ok(REQUEST_TIMEOUT));
        assert_eq!(requested("timeout=0"), Ok(REQUEST_TIMEOUT));
        assert_eq!(requested("timeout=-5s"), Ok(REQUEST_TIMEOUT));
        assert_eq!(requested("limit=1&timeout=5s"), Ok(Duration::from_secs(5)));
    }
}
