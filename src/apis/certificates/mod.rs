//! The group `certificates.k8s.io/v1`.

pub mod certificate_signing_request;
pub mod request;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&certificate_signing_request::CERTIFICATE_SIGNING_REQUESTS];
