//! Counters and histograms that differ in their labels (the vectors of `component-base/metrics`), and the
//! text that Prometheus reads.

use std::collections::HashMap;
use std::fmt::{Display, Write};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use golang::go_text::printed_float;
use sync::{Mutex, MutexGuard};

/// Different sets of labels of one family; further ones are not counted.
const MAX_CELLS: usize = 4096;

/// `ExponentialBuckets(0.001, 2, 15)`: of authentication, authorization and impersonation.
pub const FROM_A_MILLISECOND: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];

/// `prometheus.DefBuckets`, of whatever answers somebody.
pub const DEFAULT_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Of requests to an apiserver and to its store.
pub const REQUEST_BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

/// How long something took or how much it was, how often. Observing takes no lock.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One for each bound, and one for what is above all.
    buckets: Box<[AtomicU64]>,
    /// Of everything observed: nanoseconds, or what was counted.
    sum: AtomicU64,
    counts_amounts: bool,
}

impl Histogram {
    /// With nothing observed; `bounds` in seconds, in order.
    pub fn new(bounds: &'static [f64]) -> Histogram {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, buckets, sum: AtomicU64::new(0), counts_amounts: false }
    }

    /// Of amounts as bytes are, and not of durations: it takes [`Histogram::observe_amount`] alone.
    pub fn of_amounts(bounds: &'static [f64]) -> Histogram {
        Histogram { counts_amounts: true, ..Histogram::new(bounds) }
    }

    /// One more of such a size.
    pub fn observe_amount(&self, amount: u64) {
        debug_assert!(self.counts_amounts, "it counts durations");
        let at = self.bounds.partition_point(|bound| *bound < amount as f64);
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(amount, Ordering::Relaxed);
    }

    /// One more.
    pub fn observe(&self, duration: Duration) {
        self.observe_each(duration, 1);
    }

    /// So many more, each of which took so long.
    pub fn observe_each(&self, duration: Duration, count: u64) {
        debug_assert!(!self.counts_amounts, "it counts amounts");
        let seconds = duration.as_secs_f64();
        let at = self.bounds.partition_point(|bound| *bound < seconds);
        self.buckets[at].fetch_add(count, Ordering::Relaxed);
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum.fetch_add(nanoseconds.saturating_mul(count), Ordering::Relaxed);
    }

    /// How many were observed.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// The samples; nothing when there are none. `labels` as `a="b",c="d"`, which may be nothing.
    pub fn render(&self, out: &mut String, name: &str, labels: &str) {
        let total = self.count();
        if total == 0 {
            return;
        }
        let comma = if labels.is_empty() { "" } else { "," };
        let mut below = 0;
        for (bound, bucket) in self.bounds.iter().zip(&self.buckets) {
            below += bucket.load(Ordering::Relaxed);
            let bound = printed_float(*bound);
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {below}");
        }
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {total}");
        let sum = self.sum.load(Ordering::Relaxed);
        let sum = if self.counts_amounts { sum as f64 } else { Duration::from_nanos(sum).as_secs_f64() };
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(out, "{name}_sum{labels} {sum}\n{name}_count{labels} {total}");
    }
}

/// Counters or histograms of one name, whose labels' values are not known beforehand.
pub struct Family<const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    /// None for counters.
    bounds: Option<&'static [f64]>,
    counts_amounts: bool,
    cells: Mutex<HashMap<u64, Cell>>,
}

#[derive(Clone)]
struct Cell {
    labels: Arc<str>,
    value: Arc<Histogram>,
}

impl<const N: usize> Family<N> {
    /// A family of counters.
    pub fn counter(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Family<N> {
        Family { name, help, labels, bounds: None, counts_amounts: false, cells: Mutex::default() }
    }

    /// A family of histograms.
    pub fn histogram(
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        bounds: &'static [f64],
    ) -> Family<N> {
        Family { bounds: Some(bounds), ..Family::counter(name, help, labels) }
    }

    /// A family of histograms of amounts.
    pub fn amounts(
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        bounds: &'static [f64],
    ) -> Family<N> {
        Family { counts_amounts: true, ..Family::histogram(name, help, labels, bounds) }
    }

    /// One of the family, for whoever counts there again and again; none where there are too many.
    pub fn of(&self, values: [&str; N]) -> Option<Arc<Histogram>> {
        let mut found = None;
        self.among(values, |value| found = Some(value.clone()));
        found
    }

    /// Counts one.
    pub fn count(&self, values: [&str; N]) {
        self.observe(values, Duration::ZERO);
    }

    /// Counts so many; of none there is no sample either.
    pub fn add(&self, values: [&str; N], count: u64) {
        if count > 0 {
            self.among(values, |value| value.observe_each(Duration::ZERO, count));
        }
    }

    /// Counts one that took so long. No allocation when there were such before.
    pub fn observe(&self, values: [&str; N], duration: Duration) {
        self.among(values, |value| value.observe(duration));
    }

    fn among(&self, values: [&str; N], tell: impl FnOnce(&Arc<Histogram>)) {
        let mut hasher = DefaultHasher::new();
        values.hash(&mut hasher);
        let key = hasher.finish();
        let mut cells = self.lock();
        let has_room = cells.len() < MAX_CELLS;
        let cell = match cells.get(&key) {
            Some(cell) => cell,
            None if has_room => cells.entry(key).or_insert_with(|| self.cell(values)),
            None => return,
        };
        tell(&cell.value);
    }

    /// In Prometheus' text format; nothing where nothing was counted, as upstream's vectors.
    pub fn render(&self, out: &mut String) {
        let mut cells: Vec<Cell> = self.lock().values().cloned().collect();
        if cells.is_empty() {
            return;
        }
        cells.sort_by(|a, b| a.labels.cmp(&b.labels));
        let metric_type = if self.bounds.is_some() { "histogram" } else { "counter" };
        heading(out, self.name, metric_type, self.help);
        for Cell { labels, value } in cells {
            match self.bounds {
                Some(_) => value.render(out, self.name, &labels),
                None if labels.is_empty() => drop(writeln!(out, "{} {}", self.name, value.count())),
                None => drop(writeln!(out, "{}{{{labels}}} {}", self.name, value.count())),
            }
        }
    }

    fn cell(&self, values: [&str; N]) -> Cell {
        let bounds = self.bounds.unwrap_or_default();
        let histogram = Histogram { counts_amounts: self.counts_amounts, ..Histogram::new(bounds) };
        Cell { labels: pairs(self.labels, values).into(), value: Arc::new(histogram) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Cell>> {
        self.cells.lock()
    }
}

/// Somebody who counts something (`prometheus.Collector`).
pub trait Render: Send + Sync {
    /// Writes what is counted, in Prometheus' text format.
    fn render(&self, out: &mut String);
}

impl<const N: usize> Render for Family<N> {
    fn render(&self, out: &mut String) {
        Family::render(self, out);
    }
}

/// A gauge that is looked up when somebody asks: a value for each set of labels, and nothing where there is
/// none. `about` is its name, and what it says.
pub fn gauge<const N: usize, L: AsRef<str>>(
    out: &mut String,
    about: (&str, &str),
    labels: [&str; N],
    values: impl IntoIterator<Item = ([L; N], impl Display)>,
) {
    looked_up(out, "gauge", about, labels, values);
}

/// As [`gauge`], of what only grows.
pub fn counter<const N: usize, L: AsRef<str>>(
    out: &mut String,
    about: (&str, &str),
    labels: [&str; N],
    values: impl IntoIterator<Item = ([L; N], impl Display)>,
) {
    looked_up(out, "counter", about, labels, values);
}

/// A gauge without labels.
pub fn plain_gauge(out: &mut String, about: (&str, &str), value: impl Display) {
    gauge(out, about, [], [([""; 0], value)]);
}

/// A counter without labels.
pub fn plain_counter(out: &mut String, about: (&str, &str), value: impl Display) {
    counter(out, about, [], [([""; 0], value)]);
}

fn looked_up<const N: usize, L: AsRef<str>>(
    out: &mut String,
    metric_type: &str,
    (name, help): (&str, &str),
    labels: [&str; N],
    values: impl IntoIterator<Item = ([L; N], impl Display)>,
) {
    let mut values = values.into_iter().peekable();
    if values.peek().is_some() {
        heading(out, name, metric_type, help);
    }
    for (of, value) in values {
        let pairs = pairs(labels, of);
        let pairs = if pairs.is_empty() { pairs } else { format!("{{{pairs}}}") };
        // Writing into a text cannot fail.
        let _ = writeln!(out, "{name}{pairs} {value}");
    }
}

/// `a="x",b="y"`, in the order of the labels' names.
fn pairs<const N: usize, L: AsRef<str>>(labels: [&str; N], values: [L; N]) -> String {
    let pair = |(label, value): (&str, L)| format!("{label}=\"{}\"", escaped_label(value.as_ref()));
    let mut pairs: Vec<String> = labels.into_iter().zip(values).map(pair).collect();
    pairs.sort();
    pairs.join(",")
}

/// The value of a label as it stands between its quotation marks; Prometheus' text knows no other escapes.
pub fn escaped_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The two lines before a metric's samples.
pub fn heading(out: &mut String, name: &str, metric_type: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {metric_type}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_written_as_prometheus_reads_them() {
        let family = Family::histogram("f_seconds", "How long.", ["b", "a"], &[0.1, 1.0]);
        let mut out = String::new();
        family.render(&mut out);
        assert_eq!(out, "");
        family.observe(["say \"y\"", "x"], Duration::from_millis(500));
        family.observe(["say \"y\"", "x"], Duration::from_secs(4));
        family.render(&mut out);
        let labels = "a=\"x\",b=\"say \\\"y\\\"\"";
        assert_eq!(
            out,
            format!(
                "# HELP f_seconds How long.\n# TYPE f_seconds histogram\nf_seconds_bucket{{{labels},le=\"0.1\"}} 0\n\
                 f_seconds_bucket{{{labels},le=\"1\"}} 1\nf_seconds_bucket{{{labels},le=\"+Inf\"}} 2\n\
                 f_seconds_sum{{{labels}}} 4.5\nf_seconds_count{{{labels}}} 2\n"
            )
        );
        let sizes = Family::amounts("s_bytes", "How much.", ["a"], &[1000.0, 1_000_000.0]);
        sizes.of(["z"]).unwrap().observe_amount(2000);
        let mut out = String::new();
        sizes.render(&mut out);
        assert!(out.contains("s_bytes_bucket{a=\"z\",le=\"1e+06\"} 1\n"), "{out}");
        assert!(out.ends_with("s_bytes_sum{a=\"z\"} 2000\ns_bytes_count{a=\"z\"} 1\n"), "{out}");
        let plain = Family::counter("p_total", "How often.", []);
        plain.count([]);
        let mut out = String::new();
        plain.render(&mut out);
        assert!(out.ends_with("# TYPE p_total counter\np_total 1\n"), "{out}");
        let counter = Family::counter("c_total", "How often.", ["a"]);
        (0..3).for_each(|_| counter.count(["z"]));
        let mut out = String::new();
        counter.render(&mut out);
        assert!(out.ends_with("# TYPE c_total counter\nc_total{a=\"z\"} 3\n"), "{out}");
    }

    #[test]
    fn what_is_looked_up_is_written_likewise() {
        let mut out = String::new();
        gauge(&mut out, ("g", "None."), ["b", "a"], [(["x"; 2], 1); 0]);
        assert_eq!(out, "");
        gauge(&mut out, ("g", "Some."), ["b", "a"], [(["x\n\t\\", "\"y\""], 1), (["", ""], 2)]);
        let expected =
            "# HELP g Some.\n# TYPE g gauge\ng{a=\"\\\"y\\\"\",b=\"x\\n\t\\\\\"} 1\ng{a=\"\",b=\"\"} 2\n";
        assert_eq!(out, expected);
        out.clear();
        plain_gauge(&mut out, ("p", "One."), 0.5);
        plain_counter(&mut out, ("q_total", "Each."), 7);
        counter(&mut out, ("c_total", "All."), ["a"], [(["z"], 3)]);
        assert!(out.contains("# HELP q_total Each.\n# TYPE q_total counter\nq_total 7\n"), "{out}");
        assert!(out.starts_with("# HELP p One.\n# TYPE p gauge\np 0.5\n"), "{out}");
        assert!(out.ends_with("# TYPE c_total counter\nc_total{a=\"z\"} 3\n"), "{out}");
    }
}
