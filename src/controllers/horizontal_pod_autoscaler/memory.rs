//! What is remembered of one autoscaler between its syncs: what was recommended, and what was changed when.

use chrono::TimeDelta;

use apimachinery::time::Time;
use apis::views::horizontal_pod_autoscaler::{HorizontalPodAutoscalerBehavior, HpaScalingRules};

/// So many recommendations, or changes of one direction, are kept of an autoscaler; beyond that the oldest
/// goes. Upstream's own rule, to write over what is too old to count, keeps one for each sync of the longest
/// window: an hour of syncs each second.
const MAX_REMEMBERED: usize = 3600;

/// What is remembered of one autoscaler. Bound: [`MAX_REMEMBERED`] of each.
#[derive(Debug, Default)]
pub(super) struct AutoscalerMemory {
    /// Not stabilised yet (`timestampedRecommendation`).
    pub(super) recommendations: Vec<Recommendation>,
    pub(super) scale_ups: Vec<ScaleEvent>,
    pub(super) scale_downs: Vec<ScaleEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recommendation {
    pub(super) replicas: i64,
    pub(super) at: Time,
}

/// `timestampedScaleEvent`
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ScaleEvent {
    /// By how many; never below zero.
    pub(super) change: i64,
    pub(super) at: Time,
    /// No policy looks so far back: the next one takes its place.
    pub(super) is_outdated: bool,
}

impl AutoscalerMemory {
    /// `recordInitialRecommendation`
    pub(super) fn begin(&mut self, replicas: i64, at: Time) {
        if self.recommendations.is_empty() {
            self.recommendations.push(Recommendation { replicas, at });
        }
    }

    /// Notes what is recommended now, in the place of one that is too old to count.
    pub(super) fn note(&mut self, replicas: i64, at: Time, old: Option<usize>) {
        replace(&mut self.recommendations, Recommendation { replicas, at }, old);
    }

    /// `storeScaleEvent`: only policies ever look at it.
    pub(super) fn store_scale_event(
        &mut self,
        behavior: Option<&HorizontalPodAutoscalerBehavior>,
        (before, after): (i64, i64),
        at: Time,
    ) {
        let Some(behavior) = behavior else { return };
        let (events, rules) = if after > before {
            (&mut self.scale_ups, &behavior.scale_up)
        } else {
            (&mut self.scale_downs, &behavior.scale_down)
        };
        let longest = rules.as_ref().map_or(0, longest_policy_period);
        mark_outdated(events, TimeDelta::seconds(longest), at);
        let old = events.iter().rposition(|event| event.is_outdated);
        let change = (after - before).abs();
        replace(events, ScaleEvent { change, at, is_outdated: false }, old);
    }
}

/// `markScaleEventsOutdated`
fn mark_outdated(events: &mut [ScaleEvent], period: TimeDelta, now: Time) {
    for event in events.iter_mut().filter(|event| event.at < now - period) {
        event.is_outdated = true;
    }
}

fn replace<T>(kept: &mut Vec<T>, new: T, old: Option<usize>) {
    match old {
        Some(old) => kept[old] = new,
        None => {
            if kept.len() >= MAX_REMEMBERED {
                kept.remove(0);
            }
            kept.push(new);
        }
    }
}

/// `getLongestPolicyPeriod`, in seconds.
fn longest_policy_period(rules: &HpaScalingRules) -> i64 {
    rules.policies.iter().map(|policy| policy.period_seconds).max().unwrap_or(0)
}

/// `getReplicasChangePerPeriod`
pub(super) fn change_in(period_seconds: i64, events: &[ScaleEvent], now: Time) -> i64 {
    let cutoff = now - TimeDelta::seconds(period_seconds);
    events.iter().filter(|event| event.at > cutoff).map(|event| event.change).sum()
}
