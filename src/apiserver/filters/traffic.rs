//! Notes who asks for what just now (`Traffic`).

use super::until_sent::until_sent;
use super::{Next, Passing};
use crate::traffic::Traffic;
use apimachinery::wire::ApiResponse;

/// Behind impersonation, which says in whose name it is done. Of components of this process their writes
/// count alone, but for renewals of leases: whether they work on something the clock knows. What is asked
/// about the cluster as a whole does not count.
pub async fn count_traffic(traffic: &Traffic, request: Passing, next: Next<'_>) -> ApiResponse {
    let info = &request.ctx.info;
    if info.is_beside() {
        return next.run(request).await;
    }
    if request.ctx.wants_objects {
        let is_renewal = info.resource == "leases" && matches!(&*info.verb, "update" | "patch");
        if !info.is_read_only() && !is_renewal {
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
