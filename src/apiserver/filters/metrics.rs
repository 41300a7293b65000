//! Says when requests came, counts those that the server ends before their time, and logs all of them. What
//! is answered its route counts (`metrics::MeasuredRequest`).

use std::sync::Arc;

use tracing::Instrument;

use super::request_log::RequestLogSpan;
use super::{Next, Passing, RequestTerminated};
use crate::metrics::{Cleaned, Metrics};
use apimachinery::wire::ApiResponse;

/// In front of everything that takes time.
pub async fn measure(metrics: &Arc<Metrics>, mut request: Passing, next: Next<'_>) -> ApiResponse {
    let info = request.ctx.info.clone();
    let clock = metrics.clock();
    let start = clock.elapsed();
    request.ctx.received_at = start;
    let cleaned = Cleaned::of_filters(&request, &info);
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
    if response.extensions().get::<RequestTerminated>().is_some() {
        metrics.terminated(cleaned, &info, response.status().as_u16());
    }
    response
}
