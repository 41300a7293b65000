//! CSIDriver, CSINode and CSIStorageCapacity: what the storage drivers say of themselves.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `csidrivers`
pub static CSI_DRIVERS: Builtin = LazyLock::new(|| {
    Kind::builtin("storage.k8s.io", "v1", "CSIDriver", "csidrivers", "io.k8s.api.storage.v1")
        .cluster_scoped()
        .into()
});

/// `csinodes`
pub static CSI_NODES: Builtin = LazyLock::new(|| {
    Kind::builtin("storage.k8s.io", "v1", "CSINode", "csinodes", "io.k8s.api.storage.v1")
        .cluster_scoped()
        .into()
});

/// `csistoragecapacities`
pub static CSI_STORAGE_CAPACITIES: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "storage.k8s.io",
        "v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        "io.k8s.api.storage.v1",
    )
    .into()
});
