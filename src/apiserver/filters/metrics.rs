//! Counts requests and how long they took (`endpoints/metrics`, `InstrumentHandlerFunc`).

use std::sync::Arc;

use super::{Next, Passing, Terminated, info_of};
use crate::apimachinery::wire::ApiResponse;
use crate::apiserver::metrics::Metrics;

/// Counts the request when it is answered; a watch when it has begun.
pub async fn measure(metrics: &Arc<Metrics>, request: Passing, next: Next<'_>) -> ApiResponse {
    let info = info_of(&request);
    let clock = metrics.clock();
    let start = clock.elapsed();
    let response = next.run(request).await;
    metrics.record(&info, response.status().as_u16(), clock.elapsed().saturating_sub(start));
    if response.extensions().get::<Terminated>().is_some() {
        metrics.terminated(&info, response.status().as_u16());
    }
    response
}
