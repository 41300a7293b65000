//! RuntimeClass: which runtime a pod runs under.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `runtimeclasses`
pub static RUNTIME_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "io.k8s.api.node.v1")
        .cluster_scoped()
        .into()
});
