//! The counts of one server: requests, watches, and what they carry.

use std::collections::BTreeSet;
use std::sync::Arc;

use component_base::metrics::{Family, Histogram, gauge};
use sync::Mutex;

use super::request_labels::{Cleaned, RequestLabels};
use super::request_series::AllRequests;
use crate::request::RequestInfo;
use clock::Clock;
use component_base::metrics::Render;

/// Of what watches send: `ExponentialBuckets(1024, 2, 8)`.
const EVENT_BUCKETS: [f64; 8] = [1024.0, 2048.0, 4096.0, 8192.0, 16_384.0, 32_768.0, 65_536.0, 131_072.0];
/// Of lists that are sent as the beginning of a watch.
const WATCH_LIST_BUCKETS: [f64; 17] =
    [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0];
/// Of bodies of requests: `LinearBuckets(50000, 100000, 31)`, up to what a body may have.
const BODY_BUCKETS: [f64; 31] = {
    let mut buckets = [0.0; 31];
    let mut at = 0;
    while at < buckets.len() {
        buckets[at] = 50_000.0 + 100_000.0 * at as f64;
        at += 1;
    }
    buckets
};

/// Counts requests, watches, and what they carry.
pub struct Metrics {
    pub(super) clock: Clock,
    /// What others count.
    others: Vec<Arc<dyn Render>>,
    pub(super) requests: AllRequests,
    /// Requests that the server ended before their time.
    terminations: Family<8>,
    pub(super) watch_events: Family<3>,
    pub(super) watch_event_sizes: Family<3>,
    pub(super) watch_lists: Family<4>,
    body_sizes: Family<3>,
    /// Group, version, resource and subresource of those that were asked for; as many as there are.
    deprecated: Mutex<BTreeSet<[String; 4]>>,
}

impl Metrics {
    /// With nothing counted yet, and what others count behind the requests that are ended early.
    pub fn new(clock: Clock, others: Vec<Arc<dyn Render>>) -> Metrics {
        const OF_KIND: [&str; 3] = ["group", "version", "resource"];
        Metrics {
            clock,
            others,
            requests: AllRequests::default(),
            terminations: Family::counter(
                "apiserver_request_terminations_total",
                "[ALPHA] Number of requests which apiserver terminated in self-defense.",
                ["code", "component", "group", "resource", "scope", "subresource", "verb", "version"],
            ),
            watch_events: Family::counter(
                "apiserver_watch_events_total",
                "[ALPHA] Number of events sent in watch clients",
                OF_KIND,
            ),
            watch_event_sizes: Family::amounts(
                "apiserver_watch_events_sizes",
                "[ALPHA] Watch event size distribution in bytes",
                OF_KIND,
                &EVENT_BUCKETS,
            ),
            watch_lists: Family::histogram(
                "apiserver_watch_list_duration_seconds",
                "[BETA] Response latency distribution in seconds for watch list requests broken by group, version, \
                 resource and scope.",
                ["group", "version", "resource", "scope"],
                &WATCH_LIST_BUCKETS,
            ),
            body_sizes: Family::amounts(
                "apiserver_request_body_size_bytes",
                "[ALPHA] Apiserver request body size in bytes broken out by resource and verb.",
                ["group", "resource", "verb"],
                &BODY_BUCKETS,
            ),
            deprecated: Mutex::default(),
        }
    }

    /// What durations are measured with.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Counts a request that was ended before its time. One for no resource is told by its path. Who was sent
    /// away for want of room (`RecordDroppedRequest`) counts among all requests, too.
    pub(crate) fn terminated(&self, cleaned: Cleaned, info: &RequestInfo, code: u16) {
        let labels = RequestLabels::of_resource(info, cleaned);
        let RequestLabels { component, group, resource, scope, subresource, verb, version, .. } = labels;
        let part = if info.is_resource_request { subresource } else { &info.path };
        self.terminations.count([&code.to_string(), component, group, resource, scope, part, verb, version]);
        if code == http::StatusCode::TOO_MANY_REQUESTS.as_u16() {
            self.requests.count(&labels, code);
        }
    }

    /// Somebody has asked for what is going to be removed some day (`requested_deprecated_apis`).
    pub(crate) fn deprecated_was_asked_for(&self, info: &RequestInfo) {
        let RequestInfo { group, version, resource, subresource, .. } = info;
        let asked = [group, version, resource, subresource].map(String::clone);
        self.deprecated.lock().insert(asked);
    }

    /// Where the sizes of the bodies of such requests are counted.
    pub(crate) fn body_sizes(&self, info: &RequestInfo) -> Option<Arc<Histogram>> {
        let verb = if info.verb == "deletecollection" { "delete_collection" } else { info.verb.as_str() };
        self.body_sizes.of([&info.group, &info.resource, verb])
    }

    /// In Prometheus' text format.
    pub fn render(&self, out: &mut String) {
        self.terminations.render(out);
        self.others.iter().for_each(|other| other.render(out));
        self.requests.render(out);
        self.watch_events.render(out);
        self.watch_event_sizes.render(out);
        self.watch_lists.render(out);
        self.body_sizes.render(out);
        self.render_deprecated(out);
    }

    fn render_deprecated(&self, out: &mut String) {
        let help = "[STABLE] Gauge of deprecated APIs that have been requested, broken out by API group, version, \
                    resource, subresource, and removed_release.";
        let labels = ["group", "version", "resource", "subresource", "removed_release"];
        let asked = self.deprecated.lock();
        // None of them is said to go in a certain release.
        let values = asked.iter().map(|[group, version, resource, subresource]| {
            ([group.as_str(), version, resource, subresource, ""], 1)
        });
        gauge(out, ("apiserver_requested_deprecated_apis", help), labels, values);
    }
}
