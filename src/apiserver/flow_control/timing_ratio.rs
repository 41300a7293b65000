//! A histogram of how long a ratio was how big (`metrics.TimingRatioHistogram`): as if it was observed at the
//! end of each nanosecond.

use std::fmt::Write;
use std::time::Duration;

/// One of them.
pub(super) struct TimingRatio {
    bounds: &'static [f64],
    numerator: f64,
    denominator: f64,
    at: Duration,
    /// One for each bound, and one for what is above all.
    nanoseconds: Box<[u64]>,
    sum: f64,
}

impl TimingRatio {
    /// Nothing of one, from `now` on; `bounds` in order.
    pub(super) fn new(bounds: &'static [f64], now: Duration) -> TimingRatio {
        let nanoseconds = vec![0; bounds.len() + 1].into();
        TimingRatio { bounds, numerator: 0.0, denominator: 1.0, at: now, nanoseconds, sum: 0.0 }
    }

    /// From `now` on it is so much of the denominator.
    pub(super) fn set(&mut self, now: Duration, numerator: usize) {
        self.advance(now);
        self.numerator = numerator as f64;
    }

    /// From `now` on it is a part of so much.
    pub(super) fn set_denominator(&mut self, now: Duration, denominator: usize) {
        self.advance(now);
        self.denominator = denominator as f64;
    }

    /// The samples; `labels` as `a="b",c="d"`.
    pub(super) fn render(&mut self, now: Duration, out: &mut String, name: &str, labels: &str) {
        self.advance(now);
        let mut below = 0;
        for (bound, nanoseconds) in self.bounds.iter().zip(&self.nanoseconds) {
            below += nanoseconds;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
        }
        let total: u64 = self.nanoseconds.iter().sum();
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {total}");
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {total}", self.sum);
    }

    fn advance(&mut self, now: Duration) {
        let nanoseconds = now.saturating_sub(self.at).as_nanos() as u64;
        self.at = self.at.max(now);
        let ratio = self.numerator / self.denominator;
        self.nanoseconds[self.bounds.partition_point(|bound| *bound < ratio)] += nanoseconds;
        self.sum += ratio * nanoseconds as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nanosecond_counts() {
        let second = Duration::from_nanos;
        let mut ratio = TimingRatio::new(&[0.0, 0.5, 1.0], second(0));
        ratio.set(second(10), 3);
        ratio.set_denominator(second(12), 6);
        ratio.set_denominator(second(19), 4);
        let mut out = String::new();
        ratio.render(second(20), &mut out, "r", "a=\"b\"");
        let text = "r_bucket{a=\"b\",le=\"0\"} 10\nr_bucket{a=\"b\",le=\"0.5\"} 17\nr_bucket{a=\"b\",le=\"1\"} 18\n\
            r_bucket{a=\"b\",le=\"+Inf\"} 20\nr_sum{a=\"b\"} 10.25\nr_count{a=\"b\"} 20\n";
        assert_eq!(out, text);
    }
}
