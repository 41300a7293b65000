//! Each request waits for its turn at its priority level (`filters.WithPriorityAndFairness`), and is told
//! which that is. Watches hold a seat until they have begun; other long streams take none.

use std::sync::Arc;

use http::header::{HeaderName, RETRY_AFTER};

use super::{Next, Passing, info_of, is_component, user_of};
use crate::apimachinery::wire::{ApiResponse, text_response};
use crate::apiserver::flow_control::{Classification, FlowControl, GROUP};

const SYSTEM_MASTERS: &str = "system:masters";
const FLOW_SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// Holds a seat while the rest of the chain runs; where there is none the request is refused with 429 and
/// told to come again in a second. Components of this process always go on: the cluster must be able to work
/// its way out.
pub async fn prioritize(control: &Arc<FlowControl>, request: Passing, next: Next<'_>) -> ApiResponse {
    let info = info_of(&request);
    let takes_no_seat = info.is_long_running() && info.verb != "watch";
    // Who changes the configuration sees it followed.
    if takes_no_seat || is_component(&request) && (info.group != GROUP || info.is_read_only()) {
        return next.run(request).await;
    }
    if let Some(bound) = control.in_flight(&info) {
        let place = bound.try_acquire();
        // Somebody must be able to help.
        let is_exempt = user_of(&request).is_member_of(SYSTEM_MASTERS);
        return if place.is_some() || is_exempt { next.run(request).await } else { refusal() };
    }
    let Some(class) = control.classify(&user_of(&request), &info).await else {
        return next.run(request).await;
    };
    let seat = control.admit(&class).await;
    let mut response = match &seat {
        Some(_) => next.run(request).await,
        None => refusal(),
    };
    drop(seat);
    say(&class, &mut response);
    response
}

fn refusal() -> ApiResponse {
    let text = "Too many requests, please try again later.\n";
    let mut response = text_response(http::StatusCode::TOO_MANY_REQUESTS, text);
    response.headers_mut().insert(RETRY_AFTER, 1.into());
    response
}

/// By uid and not by name: names are the administrator's affair.
fn say(class: &Classification, response: &mut ApiResponse) {
    let headers = response.headers_mut();
    headers.insert(FLOW_SCHEMA_UID, class.flow_schema.clone());
    headers.insert(PRIORITY_LEVEL_UID, class.level.header.clone());
}
