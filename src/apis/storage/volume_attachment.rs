//! VolumeAttachment: the wish to have a volume at a node.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::name;
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::{flag, text};
use serde_json::{Value, json};

/// `volumeattachments`
pub static VOLUME_ATTACHMENTS: Builtin = LazyLock::new(|| {
    Kind::builtin("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "io.k8s.api.storage.v1")
        .cluster_scoped()
        .with(&[Subresource::Status])
        .printed(columns(), cells)
        .governed_by(Rules { allow_unconditional_update: false, ..RULES })
        .into()
});

const SPEC: &str = "io.k8s.api.storage.v1.VolumeAttachmentSpec";

fn columns() -> Vec<Column> {
    let attacher = Column { format: "name".into(), ..Column::of("Attacher", "string", SPEC, "attacher") };
    let source = "io.k8s.api.storage.v1.VolumeAttachmentSource";
    let status = "io.k8s.api.storage.v1.VolumeAttachmentStatus";
    vec![
        Column::name(),
        attacher,
        Column::of("PV", "string", source, "persistentVolumeName"),
        Column::of("Node", "string", SPEC, "nodeName"),
        Column::of("Attached", "boolean", status, "attached"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    vec![
        name(object),
        json!(text(&tree, "spec.attacher")),
        json!(text(&tree, "spec.source.persistentVolumeName")),
        json!(text(&tree, "spec.nodeName")),
        flag(&tree, "status.attached").into(),
        age(object, now),
    ]
}
