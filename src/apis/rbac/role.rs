//! Role and ClusterRole: what may be done.

use std::sync::LazyLock;

use super::bootstrap_policy;
use crate::kind::{Builtin, Kind};
use crate::rules::{RULES, Rules};
use crate::validation::Field;
use crate::validation::labels::label_selector;
use apimachinery::field_error::FieldErrors;
use apimachinery::names;
use serde_json::Value;

/// `roles`
pub static ROLES: Builtin = LazyLock::new(|| {
    Kind::builtin("rbac.authorization.k8s.io", "v1", "Role", "roles", "io.k8s.api.rbac.v1")
        .governed_by(Rules {
            allow_create_on_update: true,
            validate_name: names::path_segment_name,
            validate: |role, errors| policy_rules(role, true, errors),
            ..RULES
        })
        .starting_with(&bootstrap_policy::STARTING)
        .into()
});

/// `clusterroles`
pub static CLUSTER_ROLES: Builtin = LazyLock::new(|| {
    Kind::builtin("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "io.k8s.api.rbac.v1")
        .cluster_scoped()
        .governed_by(Rules {
            allow_create_on_update: true,
            validate_name: names::path_segment_name,
            validate: cluster_role,
            ..RULES
        })
        .starting_with(&bootstrap_policy::STARTING)
        .into()
});

fn policy_rules(role: &Value, is_namespaced: bool, errors: &mut FieldErrors) {
    for rule in Field::of(role, "rules").items() {
        let (verbs, urls) = (rule.child("verbs"), rule.child("nonResourceURLs"));
        if verbs.is_zero() {
            verbs.required("verbs must contain at least one value", errors);
        }
        let [groups, resources, names] =
            ["apiGroups", "resources", "resourceNames"].map(|name| rule.child(name));
        if urls.is_zero() {
            if groups.is_zero() {
                groups.required("resource rules must supply at least one api group", errors);
            }
            if resources.is_zero() {
                resources.required("resource rules must supply at least one resource", errors);
            }
            continue;
        }
        if is_namespaced {
            urls.invalid("namespaced rules cannot apply to non-resource URLs", errors);
        }
        if !groups.is_zero() || !resources.is_zero() || !names.is_zero() {
            urls.invalid("rules cannot apply to both regular resources and non-resource URLs", errors);
        }
    }
}

fn cluster_role(role: &Value, errors: &mut FieldErrors) {
    policy_rules(role, false, errors);
    let aggregation = Field::of(role, "aggregationRule");
    let selectors = aggregation.child("clusterRoleSelectors");
    if aggregation.is_set() && selectors.is_zero() {
        let words = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        selectors.required(words, errors);
    }
    selectors.items().iter().for_each(|selector| label_selector(selector, errors));
}
