//! The group `node.k8s.io/v1`.

pub mod runtime_class;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&runtime_class::RUNTIME_CLASSES];
