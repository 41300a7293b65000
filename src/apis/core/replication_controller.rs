//! ReplicationController: the ancestor of the ReplicaSet.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `replicationcontrollers`
pub static REPLICATION_CONTROLLERS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ReplicationController", "replicationcontrollers", "io.k8s.api.core.v1")
        .short(&["rc"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .selectable_as("status.replicas", "status.replicas", "0")
        .with_generation()
        .into()
});
