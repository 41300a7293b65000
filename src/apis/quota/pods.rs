//! What pods use (`pkg/quota/v1/evaluator/core/pods.go`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::measure::{Measure, MissingAmounts};
use super::scopes::QuotaScope;
use super::surroundings::ClaimSurroundings;
use crate::resources::{Amounts, amounts, pod_limits, pod_requests};
use crate::tree::{at, is_set, items, number, text};
use crate::validation::resources::is_extended;
use apimachinery::quantity::{Format, Quantity};
use apimachinery::time::{Time, parse};

/// What a quota may call what pods use, beside their number, huge pages and extended resources.
const RESOURCES: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

/// A quota on one of these wants every container to say it. (A mistake of the first days, kept.)
const MUST_BE_SAID: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// Before a device class: its devices as a resource of pods (`ResourceDeviceClassPrefix`).
pub(super) const OF_DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// `pods`
pub const POD_USAGE: PodMeasure = PodMeasure;

/// Measures Pods.
pub struct PodMeasure;

impl Measure for PodMeasure {
    fn handles(&self, is_create: bool, subresource: &str) -> bool {
        subresource.is_empty() || subresource == "resize" && !is_create
    }

    /// A pod that is to end at a time counts where others do not, and the other way round.
    fn concerns(&self, old: &Value, new: &Value, subresource: &str) -> bool {
        let is_endless = |pod: &Value| at(pod, "spec.activeDeadlineSeconds").is_null();
        subresource == "resize" || is_endless(old) != is_endless(new)
    }

    fn measures(&self, name: &str) -> bool {
        measures(name)
    }

    fn usage(&self, pod: &Value, now: Time, _around: &ClaimSurroundings) -> Amounts {
        pod_usage(pod, now)
    }

    fn constraints(&self, required: &[&str], pod: &Value) -> Result<(), MissingAmounts> {
        constraints(required, pod)
    }

    fn is_in(&self, scope: &QuotaScope, pod: &Value) -> bool {
        scope.holds_pod(pod)
    }

    fn frees(&self, old: &Value, new: &Value) -> bool {
        let ended = |pod: &Value| matches!(text(pod, "status.phase"), "Succeeded" | "Failed");
        !ended(old) && ended(new) || at(old, "spec.containers") != at(new, "spec.containers")
    }
}

/// Whether pods use what a quota calls `name`.
fn measures(name: &str) -> bool {
    RESOURCES.contains(&name)
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
        || name.strip_prefix("requests.").is_some_and(is_extended_resource)
}

/// Whether pods ask for devices by that name, or for what a device plugin gives out
/// (`IsDRAExtendedResourceName`).
pub(super) fn is_extended_resource(name: &str) -> bool {
    name.starts_with(OF_DEVICE_CLASS) || is_extended(name)
}

/// What a pod uses; nothing when it has ended, other than that it is there.
pub(super) fn pod_usage(pod: &Value, now: Time) -> Amounts {
    if has_ended(pod, now) {
        return Amounts::new();
    }
    let mut usage = compute_usage(&pod_requests(pod), &pod_limits(pod));
    usage.insert("pods".into(), Quantity::new(1, Format::DecimalSi));
    usage
}

/// `QuotaV1Pod`, the other way round.
fn has_ended(pod: &Value, now: Time) -> bool {
    if matches!(text(pod, "status.phase"), "Failed" | "Succeeded") {
        return true;
    }
    let deleted = parse(text(pod, "metadata.deletionTimestamp"));
    let grace = chrono::TimeDelta::seconds(number(pod, "metadata.deletionGracePeriodSeconds"));
    is_set(pod, "metadata.deletionGracePeriodSeconds") && deleted.is_some_and(|deleted| now > deleted + grace)
}

fn compute_usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    let mut usage = Amounts::new();
    for (name, amount) in requests {
        let is_compute = COMPUTE.contains(&name.as_str());
        if is_compute || name.starts_with("hugepages-") {
            usage.insert(name.clone(), amount.clone());
        }
        if is_compute || name.starts_with("hugepages-") || is_extended_resource(name) {
            usage.insert(format!("requests.{name}"), amount.clone());
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| COMPUTE.contains(&name.as_str())) {
        usage.insert(format!("limits.{name}"), amount.clone());
    }
    usage
}

/// Each container says what a quota limits, unless the pod says it as a whole.
///
/// # Errors
/// `must specify limits.cpu for: a,b; memory for: a`
fn constraints(required: &[&str], pod: &Value) -> Result<(), MissingAmounts> {
    let said = |tree: &Value| {
        compute_usage(&amounts(tree, "resources.requests"), &amounts(tree, "resources.limits"))
    };
    let by_pod = said(at(pod, "spec"));
    let needed: Vec<&str> = required
        .iter()
        .copied()
        .filter(|name| MUST_BE_SAID.contains(name) && !by_pod.contains_key(*name))
        .collect();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let containers = items(pod, "spec.containers").iter().chain(items(pod, "spec.initContainers"));
    for container in containers.filter(|_| !needed.is_empty()) {
        let said = said(container);
        for name in needed.iter().filter(|name| !said.contains_key(**name)) {
            missing.entry(name).or_default().insert(text(container, "name"));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let shown = |(name, containers): (&str, BTreeSet<&str>)| {
        format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    };
    Err(format!("must specify {}", missing.into_iter().map(shown).collect::<Vec<_>>().join("; ")).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_update_is_counted_that_moves_a_pod_to_another_scope() {
        let (plain, ending) = (json!({"spec": {}}), json!({"spec": {"activeDeadlineSeconds": 60}}));
        assert!(PodMeasure.concerns(&plain, &ending, "") && PodMeasure.concerns(&ending, &plain, ""));
        assert!(!PodMeasure.concerns(&ending, &ending, "") && PodMeasure.concerns(&plain, &plain, "resize"));
        assert!(PodMeasure.handles(false, "") && !PodMeasure.handles(false, "status"));
    }

    #[test]
    fn containers_must_say_what_is_limited() {
        let pod = json!({"spec": {
            "containers": [{"name": "b", "resources": {"requests": {"cpu": "1"}}}, {"name": "a"}],
            "initContainers": [{"name": "i", "resources": {"limits": {"memory": "1Gi"}}}]}});
        let cases = [
            (vec!["pods", "requests.ephemeral-storage"], Ok(())),
            (vec!["requests.cpu"], Err("must specify requests.cpu for: a,i".into())),
            (
                vec!["memory", "limits.memory"],
                Err("must specify limits.memory for: a,b; memory for: a,b,i".into()),
            ),
        ];
        for (required, expected) in cases {
            assert_eq!(constraints(&required, &pod), expected);
        }
    }
}
