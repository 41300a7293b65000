//! The group `authorization.k8s.io/v1`: questions, answered and never kept.

pub mod review;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &review::LOCAL_SUBJECT_ACCESS_REVIEWS,
    &review::SELF_SUBJECT_ACCESS_REVIEWS,
    &review::SELF_SUBJECT_RULES_REVIEWS,
    &review::SUBJECT_ACCESS_REVIEWS,
];

pub use review::{SUBJECT_ACCESS_REVIEWS, validate_attributes, validate_subject};
