//! The group `admissionregistration.k8s.io/v1`: what people add to admission themselves, as webhooks and as
//! policies.

pub mod expressions;
pub mod type_checking;

pub mod mutating_admission_policy;
pub mod validating_admission_policy;
pub mod webhook_configuration;

mod client_config;
mod group;
mod matching;
mod policy;

pub use group::GROUP;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &webhook_configuration::MUTATING_WEBHOOK_CONFIGURATIONS,
    &webhook_configuration::VALIDATING_WEBHOOK_CONFIGURATIONS,
    &validating_admission_policy::VALIDATING_ADMISSION_POLICIES,
    &validating_admission_policy::VALIDATING_ADMISSION_POLICY_BINDINGS,
    &mutating_admission_policy::MUTATING_ADMISSION_POLICIES,
    &mutating_admission_policy::MUTATING_ADMISSION_POLICY_BINDINGS,
];
