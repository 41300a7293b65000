//! StatefulSet: pods with names and storage of their own.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `statefulsets`
pub static STATEFUL_SETS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "StatefulSet", "statefulsets", "io.k8s.api.apps.v1")
        .short(&["sts"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .with_generation()
        .into()
});
