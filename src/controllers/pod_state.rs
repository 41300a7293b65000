//! What a workload's controller asks of a pod: whether it counts, and since when (`podutil`).

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::meta::condition;
use apis::views::pod::{Pod, is_terminal};
use client_go::lister::Lister;

/// The pods of a namespace that use a claim (`findPodsByPVCKey`).
pub(crate) fn pods_with_claim(pods: &Lister, namespace: &str, claim: &str) -> Vec<Arc<Object>> {
    let mut found = pods.list(namespace, &Selector::everything());
    found.retain(|pod| pod.view::<Pod>().spec.claims.has(&pod.metadata.name, claim));
    found
}

/// `controller.IsPodActive`
pub(crate) fn is_active(pod: &Object) -> bool {
    !pod.is_deleting() && !is_terminal(pod)
}

/// `controller.IsPodTerminating`
pub(crate) fn is_terminating(pod: &Object) -> bool {
    pod.is_deleting() && !is_terminal(pod)
}

/// `podutil.IsPodAvailable`: ready for so long.
pub(crate) fn is_available(pod: &Object, min_ready_seconds: i64, now: Time) -> bool {
    if min_ready_seconds <= 0 {
        return pod.view::<Pod>().is_ready();
    }
    ready_since(pod).is_some_and(|since| since + TimeDelta::seconds(min_ready_seconds) <= now)
}

/// How long until the first of the ready pods becomes available.
pub(crate) fn next_availability_check(
    pods: &[Arc<Object>],
    min_ready_seconds: i64,
    now: Time,
) -> Option<Duration> {
    if min_ready_seconds <= 0 {
        return None;
    }
    let min_ready = TimeDelta::seconds(min_ready_seconds);
    let remaining = |pod: &Arc<Object>| {
        let left = ready_since(pod)? + min_ready - now;
        left.to_std().ok().filter(|left| !left.is_zero())
    };
    let next = pods.iter().filter_map(remaining).min()?;
    // Times in objects are cut to whole seconds, so this errs on the early side by up to one.
    let longest = Duration::from_secs(u64::try_from(min_ready_seconds).unwrap_or(0));
    Some(next.max(Duration::from_millis(10)).min(longest))
}

fn ready_since(pod: &Object) -> Option<Time> {
    let pod = pod.view::<Pod>();
    condition(&pod.status.conditions, "Ready").filter(|ready| ready.status == "True")?.last_transition_time
}
