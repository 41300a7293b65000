//! Deployment: ReplicaSets, one revision after the other.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `deployments`
pub static DEPLOYMENTS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "Deployment", "deployments", "io.k8s.api.apps.v1")
        .short(&["deploy"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .with_generation()
        .into()
});
