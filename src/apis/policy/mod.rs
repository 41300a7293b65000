//! The group `policy/v1`.

pub mod pod_disruption_budget;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&pod_disruption_budget::POD_DISRUPTION_BUDGETS];
