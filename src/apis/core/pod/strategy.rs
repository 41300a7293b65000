//! What the server does to a pod on a write (`pkg/registry/core/pod`): its status begins as Pending with its
//! quality of service, scheduling gates become a condition, label keys become expressions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::qos::quality_of_service;
use super::validation;
use crate::rules::{RULES, Rules};
use crate::tree::*;
use apimachinery::names;
use apimachinery::repeats::repeats;

/// The rules of pods.
pub const POD: Rules = Rules {
    prepare_for_create,
    prepare_for_status_update,
    validate: validation::validate,
    validate_create: validation::validate_create,
    validate_update: validation::validate_update,
    validate_part_update: super::validation::validate_part_update,
    validate_status_update: validation::validate_status_update,
    warnings,
    grace_period_seconds,
    ..RULES
};

fn prepare_for_create(pod: &mut Value) {
    let class = quality_of_service(pod);
    set(pod, "status", json!({"phase": "Pending", "qosClass": class}));
    if count(pod, "spec.schedulingGates") > 0 {
        let gated = json!({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": null});
        set(pod, "status.conditions", json!([gated]));
    }
    let labels = string_map(pod, "metadata.labels");
    for affinity in ["spec.affinity.podAffinity", "spec.affinity.podAntiAffinity"] {
        let path = |when: &str| format!("{affinity}.{when}DuringSchedulingIgnoredDuringExecution");
        for weighted in items_mut(pod, &path("preferred")) {
            change(weighted, "podAffinityTerm", |term| label_keys(term, &labels));
        }
        items_mut(pod, &path("required")).iter_mut().for_each(|term| label_keys(term, &labels));
    }
    items_mut(pod, "spec.topologySpreadConstraints").iter_mut().for_each(|term| label_keys(term, &labels));
}

/// Turns the values that the pod itself has for `matchLabelKeys` and `mismatchLabelKeys` into expressions.
fn label_keys(term: &mut Value, labels: &BTreeMap<String, String>) {
    if !is_set(term, "labelSelector") {
        return;
    }
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let expression = |key: &str| {
            labels.get(key).map(|value| json!({"key": key, "operator": operator, "values": [value]}))
        };
        let new: Vec<Value> = texts(term, keys).into_iter().filter_map(expression).collect();
        if !new.is_empty() {
            let expressions = [items(term, "labelSelector.matchExpressions"), &new].concat();
            set(term, "labelSelector.matchExpressions", expressions);
        }
    }
}

/// A kubelet may have dropped what it does not know; owners are not its business.
fn prepare_for_status_update(new: &mut Value, old: &Value) {
    let class = at(old, "status.qosClass").clone();
    set_if_zero(new, "status.qosClass", class);
    match at(old, "metadata.ownerReferences") {
        Value::Null => drop(remove(new, "metadata.ownerReferences")),
        owners => set(new, "metadata.ownerReferences", owners.clone()),
    }
}

/// `CheckGracefulDelete`: what nobody runs needs no grace.
fn grace_period_seconds(pod: &Value, requested: Option<i64>) -> Option<i64> {
    let is_running = !text(pod, "spec.nodeName").is_empty()
        && !matches!(text(pod, "status.phase"), "Succeeded" | "Failed");
    let wanted = requested.unwrap_or_else(|| number(pod, "spec.terminationGracePeriodSeconds"));
    Some(match (is_running, wanted) {
        (false, _) => 0,
        (true, ..0) => 1,
        (true, seconds) => seconds,
    })
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return vec![];
    }
    let mut warnings = Vec::new();
    let name_errors = names::dns1123_label(text(new, "metadata.name"));
    if !name_errors.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label \
             is recommended: [{}]",
            name_errors.join(" ")
        ));
    }
    warnings.extend(spec_warnings(at(new, "spec"), "spec"));
    warnings
}

/// `GetWarningsForPodTemplate`, as far as it goes: what is legal and will surprise.
pub fn template_warnings(new: &Value, path: &str) -> Vec<String> {
    let path = format!("{path}.spec");
    spec_warnings(at(new, &path), &path)
}

fn spec_warnings(spec: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for list in ["containers", "initContainers"] {
        for (at, container) in items(spec, list).iter().enumerate() {
            warnings.extend(container_warnings(container, &format!("{path}.{list}[{at}]")));
        }
    }
    if number(spec, "terminationGracePeriodSeconds") < 0 {
        warnings.push(format!(
            "{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    warnings
}

fn container_warnings(container: &Value, path: &str) -> Vec<String> {
    let variables = items(container, "env");
    let names = || variables.iter().map(|variable| text(variable, "name"));
    let again = names().zip(repeats(names())).enumerate().filter(|(_, (_, is_again))| *is_again);
    let hidden = |(at, (name, _))| {
        format!(
            "{path}.env[{at}]: hides previous definition of {name:?}, which may be dropped when using apply"
        )
    };
    again.map(hidden).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Strategy;

    #[test]
    fn a_new_pod_is_pending_whatever_its_client_says() {
        let mut pod = json!({"metadata": {"labels": {"app": "a"}}, "status": {"phase": "Running"}, "spec": {
            "schedulingGates": [{"name": "g"}],
            "topologySpreadConstraints": [{"labelSelector": {}, "matchLabelKeys": ["app", "none"]}]}});
        POD.prepare_for_create(&mut pod);
        assert_eq!(pod["status"]["phase"], "Pending");
        assert_eq!(pod["status"]["qosClass"], "BestEffort");
        assert_eq!(pod["status"]["conditions"][0]["reason"], "SchedulingGated");
        // What Go has no way to leave out is there, though nobody knows it.
        for time in ["lastProbeTime", "lastTransitionTime"] {
            assert_eq!(pod["status"]["conditions"][0].get(time), Some(&Value::Null), "{time}");
        }
        assert_eq!(
            pod["spec"]["topologySpreadConstraints"][0]["labelSelector"],
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]})
        );
    }

    #[test]
    fn grace_is_for_pods_that_run() {
        let running = json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}});
        let pending = json!({"spec": {"terminationGracePeriodSeconds": 30}});
        let ended = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}});
        for (pod, requested, seconds) in [
            (&running, None, 30),
            (&running, Some(5), 5),
            (&running, Some(0), 0),
            (&running, Some(-1), 1),
            (&pending, Some(9), 0),
            (&ended, None, 0),
        ] {
            assert_eq!(POD.grace_period_seconds(pod, requested), Some(seconds));
        }
    }
}
