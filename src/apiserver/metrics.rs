//! What the server counts (`endpoints/metrics`), kept in a value and not in globals: one per cluster.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::RandomState;
use sync::{Mutex, MutexGuard};

pub use component_base::metrics::{Render, heading};

use component_base::metrics::Family;

use crate::request::RequestInfo;
use clock::Clock;

/// Different sets of labels; further ones are not counted.
const MAX_SERIES: usize = 10_000;
/// Upstream's buckets of `apiserver_request_duration_seconds`.
const BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

/// Counts requests.
pub struct Metrics {
    clock: Clock,
    /// What others count.
    others: Vec<Arc<dyn Render>>,
    /// By the hash of their labels.
    series: Mutex<AllSeries>,
    /// Requests that the server ended before their time.
    terminations: Family<8>,
    hasher: RandomState,
}

type AllSeries = HashMap<u64, Series, RandomState>;

struct Series {
    labels: String,
    code: u16,
    count: u64,
    seconds: f64,
    buckets: [u64; BUCKETS.len()],
    is_long_running: bool,
}

impl Metrics {
    /// With nothing counted yet, and what others count behind the requests that are ended early.
    pub fn new(clock: Clock, others: Vec<Arc<dyn Render>>) -> Metrics {
        let terminations = Family::counter(
            "apiserver_request_terminations_total",
            "Number of requests which apiserver terminated in self-defense.",
            ["code", "component", "group", "resource", "scope", "subresource", "verb", "version"],
        );
        Metrics { clock, others, series: Mutex::default(), terminations, hasher: RandomState::default() }
    }

    /// What durations are measured with.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Counts one request. No allocation when the same was asked before.
    pub fn record(&self, info: &RequestInfo, code: u16, duration: Duration) {
        let mut hasher = self.hasher.build_hasher();
        (&info.verb, &info.group, &info.version, &info.resource, &info.subresource, code).hash(&mut hasher);
        (info.name.is_empty(), info.namespace.is_empty()).hash(&mut hasher);
        let mut series = self.lock();
        let has_room = series.len() < MAX_SERIES;
        let key = hasher.finish();
        let found = match series.get_mut(&key) {
            Some(found) => found,
            None if has_room => series.entry(key).or_insert_with(|| Series::new(info, code)),
            None => return,
        };
        found.count += 1;
        found.seconds += duration.as_secs_f64();
        let at = BUCKETS.partition_point(|bound| *bound < duration.as_secs_f64());
        if let Some(bucket) = found.buckets.get_mut(at) {
            *bucket += 1;
        }
    }

    /// Counts a request that was ended before its time. One for no resource is told by its path.
    pub fn terminated(&self, info: &RequestInfo, code: u16) {
        let RequestInfo { group, resource, subresource, version, path, .. } = info;
        let part = if info.is_resource_request { subresource } else { path };
        let (code, verb) = (code.to_string(), verb(info));
        self.terminations.count([&code, "apiserver", group, resource, scope(info), part, &verb, version]);
    }

    /// In Prometheus' text format.
    pub fn render(&self, out: &mut String) {
        self.terminations.render(out);
        self.others.iter().for_each(|other| other.render(out));
        let series = self.lock();
        let mut sorted: Vec<&Series> = series.values().collect();
        sorted.sort_by(|a, b| (&a.labels, a.code).cmp(&(&b.labels, b.code)));
        heading(
            out,
            "apiserver_request_total",
            "counter",
            "Counter of apiserver requests broken out for each verb, \
            dry run value, group, version, resource, scope, component, and HTTP response code.",
        );
        for one in &sorted {
            let _ = writeln!(
                out,
                "apiserver_request_total{{code=\"{}\",{}}} {}",
                one.code, one.labels, one.count
            );
        }
        heading(
            out,
            "apiserver_request_duration_seconds",
            "histogram",
            "Response latency distribution in seconds for \
            each verb, dry run value, group, version, resource, subresource, scope and component.",
        );
        for one in sorted.iter().filter(|one| !one.is_long_running && one.code < 300) {
            one.render_histogram(out);
        }
    }

    fn lock(&self) -> MutexGuard<'_, AllSeries> {
        self.series.lock()
    }
}

impl Series {
    fn new(info: &RequestInfo, code: u16) -> Series {
        let (scope, verb) = (scope(info), verb(info));
        let RequestInfo { group, resource, subresource, version, .. } = info;
        let labels = format!(
            "component=\"apiserver\",dry_run=\"\",group={group:?},resource={resource:?},scope=\"{scope}\",\
             subresource={subresource:?},verb=\"{verb}\",version={version:?}"
        );
        let is_long_running = info.is_long_running();
        Series { labels, code, count: 0, seconds: 0.0, buckets: [0; BUCKETS.len()], is_long_running }
    }

    fn render_histogram(&self, out: &mut String) {
        let name = "apiserver_request_duration_seconds";
        let labels = &self.labels;
        let mut sum = 0;
        for (bound, count) in BUCKETS.iter().zip(self.buckets) {
            sum += count;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {sum}");
        }
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}", self.seconds);
        let _ = writeln!(out, "{name}_count{{{labels}}} {}", self.count);
    }
}

/// `CleanScope`
fn scope(info: &RequestInfo) -> &'static str {
    match (info.is_resource_request, info.name.is_empty(), info.namespace.is_empty()) {
        (false, ..) => "",
        (true, false, _) => "resource",
        (true, true, false) => "namespace",
        (true, true, true) => "cluster",
    }
}

/// `cleanVerb`
fn verb(info: &RequestInfo) -> String {
    match info.verb.as_str() {
        "create" => "POST".into(),
        "update" => "PUT".into(),
        other => other.to_ascii_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_what_they_ask() {
        let metrics = Metrics::new(Clock::real(), vec![]);
        let info = RequestInfo::new(&http::Method::GET, "/api/v1/namespaces/a/pods", "").unwrap();
        metrics.record(&info, 200, Duration::from_millis(30));
        metrics.record(&info, 200, Duration::from_secs(90));
        let mut text = String::new();
        metrics.render(&mut text);
        let labels = "component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"pods\",scope=\"namespace\",\
            subresource=\"\",verb=\"LIST\",version=\"v1\"";
        assert!(text.contains(&format!("apiserver_request_total{{code=\"200\",{labels}}} 2\n")), "{text}");
        assert!(text.contains(&format!("_bucket{{{labels},le=\"0.05\"}} 1\n")), "{text}");
        assert!(text.contains(&format!("_bucket{{{labels},le=\"+Inf\"}} 2\n")), "{text}");
    }
}
