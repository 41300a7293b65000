//! What the scheduler says of itself to whoever scrapes it: what it has counted, what waits, what it knows.

use std::fmt::Write;
use std::sync::Weak;

use component_base::metrics::{Render, heading};

use super::parts::SchedulerParts;

/// All of it as text, with what waits and what is cached.
pub(super) struct SchedulerPage(pub(super) Weak<SchedulerParts>);

impl Render for SchedulerPage {
    fn render(&self, out: &mut String) {
        let Some(parts) = self.0.upgrade() else { return };
        let gauges = |out: &mut String, name: &str, help: &str, label: &str, values: &[(&str, usize)]| {
            heading(out, name, "gauge", help);
            for (of, value) in values {
                // Writing into a text cannot fail.
                let _ = writeln!(out, "{name}{{{label}={of:?}}} {value}");
            }
        };
        let help = "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.";
        gauges(out, "scheduler_cache_size", help, "type", &parts.cache.sizes());
        let help = "[STABLE] Number of pending pods, by the queue type.";
        gauges(out, "scheduler_pending_pods", help, "queue", &parts.queue.sizes());
        parts.metrics.render(out);
    }
}
