//! `/debug/api_priority_and_fairness/...`: how the priority levels are just now (`flowcontrol/apf_dump.go`).

use std::fmt::Write;

use http::StatusCode;

use super::Endpoints;
use crate::apimachinery::wire::{ApiResponse, text_response};

/// Where the levels are shown.
pub(super) const DUMP_PRIORITY_LEVELS: &str = "dump_priority_levels";

/// The levels as a table, in CSV.
pub(super) async fn respond(server: &Endpoints) -> ApiResponse {
    let mut text = String::from(
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, \
         DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests\n",
    );
    for level in server.flow_control.levels().await {
        let now = level.snapshot();
        let is_idle = now.waiting == 0 && now.executing == 0;
        let counts = &now.counts;
        let _ = writeln!(
            text,
            "{}, {}, {is_idle}, false, {}, {}, {}, {}, {}, {}",
            level.name,
            now.active_queues,
            now.waiting,
            now.executing,
            counts.dispatched,
            counts.rejected,
            counts.timed_out,
            counts.cancelled
        );
    }
    text_response(StatusCode::OK, text)
}
