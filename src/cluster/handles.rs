//! The handles of a cluster over HTTP: which there are. What each does is in the file of its subject.

use std::sync::{Arc, OnceLock};

use tower::{ServiceExt, service_fn};

use super::component_handles;
use super::exchange_handles;
use super::fault_handles;
use super::inside::Inside;
use super::{flow_handles, fork_handles, node_handles, otlp, page_handles, seeing, snapshot_handles};
use super::{step_handles, time_handles};
use apimachinery::wire::{ApiRequest, ApiService};
use handles::Handles;

/// All of them, for one cluster: made when somebody asks for the first, since most clusters are never asked,
/// and what is said of each takes more room than much else of a cluster.
pub(super) fn service(inside: &Arc<Inside>) -> ApiService {
    let inside = inside.clone();
    let made = Arc::<OnceLock<ApiService>>::default();
    ApiService::new(service_fn(move |request: ApiRequest| {
        made.get_or_init(|| all(&inside)).clone().oneshot(request)
    }))
}

/// Add a subject as a line.
fn all(inside: &Arc<Inside>) -> ApiService {
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
