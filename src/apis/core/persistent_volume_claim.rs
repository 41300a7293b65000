//! PersistentVolumeClaim: the wish for a PersistentVolume.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `persistentvolumeclaims`
pub static PERSISTENT_VOLUME_CLAIMS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "io.k8s.api.core.v1")
        .short(&["pvc"])
        .with(&[Subresource::Status])
        .into()
});
