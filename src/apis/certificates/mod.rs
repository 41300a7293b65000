//! The group `certificates.k8s.io/v1`.

pub mod certificate_signing_request;
pub mod request;
mod signer_name;

pub use signer_name::signer_name;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&certificate_signing_request::CERTIFICATE_SIGNING_REQUESTS];
