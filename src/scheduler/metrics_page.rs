//! What the scheduler says of itself to whoever scrapes it: what it has counted, what waits, what it knows.

use std::sync::Weak;

use component_base::metrics::{Render, counter, gauge};

use super::framework::points::Point;
use super::framework::runtime::Framework;
use super::parts::{MAX_WRITES, SchedulerParts};

/// All of it as text, with what waits and what is cached.
pub(super) struct SchedulerPage(pub(super) Weak<SchedulerParts>);

impl Render for SchedulerPage {
    fn render(&self, out: &mut String) {
        let Some(parts) = self.0.upgrade() else { return };
        let gauges = |out: &mut String, name: &str, help: &str, label: &str, values: &[(&str, usize)]| {
            gauge(out, (name, help), [label], values.iter().map(|(of, value)| ([*of], *value)));
        };
        let help = "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.";
        gauges(out, "scheduler_cache_size", help, "type", &parts.cache.sizes());
        let help = "[STABLE] Number of pending pods, by the queue type.";
        gauges(out, "scheduler_pending_pods", help, "queue", &parts.queue.sizes());
        let help = "[ALPHA] Number of running goroutines split by the work they do such as binding.";
        let writing = MAX_WRITES.saturating_sub(parts.writes.available_permits());
        gauges(out, "scheduler_goroutines", help, "operation", &[("binding", writing)]);
        let help = "[ALPHA] The number of unschedulable pods broken down by plugin name. A pod will increment \
            the gauge for all plugins that caused it to not schedule and so this metric have meaning only when \
            broken down by plugin.";
        let held = parts.queue.held_back();
        let held = held.iter().map(|((plugin, profile), count)| ([*plugin, profile], *count));
        gauge(out, ("scheduler_unschedulable_pods", help), ["plugin", "profile"], held);
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
    let profiles: Vec<_> = parts.profiles.all().collect();
    let of_profile = |framework: &Framework| {
        let of_plugin = |(plugin, point, count): (&str, Point, u64)| {
            ([format!("{point:?}"), plugin.to_owned(), framework.name.to_string()], count)
        };
        framework.evaluations().map(of_plugin).collect::<Vec<_>>()
    };
    let values = profiles.iter().flat_map(|framework| of_profile(framework));
    counter(out, (name, help), ["extension_point", "plugin", "profile"], values);
}
