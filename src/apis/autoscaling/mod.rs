//! The group `autoscaling`.

pub mod horizontal_pod_autoscaler;
mod validation;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALERS];
