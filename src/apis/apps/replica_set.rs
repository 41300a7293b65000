//! ReplicaSet: so many pods of one template.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `replicasets`
pub static REPLICA_SETS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "ReplicaSet", "replicasets", "io.k8s.api.apps.v1")
        .short(&["rs"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .selectable_as("status.replicas", "status.replicas", "0")
        .with_generation()
        .into()
});
