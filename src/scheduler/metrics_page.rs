//! What the scheduler says of itself to whoever scrapes it: what it has counted, what waits, what it knows.

use std::fmt::Write;
use std::sync::Weak;

use component_base::metrics::{Render, heading};

use super::parts::{MAX_WRITES, SchedulerParts};

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
        let help = "[ALPHA] Number of running goroutines split by the work they do such as binding.";
        let writing = MAX_WRITES.saturating_sub(parts.writes.available_permits());
        gauges(out, "scheduler_goroutines", help, "operation", &[("binding", writing)]);
        let (held, name) = (parts.queue.held_back(), "scheduler_unschedulable_pods");
        if !held.is_empty() {
            let help = "[ALPHA] The number of unschedulable pods broken down by plugin name. A pod will increment \
                the gauge for all plugins that caused it to not schedule and so this metric have meaning only when \
                broken down by plugin.";
            heading(out, name, "gauge", help);
        }
        for ((plugin, profile), count) in held {
            let _ = writeln!(out, "{name}{{plugin={plugin:?},profile={profile:?}}} {count}");
        }
        let in_flight = parts.queue.in_flight();
        let in_flight: Vec<(&str, usize)> =
            in_flight.iter().map(|(event, count)| (event.as_str(), *count)).collect();
        let help = "[ALPHA] Number of events currently tracked in the scheduling queue.";
        gauges(out, "scheduler_inflight_events", help, "event", &in_flight);
        evaluations(&parts, out);
        parts.queue.render(out);
        parts.plugin_numbers.render(out);
        parts.metrics.render(out);
    }
}

/// How often each plugin was asked, also of those that never were.
fn evaluations(parts: &SchedulerParts, out: &mut String) {
    let name = "scheduler_plugin_evaluation_total";
    let help = "[ALPHA] Number of attempts to schedule pods by each plugin and the extension point (available only in \
        PreFilter, Filter, PreScore, and Score).";
    heading(out, name, "counter", help);
    for framework in parts.profiles.all() {
        for (plugin, point, count) in framework.evaluations() {
            let profile = &framework.name;
            let _ = writeln!(
                out,
                "{name}{{extension_point=\"{point:?}\",plugin={plugin:?},profile={profile:?}}} {count}"
            );
        }
    }
}
