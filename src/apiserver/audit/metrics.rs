//! How much was told, and what could not be (`audit/metrics.go`).

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::audit_context::Level;
use crate::metrics::heading;
use component_base::metrics::Family;

const LEVELS: [Level; 4] = [Level::None, Level::Metadata, Level::Request, Level::RequestResponse];

/// Counters of one apiserver.
pub(super) struct AuditMetrics {
    events: AtomicU64,
    rejected: AtomicU64,
    /// In the order of [`LEVELS`].
    levels: [AtomicU64; LEVELS.len()],
    errors: Family<1>,
}

impl Default for AuditMetrics {
    fn default() -> AuditMetrics {
        let help = "[ALPHA] Counter of audit events that failed to be audited properly. Plugin identifies the plugin \
                    affected by the error.";
        AuditMetrics {
            events: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            levels: Default::default(),
            errors: Family::counter("apiserver_audit_error_total", help, ["plugin"]),
        }
    }
}

impl AuditMetrics {
    /// The policy wants so much told of a request.
    pub(super) fn decided(&self, level: Level) {
        self.levels[level as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// An event goes to the backends.
    pub(super) fn told(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// A request fails because its event could not be stored.
    pub(super) fn rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Events did not get where they should: `log`, `webhook`, `truncate` or `buffered` stood in their way.
    pub(super) fn failed(&self, plugin: &str, events: usize) {
        self.errors.add([plugin], events as u64);
    }

    /// In Prometheus' text format.
    pub(super) fn render(&self, out: &mut String) {
        self.errors.render(out);
        let name = "apiserver_audit_event_total";
        heading(
            out,
            name,
            "counter",
            "[ALPHA] Counter of audit events generated and sent to the audit backend.",
        );
        let _ = writeln!(out, "{name} {}", self.events.load(Ordering::Relaxed));
        let name = "apiserver_audit_level_total";
        heading(out, name, "counter", "[ALPHA] Counter of policy levels for audit events (1 per request).");
        for (level, counter) in LEVELS.iter().zip(&self.levels) {
            let count = counter.load(Ordering::Relaxed);
            if count > 0 {
                let _ = writeln!(out, "{name}{{level=\"{level:?}\"}} {count}");
            }
        }
        let name = "apiserver_audit_requests_rejected_total";
        let help = "[ALPHA] Counter of apiserver requests rejected due to an error in audit logging backend.";
        heading(out, name, "counter", help);
        let _ = writeln!(out, "{name} {}", self.rejected.load(Ordering::Relaxed));
    }
}
