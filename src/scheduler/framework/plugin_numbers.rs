//! `PluginNumbers`: how long plugins take, and how often each is asked (`metrics.PluginExecutionDuration`,
//! `queueingHintExecutionDuration`, `PluginEvaluationTotal`).
//!
//! To read the clock twice for each plugin and node costs as much as many plugins do. So one cycle in ten is
//! timed, as upstream's share of them is by chance; in it the first nodes alone.

use std::time::Duration;

use super::asked_count::AskedCount;
use super::cluster_event::{ClusterEvent, QueueingHint, label};
use super::plugin::CycleState;
use super::status::Code;
use clock::Clock;
use component_base::metrics::Family;

/// `ExponentialBuckets(0.00001, 1.5, 20)`
const PLUGIN_BOUNDS: [f64; 20] = [
    1e-5,
    1.5e-5,
    2.25e-5,
    3.375e-5,
    5.0625e-5,
    7.59375e-5,
    0.000_113_906_25,
    0.000_170_859_375,
    0.000_256_289_062_5,
    0.000_384_433_593_75,
    0.000_576_650_390_625,
    0.000_864_975_585_937_5,
    0.001_297_463_378_906_25,
    0.001_946_195_068_359_375,
    0.002_919_292_602_539_062_5,
    0.004_378_938_903_808_594,
    0.006_568_408_355_712_891,
    0.009_852_612_533_569_336,
    0.014_778_918_800_354_004,
    0.022_168_378_200_531_006,
];
/// The nodes of a timed cycle for which each plugin's Filter and Score are timed; further ones are not.
pub(super) const MAX_TIMED_NODES: u64 = 16;

/// What the plugins of all profiles take; they share it.
pub struct PluginNumbers {
    clock: Clock,
    cycles: AskedCount,
    activations: AskedCount,
    hints: AskedCount,
    durations: Family<3>,
    hint_durations: Family<3>,
}

impl PluginNumbers {
    /// With nothing timed yet.
    pub fn new(clock: Clock) -> PluginNumbers {
        PluginNumbers {
            clock,
            cycles: AskedCount::default(),
            activations: AskedCount::default(),
            hints: AskedCount::default(),
            durations: Family::histogram(
                "scheduler_plugin_execution_duration_seconds",
                "[ALPHA] Duration for running a plugin at a specific extension point.",
                ["extension_point", "plugin", "status"],
                &PLUGIN_BOUNDS,
            ),
            hint_durations: Family::histogram(
                "scheduler_queueing_hint_execution_duration_seconds",
                "[ALPHA] Duration for running a queueing hint function of a plugin.",
                ["event", "hint", "plugin"],
                &PLUGIN_BOUNDS,
            ),
        }
    }

    /// Whether the plugins of the cycle that begins are timed.
    pub fn times_this_cycle(&self) -> bool {
        self.cycles.is_its_turn()
    }

    /// Whether the plugins that look at the pod that is activated are timed.
    pub(super) fn times_this_activation(&self) -> bool {
        self.activations.is_its_turn()
    }

    /// The time, for whoever times what it waits for.
    pub(super) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// A plugin ran at a point from `begun` until now, and came to that.
    pub(super) fn ran(&self, point: &str, plugin: &str, code: Code, begun: Duration) {
        let duration = self.clock.elapsed().saturating_sub(begun);
        self.durations.observe([point, plugin, code.name()], duration);
    }

    /// Asks a plugin's hint, and times one in ten.
    pub(super) fn hint(
        &self,
        plugin: &str,
        event: ClusterEvent,
        ask: impl FnOnce() -> QueueingHint,
    ) -> QueueingHint {
        if !self.hints.is_its_turn() {
            return ask();
        }
        let begun = self.clock.elapsed();
        let hint = ask();
        let said = if hint == QueueingHint::Queue { "Queue" } else { "QueueSkip" };
        let duration = self.clock.elapsed().saturating_sub(begun);
        self.hint_durations.observe([&label(event), said, plugin], duration);
        hint
    }

    /// In Prometheus' text format.
    pub fn render(&self, out: &mut String) {
        self.durations.render(out);
        self.hint_durations.render(out);
    }
}

/// Whether what is asked of the next node is timed.
pub(super) fn times_this_node(state: &CycleState, nodes: &AskedCount) -> bool {
    let is_early = state.is_timed && nodes.count() < MAX_TIMED_NODES;
    if is_early {
        nodes.one_more();
    }
    is_early
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::cluster_event::{ActionType, EventResource};
    use crate::framework::plugin::NodeSnapshot;

    #[test]
    fn one_in_ten_is_timed_and_the_first_is() {
        let numbers = PluginNumbers::new(Clock::stepped(apimachinery::time::Time::UNIX_EPOCH));
        let timed: Vec<usize> = (0..25).filter(|_| numbers.times_this_cycle()).collect();
        assert_eq!(timed, [0, 10, 20]);
        let event = (EventResource::Node, ActionType::Add);
        for _ in 0..11 {
            numbers.hint("NodeName", event, || QueueingHint::Skip);
        }
        let mut out = String::new();
        numbers.render(&mut out);
        let count = "scheduler_queueing_hint_execution_duration_seconds_count\
            {event=\"NodeAdd\",hint=\"QueueSkip\",plugin=\"NodeName\"} 2\n";
        assert!(out.contains(count), "{out}");
    }

    #[test]
    fn no_more_nodes_are_timed_than_the_bound_says() {
        let mut state = CycleState::over(&NodeSnapshot::default());
        state.is_timed = true;
        let nodes = AskedCount::default();
        let timed = (0..100).filter(|_| times_this_node(&state, &nodes)).count();
        assert_eq!(timed as u64, MAX_TIMED_NODES);
        assert!(!times_this_node(&CycleState::default(), &AskedCount::default()));
    }
}
