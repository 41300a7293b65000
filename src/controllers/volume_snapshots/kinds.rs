//! The kinds of snapshots, as their definitions declare them.

use std::sync::Arc;

use serde_json::Value;

use apimachinery::object::object_key;
use apis::kind::Kind;
use apis::scheme::Scheme;
use apis::tree::text;

/// Their group.
pub(crate) const GROUP: &str = "snapshot.storage.k8s.io";
const VERSION: &str = "v1";

/// All three.
pub(crate) struct SnapshotKinds {
    pub(crate) snapshots: Arc<Kind>,
    pub(crate) contents: Arc<Kind>,
    pub(crate) classes: Arc<Kind>,
}

impl SnapshotKinds {
    /// Nothing unless all are served.
    pub(crate) fn of(scheme: &Scheme) -> Option<SnapshotKinds> {
        let kind = |plural: &str| scheme.resource(GROUP, VERSION, plural);
        Some(SnapshotKinds {
            snapshots: kind("volumesnapshots")?,
            contents: kind("volumesnapshotcontents")?,
            classes: kind("volumesnapshotclasses")?,
        })
    }
}

/// The key of the snapshot that a content is for.
pub(super) fn snapshot_of(content: &Value) -> String {
    let of = &content["spec"]["volumeSnapshotRef"];
    object_key(text(of, "namespace"), text(of, "name"))
}
