//! The group `apiregistration.k8s.io/v1`: who serves which group and version.

pub mod api_service;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&api_service::API_SERVICES];
