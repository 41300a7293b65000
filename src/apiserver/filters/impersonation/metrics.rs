//! How often somebody acted as somebody else, and what was asked for it (`impersonation/metrics`).

use std::time::Duration;

use component_base::metrics::{FROM_A_MILLISECOND, Family};

/// Counters of one apiserver.
pub(super) struct ImpersonationMetrics {
    attempts: Family<2>,
    attempts_duration: Family<2>,
    authorizations: Family<2>,
    authorizations_duration: Family<2>,
}

const LABELS: [&str; 2] = ["mode", "decision"];

impl Default for ImpersonationMetrics {
    fn default() -> ImpersonationMetrics {
        let (counter, histogram) = (Family::counter, Family::histogram);
        ImpersonationMetrics {
            attempts: counter(
                "apiserver_impersonation_attempts_total",
                "[ALPHA] Total number of impersonation attempts split by mode and decision.",
                LABELS,
            ),
            attempts_duration: histogram(
                "apiserver_impersonation_attempts_duration_seconds",
                "[ALPHA] Latency of impersonation attempts in seconds split by mode and decision.",
                LABELS,
                &FROM_A_MILLISECOND,
            ),
            authorizations: counter(
                "apiserver_impersonation_authorization_attempts_total",
                "[ALPHA] Total number of authorization checks made by the impersonation handler split by mode and \
                 decision.",
                LABELS,
            ),
            authorizations_duration: histogram(
                "apiserver_impersonation_authorization_attempts_duration_seconds",
                "[ALPHA] Latency of authorization checks made by the impersonation handler in seconds split by mode \
                 and decision.",
                LABELS,
                &FROM_A_MILLISECOND,
            ),
        }
    }
}

impl ImpersonationMetrics {
    /// Somebody wanted to act as somebody else; `mode` is empty where nothing allowed it.
    pub(super) fn attempted(&self, mode: &str, is_allowed: bool, duration: Duration) {
        let labels = [mode, decision(is_allowed)];
        self.attempts.count(labels);
        self.attempts_duration.observe(labels, duration);
    }

    /// The authorizers were asked.
    pub(super) fn authorized(&self, mode: &str, is_allowed: bool, duration: Duration) {
        let labels = [mode, decision(is_allowed)];
        self.authorizations.count(labels);
        self.authorizations_duration.observe(labels, duration);
    }

    /// In Prometheus' text format.
    pub(super) fn render(&self, out: &mut String) {
        for family in
            [&self.attempts, &self.attempts_duration, &self.authorizations, &self.authorizations_duration]
        {
            family.render(out);
        }
    }
}

fn decision(is_allowed: bool) -> &'static str {
    if is_allowed { "allowed" } else { "denied" }
}
