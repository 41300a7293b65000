//! Looks what is left, says which conditions the node has, and ends one pod at a time
//! (`managerImpl.synchronize`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::message::{self, Met};
use super::observations::{Observation, observe};
use super::ranking::{PodUse, rank, says_usage};
use super::signal::Signal;
use super::thresholds::EvictionThreshold;
use crate::eviction::IMMEDIATE_GRACE_SECONDS;
use crate::image_gc::ImageGarbage;
use crate::kubelet::Kubelet;
use crate::kubelet_api::MeasuredPod;
use crate::options::KubeletOptions;
use crate::pod_ending::PodEnding;
use crate::qos::is_critical;
use apimachinery::quantity::Quantity;
use apimachinery::time::Time;
use apis::views::pod::Pod;

/// How often it is looked what is left (`MonitoringInterval`).
const MONITORING_INTERVAL: Duration = Duration::from_secs(10);

/// What the manager remembers from one look to the next.
#[derive(Default)]
struct EvictionManager {
    /// Since when soft and hard thresholds have been met without a break: by signal, and whether it is the
    /// soft one.
    first_met: BTreeMap<(Signal, bool), Time>,
    /// When each condition was last observed.
    last_observed: BTreeMap<&'static str, Time>,
}

/// A threshold that is met, for as long as it has to be.
struct MetThreshold {
    signal: Signal,
    is_soft: bool,
    met: Met,
}

impl Kubelet {
    /// Keeps its node from running out of anything, for as long as it is polled.
    pub(crate) async fn evict_under_pressure(self) {
        let mut manager = EvictionManager::default();
        let mut garbage = ImageGarbage::default();
        let mut usages = self.shared.config.measures.changes();
        loop {
            let state = &self.shared.state;
            if manager.is_calm() && state.pressures().is_empty() && !self.is_watched() {
                tokio::select! {
                    () = state.pressed.notified() => {}
                    () = state.usage_said.notified() => {}
                    Ok(()) = usages.changed() => {}
                }
                continue;
            }
            self.synchronize(&mut manager, &mut garbage).await;
            let clock = &self.shared.context.clock;
            let _ = clock.timeout(MONITORING_INTERVAL, state.pressed.notified()).await;
        }
    }

    /// From now on it is looked whether the node runs out of anything.
    pub(crate) fn note_usage(&self, pod: &Pod) {
        if says_usage(pod) {
            self.shared.state.usage_said.notify_one();
        }
    }

    /// Whether anybody says what pods of the node use.
    fn is_watched(&self) -> bool {
        let says = || {
            self.pods.state().workers.values().any(|entry| !entry.is_terminated && says_usage(&entry.pod()))
        };
        self.shared.config.measures.has_usages() || says()
    }

    async fn synchronize(&self, manager: &mut EvictionManager, garbage: &mut ImageGarbage) {
        let now = self.shared.context.clock.now();
        let options = &self.shared.config.options;
        let mut pods = self.pods_in_use(now).await;
        let observed = if self.is_watched() { observe(&self.shared.config, &pods) } else { BTreeMap::new() };
        if let Some(disk) = observed.get(&Signal::ImageFs) {
            self.collect_images(garbage, (disk.capacity, disk.available), now);
        }
        let met = manager.met(options, &observed, now);
        self.shared.state.observe_pressures(&manager.conditions(options, now));
        // What is said to be short by hand is so without numbers.
        let said =
            || self.shared.state.said_pressures().into_iter().find_map(|name| Signal::of_condition(&name));
        let (signal, is_soft, met) = match met.into_iter().next() {
            Some(first) => (first.signal, first.is_soft, Some(first.met)),
            None => match said() {
                Some(signal) => (signal, false, None),
                None => return,
            },
        };
        let text = format!("Attempting to reclaim {}", signal.resource());
        self.tell_of_node("Warning", "EvictionThresholdMet", &text);
        if signal.condition() == "DiskPressure" {
            self.remove_unused_containers();
            // Unused images go before any pod does, here beside it: what they take counts for no signal.
            self.remove_unused_images(i64::MAX, now);
        }
        rank(&mut pods, signal);
        let Some(chosen) = pods.iter().find(|pod| !is_critical(&pod.pod)) else { return };
        let grace = if is_soft { soft_grace(options, chosen) } else { IMMEDIATE_GRACE_SECONDS };
        let ending = PodEnding {
            reason: "Evicted",
            message: message::of(signal, met.as_ref(), chosen),
            grace_seconds: Some(grace),
            is_disruption: true,
        };
        self.shared.counted.evicted(signal.name());
        self.end_pod(&chosen.namespace, &chosen.name, ending, Some("Evicted")).await;
    }

    /// The pods that may be ended, and what they use.
    async fn pods_in_use(&self, now: Time) -> Vec<PodUse> {
        let of_node = self.measured_pods(now).await;
        let state = self.pods.state();
        let may_end = |pod: &MeasuredPod| {
            let entry = state.workers.get(pod.uid());
            entry.is_some_and(|entry| !entry.is_terminated && !entry.is_ending)
        };
        let runtime = &*self.shared.node.runtime;
        of_node.iter().filter(|pod| may_end(pod)).map(|pod| pod.in_use(runtime, now)).collect()
    }
}

fn soft_grace(options: &KubeletOptions, pod: &PodUse) -> i64 {
    let own = pod.pod.spec.termination_grace_period_seconds.unwrap_or(30);
    own.min(options.eviction_max_pod_grace_period)
}

impl EvictionManager {
    /// Whether nothing is remembered that passes with time.
    fn is_calm(&self) -> bool {
        self.first_met.is_empty() && self.last_observed.is_empty()
    }

    /// Those that are met and have been for as long as they must, the most urgent first.
    fn met(
        &mut self,
        options: &KubeletOptions,
        observed: &BTreeMap<Signal, Observation>,
        now: Time,
    ) -> Vec<MetThreshold> {
        let all = options.eviction_hard.0.iter().map(|it| (it, false));
        let mut due = Vec::new();
        let mut still = BTreeSet::new();
        for (threshold, is_soft) in all.chain(options.eviction_soft.0.iter().map(|it| (it, true))) {
            let key = (threshold.signal, is_soft);
            let Some(found) = observed.get(&threshold.signal) else { continue };
            let was_met = self.first_met.contains_key(&key);
            let Some(met) = met(threshold, found, options, was_met) else { continue };
            still.insert(key);
            let since = *self.first_met.entry(key).or_insert(now);
            self.last_observed.insert(threshold.signal.condition(), now);
            let grace = if is_soft { options.eviction_soft_grace_period.of(threshold.signal) } else { None };
            if (now - since).to_std().unwrap_or_default() >= grace.unwrap_or_default() {
                due.push(MetThreshold { signal: threshold.signal, is_soft, met });
            }
        }
        self.first_met.retain(|key, _| still.contains(key));
        due.sort_by_key(|met| (met.signal, met.is_soft));
        due
    }

    /// The conditions that were observed within the time that they stay.
    fn conditions(&mut self, options: &KubeletOptions, now: Time) -> Vec<&'static str> {
        let period = options.eviction_pressure_transition_period;
        self.last_observed
            .retain(|_, last| (now - *last).to_std().is_ok_and(|age| age < period) || *last == now);
        self.last_observed.keys().copied().collect()
    }
}

/// Whether less is left than there must be; once that was so, than there must be and is to be reclaimed.
fn met(
    threshold: &EvictionThreshold,
    observed: &Observation,
    options: &KubeletOptions,
    was_met: bool,
) -> Option<Met> {
    let quantity = threshold.value.of(observed.capacity);
    let reclaims = &options.eviction_minimum_reclaim.0;
    let reclaim = reclaims.iter().find(|(signal, _)| was_met && *signal == threshold.signal);
    let more = reclaim.map_or(0, |(_, value)| value.of(observed.capacity).value());
    let is_met = observed.available < quantity.value().saturating_add(more);
    is_met.then(|| (quantity, Quantity::new(observed.available, threshold.signal.format())))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(seconds: i64) -> Time {
        Time::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn memory(available: i64) -> BTreeMap<Signal, Observation> {
        [(Signal::Memory, Observation { available, capacity: 1000 })].into()
    }

    fn options() -> KubeletOptions {
        KubeletOptions {
            eviction_hard: "memory.available<100".parse().unwrap(),
            eviction_soft: "memory.available<20%".parse().unwrap(),
            eviction_soft_grace_period: "memory.available=30s".parse().unwrap(),
            eviction_minimum_reclaim: "memory.available=50".parse().unwrap(),
            ..KubeletOptions::default()
        }
    }

    /// Upstream's `TestMemoryPressure`, in short.
    #[test]
    fn soft_thresholds_wait_and_hard_ones_do_not() {
        let options = options();
        let mut manager = EvictionManager::default();
        let mut due = |available: i64, seconds: i64| -> Vec<bool> {
            manager.met(&options, &memory(available), at(seconds)).iter().map(|met| met.is_soft).collect()
        };
        assert_eq!(due(300, 0), [false; 0]);
        assert_eq!(due(150, 10), [false; 0]);
        assert_eq!(due(150, 39), [false; 0]);
        assert_eq!(due(150, 40), [true]);
        assert_eq!(due(90, 41), [false, true]);
        // Until enough is reclaimed.
        assert_eq!(due(140, 42), [false, true]);
        assert_eq!(due(240, 43), [true]);
        assert_eq!(due(250, 44), [false; 0]);
    }

    #[test]
    fn conditions_stay_for_their_time() {
        let options = options();
        let mut manager = EvictionManager::default();
        assert!(manager.is_calm());
        manager.met(&options, &memory(150), at(0));
        assert_eq!(manager.conditions(&options, at(0)), ["MemoryPressure"]);
        manager.met(&options, &memory(900), at(10));
        assert_eq!(manager.conditions(&options, at(299)), ["MemoryPressure"]);
        assert!(!manager.is_calm());
        assert_eq!(manager.conditions(&options, at(300)), [""; 0]);
        assert!(manager.is_calm());
    }
}
