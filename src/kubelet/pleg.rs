//! The pod lifecycle event generator (`pkg/kubelet/pleg/generic.go`), as metrics tell of it.
//!
//! A real kubelet asks its runtime once a second what runs. Here the runtime says by itself what happens, so
//! nobody looks; what such looks would count is known from how long the kubelet has run.

use std::time::Duration;

use apimachinery::time::Time;
use component_base::metrics::{DEFAULT_BUCKETS, Histogram, heading, plain_counter, plain_gauge};

/// `genericPlegRelistPeriod`
const RELIST_PERIOD: Duration = Duration::from_secs(1);

/// Since when a kubelet looks.
pub(crate) struct PodLifecycleLooks {
    began: Time,
}

impl PodLifecycleLooks {
    /// It begins.
    pub(crate) fn new(began: Time) -> PodLifecycleLooks {
        PodLifecycleLooks { began }
    }

    /// What was counted until `now`: looks take no time, and nothing that they find is lost.
    pub(crate) fn render(&self, out: &mut String, now: Time) {
        let pauses = (now - self.began).to_std().unwrap_or_default().as_secs() / RELIST_PERIOD.as_secs();
        let help = "[ALPHA] The number of discard events in PLEG.";
        plain_counter(out, ("kubelet_pleg_discard_events", help), 0);
        let last = self.began.timestamp().saturating_add(i64::try_from(pauses).unwrap_or(i64::MAX));
        let help = "[ALPHA] Timestamp in seconds when PLEG was last seen active.";
        plain_gauge(out, ("kubelet_pleg_last_seen_seconds", help), last);
        let histograms = [
            (
                "kubelet_pleg_relist_duration_seconds",
                "Duration in seconds for relisting pods in PLEG.",
                Duration::ZERO,
                pauses + 1,
            ),
            (
                "kubelet_pleg_relist_interval_seconds",
                "Interval in seconds between relisting in PLEG.",
                RELIST_PERIOD,
                pauses,
            ),
        ];
        for (name, help, took, count) in histograms.into_iter().filter(|(.., count)| *count > 0) {
            let histogram = Histogram::new(&DEFAULT_BUCKETS);
            histogram.observe_each(took, count);
            heading(out, name, "histogram", &format!("[ALPHA] {help}"));
            histogram.render(out, name, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_looks_once_a_second() {
        let looks = PodLifecycleLooks::new(Time::UNIX_EPOCH);
        let mut out = String::new();
        looks.render(&mut out, Time::UNIX_EPOCH + Duration::from_millis(90_500));
        for line in [
            "kubelet_pleg_discard_events 0",
            "kubelet_pleg_last_seen_seconds 90",
            "kubelet_pleg_relist_duration_seconds_bucket{le=\"0.005\"} 91",
            "kubelet_pleg_relist_duration_seconds_sum 0",
            "kubelet_pleg_relist_interval_seconds_bucket{le=\"0.5\"} 0",
            "kubelet_pleg_relist_interval_seconds_bucket{le=\"1\"} 90",
            "kubelet_pleg_relist_interval_seconds_sum 90",
        ] {
            assert!(out.lines().any(|told| told == line), "{line}\n{out}");
        }
    }
}
