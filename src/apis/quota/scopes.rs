//! The scopes of a quota: which objects it is about at all.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::core::pod::qos::quality_of_service;
use crate::tree::{at, count, is_set, items, text, texts};

/// One scope, or one expression of a scope selector (`v1.ScopedResourceSelectorRequirement`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaScope {
    /// As `BestEffort`, `PriorityClass`.
    pub name: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`
    pub operator: String,
    /// For `In` and `NotIn`.
    pub values: Vec<String>,
}

/// Both forms in which a quota names its scopes; `quota` is the tree of one.
pub fn scopes_of(quota: &Value) -> Vec<QuotaScope> {
    let plain = texts(quota, "spec.scopes").into_iter().map(|name| QuotaScope {
        name: name.into(),
        operator: "Exists".into(),
        values: vec![],
    });
    plain.chain(items(quota, "spec.scopeSelector.matchExpressions").iter().map(QuotaScope::of)).collect()
}

impl QuotaScope {
    /// From an expression.
    pub fn of(expression: &Value) -> QuotaScope {
        QuotaScope {
            name: text(expression, "scopeName").into(),
            operator: text(expression, "operator").into(),
            values: texts(expression, "values").into_iter().map(String::from).collect(),
        }
    }

    /// As Go prints it in a message.
    pub fn shown(&self) -> String {
        format!("{{{} {} [{}]}}", self.name, self.operator, self.values.join(" "))
    }

    pub(super) fn holds_pod(&self, pod: &Value) -> bool {
        let is_terminating =
            at(pod, "spec.activeDeadlineSeconds").as_i64().is_some_and(|seconds| seconds >= 0);
        match self.name.as_str() {
            "Terminating" => is_terminating,
            "NotTerminating" => !is_terminating,
            "BestEffort" => quality_of_service(pod) == "BestEffort",
            "NotBestEffort" => quality_of_service(pod) != "BestEffort",
            "PriorityClass" => {
                let class = text(pod, "spec.priorityClassName");
                self.selects(&BTreeSet::from([class]).into_iter().filter(|class| !class.is_empty()).collect())
            }
            "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
            _ => false,
        }
    }

    pub(super) fn holds_claim(&self, claim: &Value) -> bool {
        const CLASSES: [&str; 3] = [
            "spec.volumeAttributesClassName",
            "status.currentVolumeAttributesClassName",
            "status.modifyVolumeStatus.targetVolumeAttributesClassName",
        ];
        let classes = CLASSES.iter().map(|path| text(claim, path)).filter(|class| !class.is_empty());
        self.name == "VolumeAttributesClass" && self.selects(&classes.collect())
    }

    /// Whether the values that an object has are selected: one of them, or none where there are none.
    fn selects(&self, has: &BTreeSet<&str>) -> bool {
        let is_listed = |value: &&str| self.values.iter().any(|listed| listed == value);
        match self.operator.as_str() {
            "In" => has.iter().any(is_listed),
            "NotIn" => has.is_empty() || has.iter().any(|value| !is_listed(value)),
            "Exists" => !has.is_empty(),
            "DoesNotExist" => has.is_empty(),
            _ => false,
        }
    }
}

fn reaches_other_namespaces(pod: &Value) -> bool {
    let reaches = |term: &Value| count(term, "namespaces") > 0 || is_set(term, "namespaceSelector");
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let list = |name: &str| {
            items(pod, &format!("spec.affinity.{kind}.{name}DuringSchedulingIgnoredDuringExecution"))
        };
        list("required").iter().any(reaches)
            || list("preferred").iter().any(|term| reaches(at(term, "podAffinityTerm")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_are_in_scopes() {
        let scope = |name: &str, operator: &str, values: &[&str]| {
            QuotaScope::of(&json!({"scopeName": name, "operator": operator, "values": values}))
        };
        let plain = json!({"spec": {"containers": [{}]}});
        let high = json!({"spec": {"priorityClassName": "high", "activeDeadlineSeconds": 1,
            "containers": [{"resources": {"requests": {"cpu": "1"}}}]}});
        let far = json!({"spec": {"affinity": {"podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {"namespaceSelector": {}}}]}}}});
        let cases = [
            (scope("Terminating", "Exists", &[]), false, true),
            (scope("NotTerminating", "Exists", &[]), true, false),
            (scope("BestEffort", "Exists", &[]), true, false),
            (scope("NotBestEffort", "Exists", &[]), false, true),
            (scope("PriorityClass", "Exists", &[]), false, true),
            (scope("PriorityClass", "DoesNotExist", &[]), true, false),
            (scope("PriorityClass", "In", &["low", "high"]), false, true),
            (scope("PriorityClass", "NotIn", &["high"]), true, false),
            (scope("CrossNamespacePodAffinity", "Exists", &[]), false, false),
        ];
        for (scope, holds_plain, holds_high) in cases {
            assert_eq!(
                (scope.holds_pod(&plain), scope.holds_pod(&high)),
                (holds_plain, holds_high),
                "{scope:?}"
            );
        }
        assert!(scope("CrossNamespacePodAffinity", "Exists", &[]).holds_pod(&far));
        assert_eq!(scope("PriorityClass", "In", &["a", "b"]).shown(), "{PriorityClass In [a b]}");
    }

    #[test]
    fn claims_are_in_the_scopes_of_their_classes_of_attributes() {
        let scope = |operator: &str, values: &[&str]| {
            QuotaScope::of(
                &json!({"scopeName": "VolumeAttributesClass", "operator": operator, "values": values}),
            )
        };
        let plain = json!({"spec": {}});
        let gold = json!({"spec": {"volumeAttributesClassName": "gold"}});
        // It is charged to both until it has changed.
        let changing = json!({"spec": {"volumeAttributesClassName": "gold"},
            "status": {"currentVolumeAttributesClassName": "silver",
                "modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}}});
        let cases = [
            (scope("In", &["gold"]), [false, true, true]),
            (scope("In", &["silver"]), [false, false, true]),
            (scope("NotIn", &["gold"]), [true, false, true]),
            (scope("Exists", &[]), [false, true, true]),
            (scope("DoesNotExist", &[]), [true, false, false]),
        ];
        for (scope, expected) in cases {
            let held = [&plain, &gold, &changing].map(|claim| scope.holds_claim(claim));
            assert_eq!(held, expected, "{scope:?}");
        }
        assert!(!scope("Exists", &[]).holds_pod(&gold));
    }
}
