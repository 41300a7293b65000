//! The group `admissionregistration.k8s.io/v1`: who else is asked before a write.

pub mod admission_policy;
mod match_resources;
pub mod policy_binding;
pub mod webhook_configuration;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &webhook_configuration::MUTATING_WEBHOOK_CONFIGURATIONS,
    &webhook_configuration::VALIDATING_WEBHOOK_CONFIGURATIONS,
    &admission_policy::VALIDATING_ADMISSION_POLICIES,
    &policy_binding::VALIDATING_ADMISSION_POLICY_BINDINGS,
    &admission_policy::MUTATING_ADMISSION_POLICIES,
    &policy_binding::MUTATING_ADMISSION_POLICY_BINDINGS,
];

const GROUP: &str = "admissionregistration.k8s.io";
const DEFINITIONS: &str = "io.k8s.api.admissionregistration.v1";
