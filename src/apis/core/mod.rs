//! The core group, `v1`.

pub mod config_map;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&config_map::CONFIG_MAPS];
