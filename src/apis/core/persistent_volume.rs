//! PersistentVolume: storage that outlives pods.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::core::pod::defaults::volume_source;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{access_modes, name, or, quantity};
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use serde_json::{Value, json};

/// `persistentvolumes`
pub static PERSISTENT_VOLUMES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "PersistentVolume", "persistentvolumes", "io.k8s.api.core.v1")
        .cluster_scoped()
        .short(&["pv"])
        .with(&[Subresource::Status])
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules { prepare_for_create, ..RULES })
        .into()
});

const SPEC: &str = "io.k8s.api.core.v1.PersistentVolumeSpec";
const STATUS: &str = "io.k8s.api.core.v1.PersistentVolumeStatus";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Capacity", "string", SPEC, "capacity"),
        Column::of("Access Modes", "string", SPEC, "accessModes"),
        Column::of("Reclaim Policy", "string", SPEC, "persistentVolumeReclaimPolicy"),
        Column::of("Status", "string", STATUS, "phase"),
        Column::of("Claim", "string", SPEC, "claimRef"),
        Column::new("StorageClass", "string", "StorageClass of the pv"),
        Column::new("VolumeAttributesClass", "string", "VolumeAttributesClass of the pv"),
        Column::of("Reason", "string", STATUS, "reason"),
        Column::age(),
        Column::of("VolumeMode", "string", SPEC, "volumeMode").wide(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let claim = if is_set(&tree, "spec.claimRef") {
        format!("{}/{}", text(&tree, "spec.claimRef.namespace"), text(&tree, "spec.claimRef.name"))
    } else {
        String::new()
    };
    let phase = if object.is_deleting() { "Terminating" } else { text(&tree, "status.phase") };
    let class = or(
        annotation(&tree, "volume.beta.kubernetes.io/storage-class"),
        text(&tree, "spec.storageClassName"),
    );
    vec![
        name(object),
        json!(quantity(&tree, "spec.capacity.storage")),
        json!(access_modes(&tree, "spec.accessModes")),
        json!(text(&tree, "spec.persistentVolumeReclaimPolicy")),
        json!(phase),
        claim.into(),
        json!(class),
        json!(at(&tree, "spec.volumeAttributesClassName").as_str().unwrap_or("<unset>")),
        json!(text(&tree, "status.reason")),
        age(object, now),
        json!(at(&tree, "spec.volumeMode").as_str().unwrap_or("<unset>")),
    ]
}

fn defaults(volume: &mut Value) {
    set_if_zero(volume, "status.phase", "Pending");
    set_if_zero(volume, "spec.persistentVolumeReclaimPolicy", "Retain");
    set_if_unset(volume, "spec.volumeMode", "Filesystem");
    change(volume, "spec", volume_source);
}

fn prepare_for_create(volume: &mut Value) {
    set(volume, "status", json!({"phase": "Pending"}));
}
