//! What a failed pod means (`podFailurePolicy`), and when enough pods have succeeded (`successPolicy`).

use super::indexes::Intervals;
use super::pods::JobPod;
use apis::views::job::{JobSpec, OnExitCodes, OnPodCondition, SuccessPolicy};
use apis::views::pod::{ContainerStatus, PodStatus};

/// What a policy says of a failed pod.
pub(super) struct PodFailure {
    /// Whether it counts against the limits.
    pub is_counted: bool,
    /// Whether its index has failed with it.
    pub fails_index: bool,
    /// Why the Job has failed with it, if it has.
    pub fails_job: Option<String>,
    /// What the rule that matched says.
    pub action: Option<String>,
}

/// What the pod failure policy says of a failed pod (`matchPodFailurePolicy`). The first rule that matches
/// decides; without one it counts.
pub(super) fn failure(spec: &JobSpec, pod: &JobPod) -> PodFailure {
    let counted = PodFailure { is_counted: true, fails_index: false, fails_job: None, action: None };
    let Some(policy) = &spec.pod_failure_policy else { return counted };
    let status = &pod.view.status;
    for (at, rule) in policy.rules.iter().enumerate() {
        let (namespace, name) = (&pod.object.metadata.namespace, pod.name());
        let what = match &rule.on_exit_codes {
            Some(codes) => exit_code(status, codes).map(|(container, code)| {
                format!("Container {container} for pod {namespace}/{name} failed with exit code {code}")
            }),
            None => pod_condition(status, &rule.on_pod_conditions)
                .map(|condition| format!("Pod {namespace}/{name} has condition {condition}")),
        };
        let Some(what) = what else { continue };
        let action = rule.action.as_str();
        let counted = PodFailure { action: Some(action.to_owned()), ..counted };
        return match action {
            "Ignore" => PodFailure { is_counted: false, ..counted },
            "FailIndex" => PodFailure { fails_index: true, ..counted },
            "FailJob" => PodFailure {
                fails_job: Some(format!("{what} matching {action} rule at index {at}")),
                ..counted
            },
            _ => counted,
        };
    }
    counted
}

/// Why the Job has succeeded with these indexes (`matchSuccessPolicy`).
pub(super) fn success(
    policy: Option<&SuccessPolicy>,
    completions: i64,
    succeeded: &Intervals,
) -> Option<String> {
    if succeeded.total() == 0 {
        return None;
    }
    let rules = &policy?.rules;
    let is_met = |rule: &apis::views::job::SuccessPolicyRule| match &rule.succeeded_indexes {
        None => rule.succeeded_count.is_some_and(|count| succeeded.total() >= count),
        Some(text) => {
            let wanted = Intervals::parse(text, completions);
            let met = wanted.common_with(succeeded);
            let is_enough = rule.succeeded_count.is_some_and(|count| met >= count);
            wanted.total() > 0 && (met == wanted.total() || is_enough)
        }
    };
    let at = rules.iter().position(is_met)?;
    Some(format!("Matched rules at index {at}"))
}

/// The first container with a code that is meant, and the code.
fn exit_code<'a>(status: &'a PodStatus, codes: &OnExitCodes) -> Option<(&'a str, i32)> {
    let is_meant = |code: i32| match codes.operator.as_str() {
        "In" => codes.values.contains(&code),
        "NotIn" => !codes.values.contains(&code),
        _ => false,
    };
    let matching = |container: &'a ContainerStatus| {
        let is_it = codes.container_name.as_ref().is_none_or(|name| *name == container.name);
        let code = container.state.terminated.as_ref()?.exit_code;
        (is_it && code != 0 && is_meant(code)).then_some((container.name.as_str(), code))
    };
    let containers = status.container_statuses.iter().chain(&status.init_container_statuses);
    containers.filter_map(matching).next()
}

fn pod_condition<'a>(status: &'a PodStatus, patterns: &[OnPodCondition]) -> Option<&'a str> {
    let is_meant = |condition: &&apis::views::meta::Condition| {
        let fits = |pattern: &OnPodCondition| {
            pattern.condition_type == condition.condition_type && pattern.status == condition.status
        };
        patterns.iter().any(fits)
    };
    status.conditions.iter().find(is_meant).map(|condition| condition.condition_type.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::object::Object;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn spec(rules: Value) -> JobSpec {
        serde_json::from_value(json!({"podFailurePolicy": {"rules": rules}})).unwrap()
    }

    fn pod(code: i32, condition: &str) -> JobPod {
        let status = json!({
            "phase": "Failed",
            "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": code}}}],
            "conditions": [{"type": condition, "status": "True"}],
        });
        let tree = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "status": status});
        let object = Arc::new(Object::from_value(&tree, vec![]).unwrap());
        let job = Object::from_value(&json!({"metadata": {"name": "j"}}), vec![]).unwrap();
        JobPod::of(object, &job, &BTreeSet::new())
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let spec = spec(json!([
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}},
            {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "NotIn", "values": [1]}},
        ]));
        let of = |code, condition| {
            let failure = failure(&spec, &pod(code, condition));
            (failure.is_counted, failure.fails_index, failure.fails_job.unwrap_or_default())
        };
        assert_eq!(of(42, "DisruptionTarget"), (false, false, String::new()));
        assert_eq!(of(7, "Ready"), (true, true, String::new()));
        assert_eq!(of(1, "Ready"), (true, false, String::new()));
        let words = "Container c for pod n/p failed with exit code 42 matching FailJob rule at index 2";
        assert_eq!(of(42, "Ready"), (true, false, words.into()));
        assert_eq!(of(0, "Ready"), (true, false, String::new()));
    }

    #[test]
    fn success_is_by_indexes_or_count() {
        let met = |rules: Value, indexes: &str| {
            let policy: SuccessPolicy = serde_json::from_value(json!({"rules": rules})).unwrap();
            success(Some(&policy), 10, &Intervals::parse(indexes, 10))
        };
        let leader = json!([{"succeededIndexes": "0"}, {"succeededIndexes": "1-4", "succeededCount": 2}]);
        assert_eq!(met(leader.clone(), "0").unwrap(), "Matched rules at index 0");
        assert_eq!(met(leader.clone(), "1,4").unwrap(), "Matched rules at index 1");
        assert_eq!(met(leader, "1,5-9"), None);
        assert_eq!(met(json!([{"succeededCount": 3}]), "1,5-6").unwrap(), "Matched rules at index 0");
        assert_eq!(met(json!([{"succeededCount": 3}]), ""), None);
    }
}
