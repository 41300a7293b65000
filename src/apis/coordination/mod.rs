//! The group `coordination.k8s.io/v1`.

pub mod lease;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&lease::LEASES];
