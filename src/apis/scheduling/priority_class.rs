//! PriorityClass: which pods go first.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `priorityclasses`
pub static PRIORITY_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "io.k8s.api.scheduling.v1")
        .cluster_scoped()
        .short(&["pc"])
        .with_generation()
        .into()
});
