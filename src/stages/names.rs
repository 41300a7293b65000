//! What kwok's kinds are called.

/// Who owns the fields that stages write.
pub const FIELD_MANAGER: &str = "kwok";
/// The group of the kinds.
pub const GROUP: &str = "kwok.x-k8s.io";
/// The version of the kinds.
pub const VERSION: &str = "v1alpha1";
