//! VolumeAttributesClass: attributes of a volume that may change while it is used.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `volumeattributesclasses`
pub static VOLUME_ATTRIBUTES_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "storage.k8s.io",
        "v1",
        "VolumeAttributesClass",
        "volumeattributesclasses",
        "io.k8s.api.storage.v1",
    )
    .cluster_scoped()
    .short(&["vac"])
    .into()
});
