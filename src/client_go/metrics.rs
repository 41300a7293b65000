//! What a component counts of itself (`metrics/prometheus/restclient`, `workqueue`), and what its parts add.
//!
//! Counting is adding to atomics; whoever asks pays for the text.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sync::Mutex;

use super::workqueue::{QueueLook, QueueState, WorkQueueCounts};
use clock::Clock;
use component_base::metrics::{Family, Histogram, Render, counter, gauge, heading};

/// Whom clients ask, as far as metrics go: the apiserver of this process.
const HOST: &str = "kubernetes.default.svc";
/// Of `rest_client_request_duration_seconds`.
const REQUEST_BOUNDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// What a client counts of its requests.
pub struct RestMetrics {
    requests: Family<3>,
    durations: Family<2>,
}

impl RestMetrics {
    /// One request, and how it ended.
    pub(crate) fn record(&self, method: &str, code: u16, duration: Duration) {
        let mut digits = [b'0'; 3];
        let text = digits_of(code, &mut digits);
        self.requests.count([text, HOST, method]);
        self.durations.observe([HOST, method], duration);
    }
}

/// A code of three digits, without an allocation.
fn digits_of(code: u16, digits: &mut [u8; 3]) -> &str {
    for (at, power) in [100, 10, 1].into_iter().enumerate() {
        digits[at] = b'0' + u8::try_from(code / power % 10).unwrap_or_default();
    }
    std::str::from_utf8(digits).unwrap_or_default()
}

/// What one component counts.
pub struct ComponentMetrics {
    requests: Arc<RestMetrics>,
    /// By the names of queues. Bound: the queues that its parts have.
    queues: Mutex<BTreeMap<String, CountedQueue>>,
    /// What parts count beside that, by their names. Bound: the parts.
    others: Mutex<BTreeMap<&'static str, Arc<dyn Render>>>,
}

struct CountedQueue {
    counts: Arc<WorkQueueCounts>,
    state: Weak<dyn QueueState>,
}

impl Default for ComponentMetrics {
    fn default() -> ComponentMetrics {
        let requests = Family::counter(
            "rest_client_requests_total",
            "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
            ["code", "host", "method"],
        );
        let durations = Family::histogram(
            "rest_client_request_duration_seconds",
            "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
            ["host", "verb"],
            &REQUEST_BOUNDS,
        );
        let requests = Arc::new(RestMetrics { requests, durations });
        ComponentMetrics { requests, queues: Mutex::default(), others: Mutex::default() }
    }
}

impl ComponentMetrics {
    /// What its clients count.
    pub fn requests(&self) -> Arc<RestMetrics> {
        self.requests.clone()
    }

    /// What is counted of a queue; one that is made again goes on counting.
    pub fn queue(&self, name: &str, clock: &Clock) -> Arc<WorkQueueCounts> {
        let known = self.queues.lock().get(name).map(|queue| queue.counts.clone());
        known.unwrap_or_else(|| Arc::new(WorkQueueCounts::new(clock.clone())))
    }

    /// What its queues are counted as.
    pub fn queue_names(&self) -> Vec<String> {
        self.queues.lock().keys().cloned().collect()
    }

    /// The queue of which that is counted.
    pub fn follow(&self, name: &str, counts: Arc<WorkQueueCounts>, state: Weak<dyn QueueState>) {
        self.queues.lock().insert(name.to_owned(), CountedQueue { counts, state });
    }

    /// What a part counts; it takes the place of what a part of that name counted before.
    pub fn add(&self, part: &'static str, counts: Arc<dyn Render>) {
        self.others.lock().insert(part, counts);
    }

    fn render_queues(&self, out: &mut String) {
        let queues = self.queues.lock();
        if queues.is_empty() {
            return;
        }
        for (name, help, value) in QUEUE_GAUGES {
            let look = |counted: &CountedQueue| {
                value(&counted.state.upgrade().map(|state| state.look()).unwrap_or_default())
            };
            gauge(
                out,
                (name, help),
                ["name"],
                queues.iter().map(|(queue, counted)| ([queue], look(counted))),
            );
        }
        for (name, help, value) in QUEUE_COUNTERS {
            let values = queues.iter().map(|(queue, counted)| ([queue], value(&counted.counts)));
            counter(out, (name, help), ["name"], values);
        }
        for (name, help, histogram) in QUEUE_HISTOGRAMS {
            heading(out, name, "histogram", help);
            for (queue, counted) in queues.iter() {
                histogram(&counted.counts).render(out, name, &format!("name={queue:?}"));
            }
        }
    }
}

impl Render for ComponentMetrics {
    fn render(&self, out: &mut String) {
        self.requests.durations.render(out);
        self.requests.requests.render(out);
        let others: Vec<Arc<dyn Render>> = self.others.lock().values().cloned().collect();
        others.iter().for_each(|other| other.render(out));
        self.render_queues(out);
    }
}

type QueueGauge = (&'static str, &'static str, fn(&QueueLook) -> f64);
const QUEUE_GAUGES: [QueueGauge; 3] = [
    ("workqueue_depth", "[ALPHA] Current depth of workqueue", |look| look.depth as f64),
    (
        "workqueue_longest_running_processor_seconds",
        "[ALPHA] How many seconds has the longest running processor for workqueue been running.",
        |look| look.longest.as_secs_f64(),
    ),
    (
        "workqueue_unfinished_work_seconds",
        "[ALPHA] How many seconds of work has done that is in progress and hasn't been observed by work_duration. \
         Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at \
         which this increases.",
        |look| look.unfinished.as_secs_f64(),
    ),
];

type QueueCounter = (&'static str, &'static str, fn(&WorkQueueCounts) -> u64);
const QUEUE_COUNTERS: [QueueCounter; 2] = [
    ("workqueue_adds_total", "[ALPHA] Total number of adds handled by workqueue", WorkQueueCounts::adds),
    (
        "workqueue_retries_total",
        "[ALPHA] Total number of retries handled by workqueue",
        WorkQueueCounts::retries,
    ),
];

type QueueHistogram = (&'static str, &'static str, fn(&WorkQueueCounts) -> &Histogram);
const QUEUE_HISTOGRAMS: [QueueHistogram; 2] = [
    (
        "workqueue_queue_duration_seconds",
        "[ALPHA] How long in seconds an item stays in workqueue before being requested.",
        WorkQueueCounts::waited,
    ),
    (
        "workqueue_work_duration_seconds",
        "[ALPHA] How long in seconds processing an item from workqueue takes.",
        WorkQueueCounts::worked,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workqueue::WorkQueue;
    use flow::Flow;

    #[tokio::test]
    async fn a_queue_is_counted_by_its_name() {
        let clock = Clock::stepped(apimachinery::time::Time::UNIX_EPOCH);
        let metrics = ComponentMetrics::default();
        let counts = metrics.queue("job", &clock);
        let queue: WorkQueue<String> =
            WorkQueue::counted("job", "tester", clock.clone(), Flow::off(), counts.clone());
        metrics.follow("job", counts, queue.state());
        ["a", "b", "a"].into_iter().for_each(|key| queue.add(key.into()));
        clock.advance(Duration::from_secs(2));
        let key = queue.get().await.unwrap();
        clock.advance(Duration::from_secs(3));
        let text = |metrics: &ComponentMetrics| {
            let mut out = String::new();
            metrics.render(&mut out);
            out
        };
        let said = text(&metrics);
        for line in [
            "workqueue_adds_total{name=\"job\"} 2",
            "workqueue_depth{name=\"job\"} 1",
            "workqueue_unfinished_work_seconds{name=\"job\"} 3",
            "workqueue_queue_duration_seconds_sum{name=\"job\"} 2",
        ] {
            assert!(said.lines().any(|said| said == line), "{line} in {said}");
        }
        queue.add_rate_limited(key.clone());
        queue.done(&key);
        drop(queue);
        let said = text(&metrics);
        for line in [
            "workqueue_retries_total{name=\"job\"} 1",
            "workqueue_work_duration_seconds_count{name=\"job\"} 1",
            "workqueue_depth{name=\"job\"} 0",
        ] {
            assert!(said.lines().any(|said| said == line), "{line} in {said}");
        }
        metrics.requests().record("GET", 404, Duration::from_millis(30));
        let line = format!("rest_client_requests_total{{code=\"404\",host=\"{HOST}\",method=\"GET\"}} 1");
        assert!(text(&metrics).contains(&line));
    }
}
