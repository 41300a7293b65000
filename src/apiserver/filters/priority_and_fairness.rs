//! Each request waits for its turn at its priority level (`filters.WithPriorityAndFairness`), and is told
//! which that is. Watches hold a seat until they have sent the state that they begin with; other long streams
//! take none.

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderName, RETRY_AFTER};

use super::timeout::{REQUEST_TIMEOUT, requested_limit};
use super::{Next, Passing, RequestTerminated};
use crate::flow_control::{FlowControl, FlowSchema, GROUP, Watching};
use crate::request::until_sent;
use apimachinery::options::Held;
use apimachinery::user::MASTERS;
use apimachinery::wire::{ApiResponse, text_response};

const FLOW_SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// Nobody waits for longer, whatever time there is.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Holds a seat while the rest of the chain runs; where there is none the request is refused with 429 and
/// told when to come again. Components of this process always go on: the cluster must be able to work its way
/// out.
pub async fn prioritize(control: &Arc<FlowControl>, mut request: Passing, next: Next<'_>) -> ApiResponse {
    let info = request.ctx.info.clone();
    let (is_watch, is_long) = (info.verb == "watch", info.is_long_running());
    // Who changes the configuration sees it followed.
    if is_long && !is_watch || request.ctx.wants_objects && (info.group != GROUP || info.is_read_only()) {
        return next.run(request).await;
    }
    let user = request.ctx.user.clone();
    if !control.is_enabled() {
        let place = if is_long { None } else { control.enter(&info) };
        // Somebody must be able to help.
        let goes_on = is_long || place.is_some() || user.is_member_of(MASTERS);
        return if goes_on { next.run(request).await } else { refusal(1) };
    }
    let Some(schema) = control.classify(&user, &info).await else {
        return next.run(request).await;
    };
    let query = request.uri().query().unwrap_or_default();
    let wait_limit =
        || if is_long { REQUEST_TIMEOUT / 4 } else { (requested_limit(query) / 4).min(MAX_WAIT) };
    let came = control.clock().elapsed();
    let seat = control.admit(&schema, (&user, &info), query, wait_limit).await;
    request.ctx.has_waited(control.clock().elapsed().saturating_sub(came));
    let mut response = match seat {
        Some(seat) => {
            let _executing = control.enter(&info);
            if is_watch {
                let watching = control.watching(&info);
                request.ctx.held = Some(Held::new(seat));
                watched(next.run(request).await, watching)
            } else {
                let response = next.run(request).await;
                drop(seat);
                response
            }
        }
        None => refusal(schema.level.requests.note_dropped()),
    };
    say(&schema, &mut response);
    response
}

fn refusal(retry_after_seconds: u64) -> ApiResponse {
    let text = "Too many requests, please try again later.\n";
    let mut response = text_response(http::StatusCode::TOO_MANY_REQUESTS, text);
    response.headers_mut().insert(RETRY_AFTER, retry_after_seconds.into());
    response.extensions_mut().insert(RequestTerminated);
    response
}

/// By uid and not by name: names are the administrator's affair.
fn say(schema: &FlowSchema, response: &mut ApiResponse) {
    let headers = response.headers_mut();
    headers.insert(FLOW_SCHEMA_UID, schema.header.clone());
    headers.insert(PRIORITY_LEVEL_UID, schema.level.header.clone());
}

/// A watch is counted as long as it is sent.
fn watched(response: ApiResponse, watching: Option<Watching>) -> ApiResponse {
    match watching.filter(|_| response.status().is_success()) {
        Some(watching) => until_sent(response, watching),
        None => response,
    }
}
