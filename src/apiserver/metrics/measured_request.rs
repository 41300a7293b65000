//! A request that is being answered, until it is counted (`MonitorRequest`, `RecordLongRunning`).
//!
//! Who is refused before a route is found is not among the requests that are counted, as upstream: what comes
//! of authentication and authorization they count themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body::Body;

use super::counts::Metrics;
use super::request_labels::{Cleaned, RequestLabels};
use super::request_series::RequestOutcome;
use crate::request::{RequestContext, RequestInfo, until_sent};
use apimachinery::wire::{ApiRequest, ApiResponse};

/// A request for a resource, of which it is known that there is a route for it.
pub(crate) struct MeasuredRequest {
    metrics: Arc<Metrics>,
    info: Arc<RequestInfo>,
    cleaned: Cleaned,
    received_at: Duration,
    waited: Duration,
    takes_objects: bool,
}

impl MeasuredRequest {
    /// Begins when its route is found; its time began when it came.
    pub(crate) fn begin(
        metrics: &Arc<Metrics>,
        request: &ApiRequest,
        ctx: &RequestContext,
    ) -> MeasuredRequest {
        MeasuredRequest {
            metrics: metrics.clone(),
            info: ctx.info.clone(),
            cleaned: Cleaned::of_route(request, &ctx.info),
            received_at: ctx.received_at,
            waited: ctx.waited(),
            takes_objects: ctx.wants_objects,
        }
    }

    /// It has waited for so long in all, before and while it was handled.
    pub(crate) fn has_waited(&mut self, waited: Duration) {
        self.waited = waited;
    }

    /// It is answered: counts it, or begins to count it as one that runs for long and has it counted when
    /// that is over. A watch of a component in this process counts when it has begun, since it is no stream
    /// of bytes; a command or a tunnel when it is handed over. The bytes of a watch are told by its events.
    pub(crate) fn end(self, response: ApiResponse) -> ApiResponse {
        let code = response.status().as_u16();
        if self.info.is_long_running() && !self.takes_objects && code < 400 {
            return until_sent(response, LongRunning::begin(self, code));
        }
        let size = if self.takes_objects { None } else { response.body().size_hint().exact() };
        self.observe(code, size);
        response
    }

    fn observe(&self, code: u16, size: Option<u64>) {
        let duration = self.metrics.clock.elapsed().saturating_sub(self.received_at);
        let outcome = RequestOutcome { code, duration, waited: self.waited, size };
        self.metrics.requests.observe(&RequestLabels::of_resource(&self.info, self.cleaned), &outcome);
    }
}

/// A stream that is being sent.
struct LongRunning {
    request: MeasuredRequest,
    code: u16,
    under_way: Option<Arc<AtomicU64>>,
}

impl LongRunning {
    fn begin(request: MeasuredRequest, code: u16) -> LongRunning {
        let cleaned = request.cleaned.long_running(&request.info);
        let under_way =
            request.metrics.requests.under_way(&RequestLabels::of_resource(&request.info, cleaned));
        if let Some(under_way) = &under_way {
            under_way.fetch_add(1, Ordering::Relaxed);
        }
        LongRunning { request, code, under_way }
    }
}

impl Drop for LongRunning {
    fn drop(&mut self) {
        if let Some(under_way) = &self.under_way {
            under_way.fetch_sub(1, Ordering::Relaxed);
        }
        self.request.observe(self.code, None);
    }
}

/// Counts a request for a path that is no resource. Of those upstream counts the health of the server, its
/// OpenAPI documents and the whole of its discovery.
pub(crate) fn measured_path(
    metrics: &Metrics,
    ctx: &RequestContext,
    labels: &RequestLabels<'_>,
    response: &ApiResponse,
) {
    let duration = metrics.clock.elapsed().saturating_sub(ctx.received_at);
    let (code, size) = (response.status().as_u16(), response.body().size_hint().exact());
    metrics.requests.observe(labels, &RequestOutcome { code, duration, waited: ctx.waited(), size });
}
