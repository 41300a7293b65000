//! Requests, by what they ask for: how many were answered how, how long that took, how much was sent, and
//! how many are under way (`requestCounter`, `requestLatencies`, `requestSliLatencies`, `responseSizes`,
//! `longRunningRequestsGauge`).

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foldhash::quality::RandomState;
use sync::Mutex;

use super::request_labels::RequestLabels;
use component_base::metrics::{Histogram, REQUEST_BUCKETS, heading};

/// Different sets of labels; further ones are not counted.
const MAX_SERIES: usize = 10_000;
/// The first bucket of `apiserver_request_sli_duration_seconds`: its promise is not about less.
const FIRST_SLI_BUCKET: usize = 2;
/// `ExponentialBuckets(1000, 10, 7)`
const SIZE_BUCKETS: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

const DURATIONS: (&str, &str) = (
    "apiserver_request_duration_seconds",
    "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, resource, \
     subresource, scope and component.",
);
const SLI_DURATIONS: (&str, &str) = (
    "apiserver_request_sli_duration_seconds",
    "[ALPHA] Response latency distribution (not counting webhook duration and priority & fairness queue wait \
     times) in seconds for each verb, group, version, resource, subresource, scope and component.",
);
const SIZES: (&str, &str) = (
    "apiserver_response_sizes",
    "[STABLE] Response size distribution in bytes for each group, version, verb, resource, subresource, scope \
     and component.",
);

/// The requests of one server.
#[derive(Default)]
pub(super) struct AllRequests {
    /// By the hash of their labels.
    series: Mutex<HashMap<u64, RequestSeries, RandomState>>,
    under_way: Mutex<HashMap<u64, LongRunningCount, RandomState>>,
    hasher: RandomState,
}

/// What came of a request.
pub(super) struct RequestOutcome {
    /// The HTTP code of its answer.
    pub code: u16,
    /// From when it came until it was answered; of a stream, until that ended.
    pub duration: Duration,
    /// How much of that it waited for webhooks and for its turn.
    pub waited: Duration,
    /// The bytes of its answer, where it has some.
    pub size: Option<u64>,
}

struct RequestSeries {
    component: &'static str,
    dry_run: &'static str,
    /// The other labels.
    common: Box<str>,
    /// How many were answered with each code; there are few.
    codes: Vec<(u16, u64)>,
    durations: Histogram,
    sli_durations: Option<Histogram>,
    sizes: Option<Histogram>,
}

#[derive(Clone)]
struct LongRunningCount {
    labels: Arc<str>,
    count: Arc<AtomicU64>,
}

impl AllRequests {
    /// Counts one. No allocation when there was one like it before.
    pub(super) fn observe(&self, labels: &RequestLabels<'_>, outcome: &RequestOutcome) {
        self.among(labels, |series| {
            series.add(outcome.code);
            series.durations.observe(outcome.duration);
            // The indicator is about what is really done, and has an end of its own.
            if labels.dry_run.is_empty() && labels.verb != "WATCH" {
                let sli = series
                    .sli_durations
                    .get_or_insert_with(|| Histogram::new(&REQUEST_BUCKETS[FIRST_SLI_BUCKET..]));
                sli.observe(outcome.duration.saturating_sub(outcome.waited));
            }
            if let Some(size) = outcome.size.filter(|_| matches!(labels.verb, "GET" | "LIST")) {
                let sizes = series.sizes.get_or_insert_with(|| Histogram::of_amounts(&SIZE_BUCKETS));
                sizes.observe_amount(size);
            }
        });
    }

    /// Counts one of which nothing but its code is known.
    pub(super) fn count(&self, labels: &RequestLabels<'_>, code: u16) {
        self.among(labels, |series| series.add(code));
    }

    /// The count of such requests as are under way; none where there are too many kinds of them.
    pub(super) fn under_way(&self, labels: &RequestLabels<'_>) -> Option<Arc<AtomicU64>> {
        let key = self.hasher.hash_one(labels);
        let mut all = self.under_way.lock();
        if all.len() >= MAX_SERIES && !all.contains_key(&key) {
            return None;
        }
        let new = || LongRunningCount {
            labels: format!("component=\"{}\",{}", labels.component, labels.common()).into(),
            count: Arc::default(),
        };
        Some(all.entry(key).or_insert_with(new).count.clone())
    }

    fn among(&self, labels: &RequestLabels<'_>, tell: impl FnOnce(&mut RequestSeries)) {
        let key = self.hasher.hash_one(labels);
        let mut all = self.series.lock();
        let has_room = all.len() < MAX_SERIES;
        match all.get_mut(&key) {
            Some(series) => tell(series),
            None if has_room => tell(all.entry(key).or_insert_with(|| RequestSeries::new(labels))),
            None => {}
        }
    }

    /// In Prometheus' text format.
    pub(super) fn render(&self, out: &mut String) {
        let all = self.series.lock();
        let mut sorted: Vec<&RequestSeries> = all.values().collect();
        sorted.sort_by_key(|series| (series.component, series.dry_run, &series.common));
        let name = "apiserver_request_total";
        let help = "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, \
                    resource, scope, component, and HTTP response code.";
        heading(out, name, "counter", help);
        for series in &sorted {
            let labels = series.labels_with_dry_run();
            for (code, count) in &series.codes {
                let _ = writeln!(out, "{name}{{code=\"{code}\",{labels}}} {count}");
            }
        }
        render_each(out, DURATIONS, &sorted, |series| {
            Some((&series.durations, series.labels_with_dry_run()))
        });
        render_each(out, SLI_DURATIONS, &sorted, |series| {
            Some((series.sli_durations.as_ref()?, series.labels()))
        });
        render_each(out, SIZES, &sorted, |series| Some((series.sizes.as_ref()?, series.labels())));
        self.render_under_way(out);
    }

    fn render_under_way(&self, out: &mut String) {
        let mut all: Vec<LongRunningCount> = self.under_way.lock().values().cloned().collect();
        if all.is_empty() {
            return;
        }
        all.sort_by(|a, b| a.labels.cmp(&b.labels));
        let name = "apiserver_longrunning_requests";
        let help = "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, \
                    resource, scope and component. Not all requests are tracked this way.";
        heading(out, name, "gauge", help);
        for LongRunningCount { labels, count } in all {
            let _ = writeln!(out, "{name}{{{labels}}} {}", count.load(Ordering::Relaxed));
        }
    }
}

impl RequestSeries {
    fn new(labels: &RequestLabels<'_>) -> RequestSeries {
        RequestSeries {
            component: labels.component,
            dry_run: labels.dry_run,
            common: labels.common().into(),
            codes: vec![],
            durations: Histogram::new(&REQUEST_BUCKETS),
            sli_durations: None,
            sizes: None,
        }
    }

    fn add(&mut self, code: u16) {
        match self.codes.iter_mut().find(|(own, _)| *own == code) {
            Some((_, count)) => *count += 1,
            None => {
                let at = self.codes.partition_point(|(own, _)| *own < code);
                self.codes.insert(at, (code, 1));
            }
        }
    }

    fn labels(&self) -> String {
        format!("component=\"{}\",{}", self.component, self.common)
    }

    fn labels_with_dry_run(&self) -> String {
        format!("component=\"{}\",dry_run=\"{}\",{}", self.component, self.dry_run, self.common)
    }
}

/// A histogram of those that have it, with its labels.
fn render_each<'a>(
    out: &mut String,
    (name, help): (&str, &str),
    sorted: &[&'a RequestSeries],
    pick: impl Fn(&'a RequestSeries) -> Option<(&'a Histogram, String)>,
) {
    heading(out, name, "histogram", help);
    for (histogram, labels) in sorted.iter().filter_map(|series| pick(series)) {
        histogram.render(out, name, &labels);
    }
}
