//! `/flowz`: the flow record of one object, as `kubarium trace` prints it. Ours: upstream has no such page.
//!
//! `?resource=deployments.apps&namespace=test&name=web` gives the steps as JSON; `&format=text` the rendered lanes.

use http::{HeaderMap, StatusCode};

use super::negotiation::Output;
use super::query::Query;
use super::response::write_bytes;
use crate::apimachinery::wire::{ApiResponse, text_response};
use crate::flow::Flow;

/// The story of the object that the query names.
pub(super) fn respond(flow: &Flow, query: &Query, headers: &HeaderMap) -> ApiResponse {
    let text = |name: &str| query.text(name).unwrap_or_default();
    if text("resource").is_empty() {
        let usage = "flowz: say which object: ?resource=pods&namespace=default&name=web\n";
        return text_response(StatusCode::BAD_REQUEST, usage);
    }
    let trace = flow.trace(text("resource"), text("namespace"), text("name"));
    if text("format") == "text" {
        return text_response(StatusCode::OK, trace.render());
    }
    let json = serde_json::to_vec(&trace).unwrap_or_default();
    write_bytes(headers, &Output::default(), 200, json.into())
}
