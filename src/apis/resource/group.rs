//! What the kinds of the group have in common.

/// The group's name.
pub(super) const GROUP: &str = "resource.k8s.io";
/// What the names of its definitions begin with.
pub(super) const DEFINITIONS: &str = "io.k8s.api.resource.v1";
