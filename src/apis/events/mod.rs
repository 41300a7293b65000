//! The group `events.k8s.io/v1`.

pub mod event;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&event::EVENTS];
