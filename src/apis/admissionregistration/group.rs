//! What the kinds of the group have in common.

/// The group's name.
pub const GROUP: &str = "admissionregistration.k8s.io";
/// What the names of its definitions begin with.
pub(super) const DEFINITION: &str = "io.k8s.api.admissionregistration.v1";
