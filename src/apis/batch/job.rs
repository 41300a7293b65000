//! Job: pods that run to their end.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `jobs`
pub static JOBS: Builtin = LazyLock::new(|| {
    Kind::builtin("batch", "v1", "Job", "jobs", "io.k8s.api.batch.v1")
        .in_categories(&["all"])
        .with(&[Subresource::Status])
        .selectable_as("status.successful", "status.succeeded", "0")
        .with_generation()
        .into()
});
