//! Which APIServices are there (`kube-aggregator/pkg/controllers/status/metrics`).

use std::collections::BTreeMap;

use component_base::metrics::{Family, gauge};

/// How often APIServices have become unavailable, and why.
pub(super) struct UnavailableCounts(Family<2>);

impl Default for UnavailableCounts {
    fn default() -> UnavailableCounts {
        UnavailableCounts(Family::counter(
            "aggregator_unavailable_apiservice_total",
            "[ALPHA] Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
            ["name", "reason"],
        ))
    }
}

impl UnavailableCounts {
    /// One was there, and is not any more.
    pub(super) fn count(&self, name: &str, reason: &str) {
        self.0.count([name, reason]);
    }

    /// Writes it, and which of these is unavailable now.
    pub(super) fn render(&self, out: &mut String, unavailable: BTreeMap<String, bool>) {
        let about = (
            "aggregator_unavailable_apiservice",
            "[ALPHA] Gauge of APIServices which are marked as unavailable broken down by APIService name.",
        );
        gauge(out, about, ["name"], unavailable.into_iter().map(|(name, is_it)| ([name], u8::from(is_it))));
        self.0.render(out);
    }
}
