//! The handles of a cluster over HTTP: which there are. What each does is in the file of its subject.

use std::sync::Arc;

use super::component_handles;
use super::exchange_handles;
use super::fault_handles;
use super::inside::Inside;
use super::{flow_handles, fork_handles, node_handles, otlp, page_handles, seeing, snapshot_handles};
use super::{step_handles, time_handles};
use apimachinery::wire::ApiService;
use handles::Handles;

/// All of them, for one cluster. Add a subject as a line.
pub(super) fn service(inside: &Arc<Inside>) -> ApiService {
    let handles = Handles::default();
    let handles = time_handles::add(handles, inside);
    let handles = step_handles::add(handles, inside);
    let handles = fault_handles::add(handles, inside);
    let handles = node_handles::add(handles, inside);
    let handles = component_handles::add(handles, inside);
    let handles = seeing::add(handles, inside);
    let handles = fork_handles::handles(handles, inside);
    let handles = snapshot_handles::handles(handles, inside);
    let handles = flow_handles::add(handles, inside);
    let handles = exchange_handles::add(handles, inside);
    let handles = page_handles::add(handles, inside);
    let handles = otlp::add(handles, inside);
    handles.service()
}
