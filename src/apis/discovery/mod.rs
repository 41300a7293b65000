//! The group `discovery.k8s.io/v1`.

pub mod endpoint_slice;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&endpoint_slice::ENDPOINT_SLICES];
