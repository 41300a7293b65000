//! How fast the number of replicas may change (`normalizeDesiredReplicas`): bounds, rates, and windows in
//! which the highest or the lowest recommendation counts. Pure, but for what is remembered.

use chrono::TimeDelta;

use super::memory::{AutoscalerMemory, ScaleEvent, change_in};
use apimachinery::time::Time;
use apis::views::horizontal_pod_autoscaler::{HpaScalingPolicy, HpaScalingRules};

/// Without `behavior` the number may at most double (`scaleUpLimitFactor`),
const SCALE_UP_LIMIT_FACTOR: i64 = 2;
/// but become so large in any case (`scaleUpLimitMinimum`).
const SCALE_UP_LIMIT_MINIMUM: i64 = 4;
/// Replicas are numbers of 32 bits.
const MOST: i64 = i32::MAX as i64;
const LEAST: i64 = i32::MIN as i64;

/// A number of replicas, and the reason and the message of the condition that says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Normalized {
    pub(super) replicas: i64,
    pub(super) reason: &'static str,
    pub(super) message: &'static str,
}

/// What a number is normalised with (`NormalizationArg`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Normalization<'a> {
    pub(super) up: &'a HpaScalingRules,
    pub(super) down: &'a HpaScalingRules,
    pub(super) least: i64,
    pub(super) most: i64,
    pub(super) current: i64,
    pub(super) desired: i64,
    pub(super) now: Time,
}

const WITHIN: (&str, &str) = ("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_FAST_UP: (&str, &str) =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const TOO_FAST_DOWN: (&str, &str) =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");
const TOO_MANY: (&str, &str) =
    ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW: (&str, &str) =
    ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const UP_STABILIZED: (&str, &str) = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const DOWN_STABILIZED: (&str, &str) = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const READY: (&str, &str) = ("ReadyForNewScale", "recommended size matches current size");

fn normalized(replicas: i64, (reason, message): (&'static str, &'static str)) -> Normalized {
    Normalized { replicas, reason, message }
}

/// What `AbleToScale` says of a number that was stabilised or not.
pub(super) fn stabilized_or_ready(desired: i64, stabilized: Normalized) -> Normalized {
    if stabilized.replicas == desired { normalized(desired, READY) } else { stabilized }
}

/// `stabilizeRecommendation`: the highest one within the window.
pub(super) fn stabilize(
    memory: &mut AutoscalerMemory,
    desired: i64,
    window: TimeDelta,
    now: Time,
) -> Normalized {
    let cutoff = now - window;
    let recent = memory.recommendations.iter().filter(|one| one.at >= cutoff);
    let highest = recent.map(|one| one.replicas).fold(desired, i64::max);
    let old = memory.recommendations.iter().rposition(|one| one.at < cutoff);
    memory.note(desired, now, old);
    normalized(highest, DOWN_STABILIZED)
}

/// `stabilizeRecommendationWithBehaviors`: not above the lowest one of the window of the way up, not below
/// the highest one of the window of the way down.
pub(super) fn stabilize_with_behavior(memory: &mut AutoscalerMemory, args: &Normalization<'_>) -> Normalized {
    let Normalization { desired, current, now, .. } = *args;
    let cutoff =
        |rules: &HpaScalingRules| now - TimeDelta::seconds(rules.stabilization_window_seconds.unwrap_or(0));
    let (up, down) = (cutoff(args.up), cutoff(args.down));
    let since = |cutoff: Time| {
        let recent = memory.recommendations.iter().filter(move |one| one.at > cutoff);
        recent.map(|one| one.replicas)
    };
    let lowest = since(up).fold(desired, i64::min);
    let highest = since(down).fold(desired, i64::max);
    let old = memory.recommendations.iter().rposition(|one| one.at < up && one.at < down);
    memory.note(desired, now, old);
    let why = if desired >= current { UP_STABILIZED } else { DOWN_STABILIZED };
    normalized(current.max(lowest).min(highest), why)
}

/// `convertDesiredReplicasWithRules`: what holds without `behavior`.
pub(super) fn limit(current: i64, desired: i64, least: i64, most: i64) -> Normalized {
    let rate = (SCALE_UP_LIMIT_FACTOR * current).max(SCALE_UP_LIMIT_MINIMUM);
    let (allowed, why) = if most > rate { (rate, TOO_FAST_UP) } else { (most, TOO_MANY) };
    match desired {
        _ if desired < least => normalized(least, TOO_FEW),
        _ if desired > allowed => normalized(allowed, why),
        _ => normalized(desired, WITHIN),
    }
}

/// `convertDesiredReplicasWithBehaviorRate`
pub(super) fn limit_with_behavior(memory: &AutoscalerMemory, args: &Normalization<'_>) -> Normalized {
    let Normalization { current, desired, least, most, .. } = *args;
    if desired > current {
        // Where more were added than policies allow, those that are there stay.
        let rate = scale_up_limit(memory, args).max(current);
        let (allowed, why) = if most > rate { (rate, TOO_FAST_UP) } else { (most, TOO_MANY) };
        if desired > allowed {
            return normalized(allowed, why);
        }
    }
    if desired < current {
        let rate = scale_down_limit(memory, args).min(current);
        let (allowed, why) = if least < rate { (rate, TOO_FAST_DOWN) } else { (least, TOO_FEW) };
        if desired < allowed {
            return normalized(allowed, why);
        }
    }
    normalized(desired, WITHIN)
}

/// `calculateScaleUpLimitWithScalingRules`
fn scale_up_limit(memory: &AutoscalerMemory, args: &Normalization<'_>) -> i64 {
    let starts = Starts::of(memory, args);
    let proposals = args.up.policies.iter().map(|policy| {
        let start = starts.of_period(policy.period_seconds);
        // Rounded up, since a change that leaves the number as it is would never scale anything up.
        let percent = || ((start as f64) * (1.0 + policy.value as f64 / 100.0)).ceil() as i64;
        proposal(policy, start, start + policy.value, percent)
    });
    match args.up.select_policy.as_deref() {
        Some("Disabled") => args.current,
        Some("Min") => proposals.fold(MOST, i64::min),
        _ => proposals.fold(LEAST, i64::max),
    }
}

/// `calculateScaleDownLimitWithBehaviors`
fn scale_down_limit(memory: &AutoscalerMemory, args: &Normalization<'_>) -> i64 {
    let starts = Starts::of(memory, args);
    let proposals = args.down.policies.iter().map(|policy| {
        let start = starts.of_period(policy.period_seconds);
        let percent = || ((start as f64) * (1.0 - policy.value as f64 / 100.0)) as i64;
        proposal(policy, start, start - policy.value, percent)
    });
    match args.down.select_policy.as_deref() {
        Some("Disabled") => args.current,
        Some("Min") => proposals.fold(LEAST, i64::max),
        _ => proposals.fold(MOST, i64::min),
    }
}

fn proposal(policy: &HpaScalingPolicy, start: i64, pods: i64, percent: impl Fn() -> i64) -> i64 {
    let proposed = match policy.policy_type.as_str() {
        "Pods" => pods,
        "Percent" => percent(),
        _ => start,
    };
    proposed.clamp(LEAST, MOST)
}

/// How many replicas there were when a period began.
struct Starts<'a> {
    ups: &'a [ScaleEvent],
    downs: &'a [ScaleEvent],
    current: i64,
    now: Time,
}

impl<'a> Starts<'a> {
    fn of(memory: &'a AutoscalerMemory, args: &Normalization<'_>) -> Starts<'a> {
        let (ups, downs) = (&memory.scale_ups, &memory.scale_downs);
        Starts { ups, downs, current: args.current, now: args.now }
    }

    fn of_period(&self, seconds: i64) -> i64 {
        self.current - change_in(seconds, self.ups, self.now) + change_in(seconds, self.downs, self.now)
    }
}
