//! What a watch sends (`WatchEvents`, `WatchEventsSizes`, `RecordWatchListLatency`).

use std::sync::Arc;
use std::time::Duration;

use super::counts::Metrics;
use super::request_labels::Cleaned;
use crate::request::{RequestContext, RequestInfo};
use apimachinery::watch::{Bookmark, WatchEvent};
use component_base::metrics::Histogram;

/// The counts of one watch over the wire.
pub(crate) struct WatchCounts {
    metrics: Arc<Metrics>,
    info: Arc<RequestInfo>,
    received_at: Duration,
    events: Option<Arc<Histogram>>,
    sizes: Option<Arc<Histogram>>,
}

impl WatchCounts {
    /// Of the watch that is asked for.
    pub(crate) fn begin(metrics: &Arc<Metrics>, ctx: &RequestContext) -> WatchCounts {
        let RequestInfo { group, version, resource, .. } = &*ctx.info;
        let kind = [group.as_str(), version, resource];
        WatchCounts {
            metrics: metrics.clone(),
            info: ctx.info.clone(),
            received_at: ctx.received_at,
            events: metrics.watch_events.of(kind),
            sizes: metrics.watch_event_sizes.of(kind),
        }
    }

    /// An event is written in so many bytes. The bookmark that ends the list at its beginning tells how long
    /// that took.
    pub(crate) fn sent(&self, event: &WatchEvent, bytes: usize) {
        if let Some(events) = &self.events {
            events.observe(Duration::ZERO);
        }
        if let Some(sizes) = &self.sizes {
            sizes.observe_amount(bytes as u64);
        }
        if let WatchEvent::Bookmark(Bookmark { initial_events_end: true, .. }) = event {
            let RequestInfo { group, version, resource, .. } = &*self.info;
            let duration = self.metrics.clock.elapsed().saturating_sub(self.received_at);
            let scope = Cleaned::list_scope(&self.info);
            self.metrics.watch_lists.observe([group, version, resource, scope], duration);
        }
    }
}
