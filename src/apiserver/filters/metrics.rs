//! Counts requests and how long they took (`endpoints/metrics`, `InstrumentHandlerFunc`), and logs them.

use std::sync::Arc;

use tracing::Instrument;

use super::request_log::RequestLogSpan;
use super::{Next, Passing, RequestTerminated};
use crate::metrics::Metrics;
use apimachinery::wire::ApiResponse;

/// Counts the request when it is answered; a watch when it has begun.
pub async fn measure(metrics: &Arc<Metrics>, mut request: Passing, next: Next<'_>) -> ApiResponse {
    let info = request.ctx.info.clone();
    let clock = metrics.clock();
    let start = clock.elapsed();
    let line = RequestLogSpan::begin(&request, &request.ctx);
    request.line = line.clone();
    let response = match &line {
        None => next.run(request).await,
        Some(line) => next.run(request).instrument(line.span()).await,
    };
    let duration = clock.elapsed().saturating_sub(start);
    if let Some(line) = line {
        line.end(&response, duration);
    }
    metrics.record(&info, response.status().as_u16(), duration);
    if response.extensions().get::<RequestTerminated>().is_some() {
        metrics.terminated(&info, response.status().as_u16());
    }
    response
}
