//! StorageClass: how volumes are made.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `storageclasses`
pub static STORAGE_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("storage.k8s.io", "v1", "StorageClass", "storageclasses", "io.k8s.api.storage.v1")
        .cluster_scoped()
        .short(&["sc"])
        .into()
});
