//! Notes who asks for what just now (`Traffic`).

use super::{Next, Passing};
use crate::request::{RequestInfo, until_sent};
use crate::traffic::Traffic;
use apimachinery::wire::ApiResponse;

/// Behind impersonation, which says in whose name it is done. Of components of this process their writes
/// count alone: whether they work on something the clock knows. What is asked about the cluster as a whole
/// does not count, nor do leases that somebody renews, or looks at in order to lead: who runs with leader
/// election does so every two seconds, whatever happens.
pub async fn count_traffic(traffic: &Traffic, request: Passing, next: Next<'_>) -> ApiResponse {
    let info = &request.ctx.info;
    if info.is_beside() || is_election(info) {
        return next.run(request).await;
    }
    if request.ctx.wants_objects {
        if !info.is_read_only() {
            traffic.note(&request.ctx.user.name);
        }
        return next.run(request).await;
    }
    let is_stream = info.is_long_running();
    let what = || format!("{} {}", request.method(), request.uri().path());
    let under_way = traffic.begin(&request.ctx.user.name, is_stream, what);
    let response = next.run(request).await;
    if is_stream { until_sent(response, under_way) } else { response }
}

/// What leader election asks for again and again, and who renews a lease.
fn is_election(info: &RequestInfo) -> bool {
    info.resource == "leases"
        && info.group == "coordination.k8s.io"
        && matches!(&*info.verb, "get" | "update" | "patch")
}
