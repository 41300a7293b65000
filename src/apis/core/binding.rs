//! Binding: the decision to put a pod on a node; created, never kept.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};

/// `bindings`
pub static BINDINGS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Binding", "bindings", "io.k8s.api.core.v1").only(&["create"]).into()
});
