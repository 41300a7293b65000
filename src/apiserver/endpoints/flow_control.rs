//! `/debug/api_priority_and_fairness/...`: how the priority levels are just now
//! (`util/flowcontrol/apf_controller_debug.go`).

use http::StatusCode;

use super::Endpoints;
use crate::apimachinery::wire::{ApiResponse, text_response};

/// Where the levels are shown.
pub(super) const DUMP_PRIORITY_LEVELS: &str = "dump_priority_levels";

const COLUMNS: [&str; 10] = [
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
];
/// A column is at least so wide.
const MIN_WIDTH: usize = 8;

/// The levels as a table, a row each.
pub(super) async fn respond(server: &Endpoints) -> ApiResponse {
    let mut rows = vec![COLUMNS.map(String::from)];
    for level in server.flow_control.levels().await {
        let now = level.snapshot();
        let is_idle = now.waiting == 0 && now.executing == 0;
        let counts = now.counts;
        rows.push([
            level.name.clone(),
            now.active_queues.to_string(),
            is_idle.to_string(),
            // One that goes away is gone at once.
            false.to_string(),
            now.waiting.to_string(),
            now.executing.to_string(),
            counts.dispatched.to_string(),
            counts.rejected.to_string(),
            counts.timed_out.to_string(),
            counts.cancelled.to_string(),
        ]);
    }
    text_response(StatusCode::OK, aligned(&rows))
}

/// Commas behind all cells but the last, and blanks up to the next column (Go's `tabwriter`).
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let widest = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(|at| (widest(at) + ", ".len()).max(MIN_WIDTH)).collect();
    let mut text = String::new();
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            match at + 1 == N {
                true => text.push_str(cell),
                false => text.push_str(&format!("{:<width$}", format!("{cell},"), width = widths[at])),
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [["Name", "Queues", "Idle"], ["a", "1", "true"], ["workload-low", "0", "false"]];
        let text = "Name,         Queues, Idle\na,            1,      true\nworkload-low, 0,      false\n";
        assert_eq!(aligned(&rows.map(|row| row.map(String::from))), text);
    }
}
