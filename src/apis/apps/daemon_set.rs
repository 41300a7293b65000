//! DaemonSet: one pod on every node.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `daemonsets`
pub static DAEMON_SETS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "DaemonSet", "daemonsets", "io.k8s.api.apps.v1")
        .short(&["ds"])
        .in_categories(&["all"])
        .with(&[Subresource::Status])
        .with_generation()
        .into()
});
