//! `/debug/api_priority_and_fairness/...`: how priority levels, queues and requests are just now
//! (`util/flowcontrol/apf_controller_debug.go`).

use axum::body::Body;
use http::HeaderValue;
use http::header::CONTENT_TYPE;

use crate::endpoints::EndpointContext;
use crate::endpoints::query::Query;
use apimachinery::wire::ApiResponse;

/// A column is at least so wide.
const MIN_WIDTH: usize = 8;

/// What is asked for, as a table; nothing for what is none of the dumps, and where there are no levels.
pub(crate) async fn respond(server: &EndpointContext, what: &str, query: &Query) -> Option<ApiResponse> {
    let dumps = ["dump_priority_levels", "dump_queues", "dump_requests"];
    if !server.flow_control.is_enabled() || !dumps.contains(&what) {
        return None;
    }
    let dump = server.flow_control.dump().await;
    let rows = match what {
        "dump_priority_levels" => dump.priority_levels(),
        "dump_queues" => dump.queues(),
        _ => dump.requests(!query.get("includeRequestDetails").unwrap_or_default().is_empty()),
    };
    let mut response = ApiResponse::new(Body::from(aligned(&rows)));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    Some(response)
}

/// Commas behind all cells but the last, and blanks up to the next column (Go's `tabwriter`). All rows are as
/// long as the first.
fn aligned(rows: &[Vec<String>]) -> String {
    let count = rows.first().map_or(0, Vec::len);
    let widest = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..count).map(|at| (widest(at) + ", ".len()).max(MIN_WIDTH)).collect();
    let mut text = String::new();
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            if at + 1 == count {
                text.push_str(cell)
            } else {
                text.push_str(&format!("{:<width$}", format!("{cell},"), width = widths[at]))
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
        assert_eq!(aligned(&rows.map(|row| row.map(String::from).into())), text);
    }
}
