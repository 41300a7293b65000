//! What priority and fairness counts (`util/flowcontrol/metrics`): of each priority level and FlowSchema
//! together, of each level, and of reads and writes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sync::{Mutex, MutexGuard};

use super::seat_seconds::SeatSeconds;
use super::timing_ratio::TimingRatio;
use crate::metrics::heading;
use component_base::metrics::Histogram;

/// Different pairs of a level and a FlowSchema; those of further ones are not shown.
const MAX_FLOWS: usize = 1000;

const SECONDS: &[f64] = &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const LENGTHS: &[f64] = &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const WATCHES: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0];
const SEATS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
const REQUEST_UTILIZATION: &[f64] = &[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const SEAT_UTILIZATION: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const DEMAND: &[f64] = &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];
const READS_AND_WRITES: &[f64] =
    &[0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];

/// Why a request was refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum RejectReason {
    ConcurrencyLimit,
    QueueFull,
    TimeOut,
}

/// What is counted of the requests of one FlowSchema at one level.
pub struct FlowStats {
    /// The level's name.
    pub level: Arc<str>,
    /// The FlowSchema's name.
    pub schema: Arc<str>,
    rejected: [AtomicU64; 3],
    dispatched: AtomicU64,
    waiting: AtomicU64,
    waiting_seats: AtomicU64,
    executing: AtomicU64,
    executing_seats: AtomicU64,
    no_accommodation: AtomicU64,
    queue_length: Histogram,
    /// Of those that were not let in, and of those that were.
    wait: [Histogram; 2],
    /// Of watches until they have begun, and of all others.
    execution: [Histogram; 2],
    watch_count: Histogram,
    estimated_seats: Histogram,
}

/// How much of a level is used.
pub(super) struct Utilization {
    /// Requests that wait, that are worked on, their seats, and all seats that could be used.
    ratios: [TimingRatio; 4],
    /// R, and that of the request, when one was last dispatched, and the bounds among the queues.
    dispatch: Option<(f64, f64, [f64; 4])>,
}

/// All of one server.
pub(super) struct FlowControlMetrics {
    /// By level and FlowSchema.
    flows: Mutex<BTreeMap<[Arc<str>; 2], Arc<FlowStats>>>,
    pub reads_and_writes: Mutex<ReadsAndWrites>,
    /// Bits of a float: how much of its target each level gets whose bounds do not matter.
    pub fair_fraction: AtomicU64,
}

/// Where a request of a kind is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPhase {
    Waiting,
    Executing,
}

/// How many reads and writes wait and are worked on. Long streams are not among them.
pub(super) struct ReadsAndWrites {
    /// By [`kind_at`].
    kinds: [SeatKind; 4],
}

struct SeatKind {
    ratio: TimingRatio,
    now: usize,
    /// The most at once in the second that is, and in the one before.
    most: [usize; 2],
    second: u64,
}

impl FlowStats {
    fn new(level: &Arc<str>, schema: &Arc<str>) -> FlowStats {
        let seconds = || [Histogram::new(SECONDS), Histogram::new(SECONDS)];
        FlowStats {
            level: level.clone(),
            schema: schema.clone(),
            rejected: Default::default(),
            dispatched: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            waiting_seats: AtomicU64::new(0),
            executing: AtomicU64::new(0),
            executing_seats: AtomicU64::new(0),
            no_accommodation: AtomicU64::new(0),
            queue_length: Histogram::new(LENGTHS),
            wait: seconds(),
            execution: seconds(),
            watch_count: Histogram::new(WATCHES),
            estimated_seats: Histogram::new(SEATS),
        }
    }

    pub(super) fn reject(&self, reason: RejectReason) {
        self.rejected[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn no_accommodation(&self) {
        self.no_accommodation.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_waiting(&self, seats: usize) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.waiting_seats.fetch_add(seats as u64, Ordering::Relaxed);
    }

    pub(super) fn remove_waiting(&self, seats: usize) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.waiting_seats.fetch_sub(seats as u64, Ordering::Relaxed);
    }

    pub(super) fn add_executing(&self, seats: usize) {
        self.dispatched.fetch_add(1, Ordering::Relaxed);
        self.executing.fetch_add(1, Ordering::Relaxed);
        self.executing_seats.fetch_add(seats as u64, Ordering::Relaxed);
    }

    pub(super) fn remove_executing(&self) {
        self.executing.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn remove_seats(&self, seats: usize) {
        self.executing_seats.fetch_sub(seats as u64, Ordering::Relaxed);
    }

    pub(super) fn observe_queue_length(&self, length: usize) {
        self.queue_length.observe(counted(length));
    }

    pub(super) fn observe_wait(&self, is_executed: bool, time: Duration) {
        self.wait[usize::from(is_executed)].observe(time);
    }

    pub(super) fn observe_execution(&self, is_watch: bool, time: Duration) {
        self.execution[usize::from(!is_watch)].observe(time);
    }

    pub(super) fn observe_watch_count(&self, count: usize) {
        self.watch_count.observe(counted(count));
    }

    pub(super) fn observe_estimated_seats(&self, seats: usize) {
        self.estimated_seats.observe(counted(seats));
    }
}

/// Histograms are of seconds; here so many are as many seconds.
fn counted(count: usize) -> Duration {
    Duration::from_secs(count as u64)
}

impl Utilization {
    pub(super) fn new(now: Duration) -> Utilization {
        let ratios = [REQUEST_UTILIZATION, REQUEST_UTILIZATION, SEAT_UTILIZATION, DEMAND];
        Utilization { ratios: ratios.map(|bounds| TimingRatio::new(bounds, now)), dispatch: None }
    }

    pub(super) fn set(&mut self, now: Duration, values: [usize; 4]) {
        self.ratios.iter_mut().zip(values).for_each(|(ratio, value)| ratio.set(now, value));
    }

    pub(super) fn set_denominators(&mut self, now: Duration, waiting: usize, executing: usize) {
        let denominators = [waiting, executing, executing, executing];
        let all = self.ratios.iter_mut().zip(denominators);
        all.for_each(|(ratio, denominator)| ratio.set_denominator(now, denominator));
    }

    pub(super) fn note_dispatch(&mut self, r: SeatSeconds, start: SeatSeconds, bounds: [f64; 4]) {
        self.dispatch = Some((r.as_f64(), start.as_f64(), bounds));
    }

    /// One of the histograms: 0 to 3.
    pub(super) fn render(&mut self, at: usize, now: Duration, out: &mut String, level: &str) {
        let (name, phase) = RATIOS[at];
        let comma = if phase.is_empty() { "" } else { "," };
        let labels = format!("{phase}{comma}priority_level={level:?}");
        self.ratios[at].render(now, out, &format!("{PREFIX}{name}"), &labels);
    }

    /// R and the like, by the place in [`DISPATCH`].
    pub(super) fn dispatch_value(&self, at: usize) -> Option<f64> {
        let (r, start, bounds) = self.dispatch?;
        [r, start, bounds[0], bounds[1], bounds[2], bounds[3]].get(at).copied()
    }
}

pub(super) const PREFIX: &str = "apiserver_flowcontrol_";
/// Name, type and help of each metric.
const HELP: &str = include_str!("metrics.tsv");
/// The most at once, of those that wait and those that are worked on.
const MOST: [&str; 2] = ["apiserver_current_inqueue_requests", "apiserver_current_inflight_requests"];
const RATIOS: [(&str, &str); 4] = [
    ("priority_level_request_utilization", "phase=\"waiting\""),
    ("priority_level_request_utilization", "phase=\"executing\""),
    ("priority_level_seat_utilization", "phase=\"executing\""),
    ("demand_seats", ""),
];

/// Of each level and FlowSchema: a metric's name, and its samples.
type Samples = fn(&FlowStats, &mut String, &str, &str);

const OF_FLOWS: &[(&str, Samples)] = &[
    ("rejected_requests_total", |flow, out, name, labels| {
        for (reason, count) in ["concurrency-limit", "queue-full", "time-out"].iter().zip(&flow.rejected) {
            let labels = format!("{labels},reason=\"{reason}\"");
            sample_if(count.load(Ordering::Relaxed) > 0, out, name, &labels, count);
        }
    }),
    ("dispatched_requests_total", |flow, out, name, labels| {
        sample_if(flow.was_dispatched(), out, name, labels, &flow.dispatched);
    }),
    ("current_inqueue_requests", |flow, out, name, labels| {
        sample_if(flow.was_queued(), out, name, labels, &flow.waiting);
    }),
    ("current_inqueue_seats", |flow, out, name, labels| {
        sample_if(flow.was_queued(), out, name, labels, &flow.waiting_seats);
    }),
    ("request_queue_length_after_enqueue", |flow, out, name, labels| {
        flow.queue_length.render(out, name, labels);
    }),
    ("current_executing_requests", |flow, out, name, labels| {
        sample_if(flow.was_dispatched(), out, name, labels, &flow.executing);
    }),
    ("current_executing_seats", |flow, out, name, labels| {
        sample_if(flow.was_dispatched(), out, name, labels, &flow.executing_seats);
    }),
    ("request_wait_duration_seconds", |flow, out, name, labels| {
        for (execute, wait) in ["false", "true"].iter().zip(&flow.wait) {
            wait.render(out, name, &format!("execute=\"{execute}\",{labels}"));
        }
    }),
    ("request_execution_seconds", |flow, out, name, labels| {
        for (kind, execution) in ["watch", "regular"].iter().zip(&flow.execution) {
            execution.render(out, name, &format!("{labels},type=\"{kind}\""));
        }
    }),
    ("watch_count_samples", |flow, out, name, labels| flow.watch_count.render(out, name, labels)),
    ("work_estimated_seats", |flow, out, name, labels| flow.estimated_seats.render(out, name, labels)),
    ("request_dispatch_no_accommodation_total", |flow, out, name, labels| {
        let count = &flow.no_accommodation;
        sample_if(count.load(Ordering::Relaxed) > 0, out, name, labels, count);
    }),
];

impl FlowStats {
    fn was_queued(&self) -> bool {
        self.queue_length.count() > 0
    }

    fn was_dispatched(&self) -> bool {
        self.dispatched.load(Ordering::Relaxed) > 0
    }
}

fn sample_if(is_shown: bool, out: &mut String, name: &str, labels: &str, value: &AtomicU64) {
    if is_shown {
        let _ = writeln!(out, "{name}{{{labels}}} {}", value.load(Ordering::Relaxed));
    }
}

impl FlowControlMetrics {
    pub(super) fn new(now: Duration) -> FlowControlMetrics {
        let kind =
            || SeatKind { ratio: TimingRatio::new(READS_AND_WRITES, now), now: 0, most: [0; 2], second: 0 };
        FlowControlMetrics {
            flows: Mutex::default(),
            reads_and_writes: Mutex::new(ReadsAndWrites { kinds: [kind(), kind(), kind(), kind()] }),
            fair_fraction: AtomicU64::new(0),
        }
    }

    /// What is counted of a pair.
    pub(super) fn flow(&self, level: &Arc<str>, schema: &Arc<str>) -> Arc<FlowStats> {
        let mut flows = self.flows.lock();
        let key = [level.clone(), schema.clone()];
        if flows.len() >= MAX_FLOWS && !flows.contains_key(&key) {
            return Arc::new(FlowStats::new(level, schema));
        }
        flows.entry(key).or_insert_with(|| Arc::new(FlowStats::new(level, schema))).clone()
    }

    /// What a read or a write does now.
    pub(super) fn enter(&self, now: Duration, phase: RequestPhase, is_mutating: bool) {
        self.count(now, phase, is_mutating, |count| count + 1);
    }

    /// It does it no more.
    pub(super) fn exit(&self, now: Duration, phase: RequestPhase, is_mutating: bool) {
        self.count(now, phase, is_mutating, |count| count.saturating_sub(1));
    }

    fn count(
        &self,
        now: Duration,
        phase: RequestPhase,
        is_mutating: bool,
        change: impl FnOnce(usize) -> usize,
    ) {
        let mut counted = self.lock();
        let kind = &mut counted.kinds[kind_at(phase, is_mutating)];
        kind.turn_to(now);
        kind.now = change(kind.now);
        kind.most[0] = kind.most[0].max(kind.now);
        kind.ratio.set(now, kind.now);
    }

    /// How many may wait and be worked on at all levels together.
    pub(super) fn set_denominators(&self, now: Duration, waiting: usize, executing: usize) {
        let mut counted = self.lock();
        for (at, kind) in counted.kinds.iter_mut().enumerate() {
            kind.ratio.set_denominator(now, if at < 2 { waiting } else { executing });
        }
    }

    /// All but what levels count.
    pub(super) fn render(&self, now: Duration, out: &mut String) {
        let flows = self.flows.lock();
        for (name, samples) in OF_FLOWS {
            let name = format!("{PREFIX}{name}");
            let mut text = String::new();
            for flow in flows.values() {
                let labels = format!("flow_schema={:?},priority_level={:?}", flow.schema, flow.level);
                samples(flow, &mut text, &name, &labels);
            }
            section(out, &name, &text);
        }
        drop(flows);
        let fraction = f64::from_bits(self.fair_fraction.load(Ordering::Relaxed));
        let name = format!("{PREFIX}seat_fair_frac");
        section(out, &name, &format!("{name} {fraction}\n"));
        self.render_reads_and_writes(now, out);
    }

    fn render_reads_and_writes(&self, now: Duration, out: &mut String) {
        const KINDS: [(&str, &str); 4] = [
            ("waiting", "readOnly"),
            ("waiting", "mutating"),
            ("executing", "readOnly"),
            ("executing", "mutating"),
        ];
        let mut counted = self.lock();
        let name = format!("{PREFIX}read_vs_write_current_requests");
        let mut text = String::new();
        let mut most = [String::new(), String::new()];
        for (at, (kind, (phase, request_kind))) in counted.kinds.iter_mut().zip(KINDS).enumerate() {
            kind.turn_to(now);
            let labels = format!("phase=\"{phase}\",request_kind=\"{request_kind}\"");
            kind.ratio.render(now, &mut text, &name, &labels);
            let name = MOST[at / 2];
            let _ = writeln!(most[at / 2], "{name}{{request_kind=\"{request_kind}\"}} {}", kind.most[1]);
        }
        section(out, &name, &text);
        MOST.iter().zip(&most).for_each(|(name, text)| section(out, name, text));
    }

    fn lock(&self) -> MutexGuard<'_, ReadsAndWrites> {
        self.reads_and_writes.lock()
    }
}

/// The two lines before the samples, and those; nothing where there are none, as upstream's vectors.
pub(super) fn section(out: &mut String, name: &str, samples: &str) {
    if samples.is_empty() {
        return;
    }
    let mut lines = HELP.lines().map(|line| line.split('\t'));
    let mut found = lines.find_map(|mut fields| (fields.next() == Some(name)).then_some(fields));
    let mut field = || found.as_mut().and_then(Iterator::next).unwrap_or_default();
    let metric_type = field();
    let help = field();
    heading(out, name, metric_type, help);
    out.push_str(samples);
}

fn kind_at(phase: RequestPhase, is_mutating: bool) -> usize {
    2 * usize::from(phase == RequestPhase::Executing) + usize::from(is_mutating)
}

impl SeatKind {
    /// What was the most of a second is told in the next.
    fn turn_to(&mut self, now: Duration) {
        let second = now.as_secs();
        if second != self.second {
            let last = if second == self.second + 1 { self.most[0] } else { 0 };
            (self.most, self.second) = ([0, last], second);
        }
    }
}
