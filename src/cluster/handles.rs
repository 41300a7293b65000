//! The handles of a cluster over HTTP: which there are. What each does is in the file of its subject.

use std::sync::Arc;

use super::fault_handles;
use super::inside::Inside;
use super::seeing;
use apimachinery::time::rfc3339_micro;
use apimachinery::wire::ApiService;
use handles::{ClusterHandle, Handles, answer};
use serde_json::json;

/// All of them, for one cluster. Add a subject as a line.
pub(super) fn service(inside: &Arc<Inside>) -> ApiService {
    let handles = Handles::default();
    let handles = time(handles, inside);
    let handles = fault_handles::add(handles, inside);
    let handles = seeing::add(handles, inside);
    handles.service()
}

/// What the cluster's clock says.
fn time(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let clock = inside.clock.clone();
    let now = ClusterHandle::get("/time", "The cluster's time.").answers(json!({
        "type": "object",
        "properties": {
            "now": {"type": "string", "format": "date-time"},
            "stepped": {"type": "boolean", "description": "Whether it stands until it is stepped."},
        },
    }));
    handles.with(now, move |_| {
        let said = json!({"now": rfc3339_micro(clock.now()), "stepped": clock.is_stepped()});
        async move { answer(&said) }
    })
}
