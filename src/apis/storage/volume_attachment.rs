//! VolumeAttachment: the wish to have a volume at a node.

use std::sync::LazyLock;

use crate::core::persistent_volume;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::{flag, text};
use crate::validation::Field;
use crate::validation::texts::{csi_driver_name, in_range, shown_each};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::dns1123_subdomain;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `volumeattachments`
pub static VOLUME_ATTACHMENTS: Builtin = LazyLock::new(|| {
    Kind::builtin("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "io.k8s.api.storage.v1")
        .cluster_scoped()
        .with(&[Subresource::Status])
        .status_resets(&["metadata", "spec"])
        .status_leaves_metadata()
        .returns_deleted()
        .printed(columns(), cells)
        .governed_by(Rules {
            allow_unconditional_update: false,
            validate,
            validate_create: |new, errors| {
                csi_driver_name(&Field::of(new, "spec.attacher"), errors);
                Field::of(new, "spec.source.persistentVolumeName").follows(dns1123_subdomain, errors);
            },
            validate_update,
            validate_status_update: |new, old, errors| {
                validate(new, errors);
                validate_update(new, old, errors);
            },
            ..RULES
        })
        .into()
});

/// `ValidateVolumeAttachment`
fn validate(attachment: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(attachment, "spec");
    spec.child("attacher").require(errors);
    let source = spec.child("source");
    let (inline, volume) = (source.child("inlineVolumeSpec"), source.child("persistentVolumeName"));
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_set(), volume.is_set()) {
        (false, false) => source.required(ONE, errors),
        (true, true) => source.forbidden(ONE, errors),
        (true, false) => persistent_volume::validate_inline(&inline, errors),
        (false, true) if volume.is_zero() => {
            volume.required("must specify non empty persistentVolumeName", errors);
        }
        (false, true) => {}
    }
    shown_each(&spec.child("nodeName"), dns1123_subdomain, errors);
    validate_status(&Field::of(attachment, "status"), errors);
}

fn validate_status(status: &Field, errors: &mut FieldErrors) {
    const MOST_BYTES: usize = 256 * 1024;
    const MOST_MESSAGE_BYTES: usize = 1024;
    let metadata = status.child("attachmentMetadata");
    let bytes = |(name, value): (&str, Field)| name.len() + value.text().len();
    if metadata.members().into_iter().map(bytes).sum::<usize>() > MOST_BYTES {
        errors.too_long(metadata.path.as_str(), MOST_BYTES);
    }
    for error in ["attachError", "detachError"].map(|name| status.child(name)) {
        let (message, code) = (error.child("message"), error.child("errorCode"));
        if message.text().len() > MOST_MESSAGE_BYTES {
            // The limit that upstream tells is another one.
            errors.too_long(message.path.as_str(), MOST_BYTES);
        }
        if code.number() < 0 {
            code.invalid_each(in_range(code.number(), 0, i64::from(i32::MAX)), errors);
        }
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    Field::of(new, "spec").immutable(&Field::of(old, "spec"), errors);
}

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
