//! The group `rbac.authorization.k8s.io/v1`.

pub mod bootstrap_policy;
pub mod policy_rule;

pub mod role;
pub mod role_binding;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] =
    &[&role::ROLES, &role::CLUSTER_ROLES, &role_binding::ROLE_BINDINGS, &role_binding::CLUSTER_ROLE_BINDINGS];
