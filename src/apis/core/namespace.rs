//! Namespace: a room for names.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `namespaces`
pub static NAMESPACES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Namespace", "namespaces", "io.k8s.api.core.v1")
        .cluster_scoped()
        .short(&["ns"])
        .only(&["create", "delete", "get", "list", "patch", "update", "watch"])
        .with(&[Subresource::Finalize, Subresource::Status])
        .selectable_by(&["status.phase"])
        .into()
});
