//! Views of roles and bindings.

use serde::Deserialize;

use crate::rbac::policy_rule::PolicyRule;
use apimachinery::labels::LabelSelector;
use apimachinery::object::nullable;

/// Of a Role or ClusterRole: what may be done.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Role {
    /// Each allows something.
    #[serde(deserialize_with = "nullable")]
    pub rules: Vec<PolicyRule>,
    /// Of a ClusterRole whose rules a controller gathers.
    pub aggregation_rule: Option<AggregationRule>,
}

/// `rbacv1.AggregationRule`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AggregationRule {
    /// A role that one of them matches is a part.
    #[serde(deserialize_with = "nullable")]
    pub cluster_role_selectors: Vec<LabelSelector>,
}

/// Of a RoleBinding or ClusterRoleBinding: who may do it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Binding {
    /// Whom it binds.
    #[serde(deserialize_with = "nullable")]
    pub subjects: Vec<Subject>,
    /// To what.
    pub role_ref: RoleRef,
}

/// `rbacv1.Subject`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// Empty for service accounts.
    pub api_group: String,
    /// Of the user, group or service account.
    pub name: String,
    /// Of the service account; empty is the binding's own.
    pub namespace: String,
}

/// `rbacv1.RoleRef`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleRef {
    /// Always RBAC's.
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Of the role.
    pub name: String,
}
