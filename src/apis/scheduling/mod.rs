//! The group `scheduling.k8s.io/v1`.

pub mod priority_class;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&priority_class::PRIORITY_CLASSES];
