//! Node: a machine that runs pods.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `nodes`
pub static NODES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Node", "nodes", "io.k8s.api.core.v1")
        .cluster_scoped()
        .short(&["no"])
        .with(&[Subresource::Proxy, Subresource::Status])
        .selectable_as("spec.unschedulable", "spec.unschedulable", "false")
        .into()
});
