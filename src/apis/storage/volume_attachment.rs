//! VolumeAttachment: the wish to have a volume at a node.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `volumeattachments`
pub static VOLUME_ATTACHMENTS: Builtin = LazyLock::new(|| {
    Kind::builtin("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "io.k8s.api.storage.v1")
        .cluster_scoped()
        .with(&[Subresource::Status])
        .into()
});
