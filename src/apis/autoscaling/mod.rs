//! The group `autoscaling`.

pub mod horizontal_pod_autoscaler;
pub mod horizontal_pod_autoscaler_v1;
mod validation;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALERS,
    &horizontal_pod_autoscaler_v1::HORIZONTAL_POD_AUTOSCALERS_V1,
];
