//! The group `admissionregistration.k8s.io/v1`: what people add to admission themselves, as webhooks and as
//! policies.

pub mod expressions;
pub mod type_checking;

pub mod mutating_admission_policy;
pub mod validating_admission_policy;
pub mod webhook_configuration;

mod client_config;
mod matching;
mod policy;

use super::kind::Builtin;

/// The group's name.
pub const GROUP: &str = "admissionregistration.k8s.io";
const DEFINITION: &str = "io.k8s.api.admissionregistration.v1";

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &webhook_configuration::MUTATING_WEBHOOK_CONFIGURATIONS,
    &webhook_configuration::VALIDATING_WEBHOOK_CONFIGURATIONS,
    &validating_admission_policy::VALIDATING_ADMISSION_POLICIES,
    &validating_admission_policy::VALIDATING_ADMISSION_POLICY_BINDINGS,
    &mutating_admission_policy::MUTATING_ADMISSION_POLICIES,
    &mutating_admission_policy::MUTATING_ADMISSION_POLICY_BINDINGS,
];
