//! PersistentVolume: storage that outlives pods.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `persistentvolumes`
pub static PERSISTENT_VOLUMES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "PersistentVolume", "persistentvolumes", "io.k8s.api.core.v1")
        .cluster_scoped()
        .short(&["pv"])
        .with(&[Subresource::Status])
        .into()
});
