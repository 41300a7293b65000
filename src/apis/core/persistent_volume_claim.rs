//! PersistentVolumeClaim: the wish for a PersistentVolume.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{access_modes, name, or, quantity};
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use serde_json::{Value, json};

/// `persistentvolumeclaims`
pub static PERSISTENT_VOLUME_CLAIMS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "io.k8s.api.core.v1")
        .short(&["pvc"])
        .with(&[Subresource::Status])
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules { prepare_for_create, prepare_for_update: |new, _| data_source(new), ..RULES })
        .into()
});

const SPEC: &str = "io.k8s.api.core.v1.PersistentVolumeClaimSpec";
const STATUS: &str = "io.k8s.api.core.v1.PersistentVolumeClaimStatus";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Status", "string", STATUS, "phase"),
        Column::of("Volume", "string", SPEC, "volumeName"),
        Column::of("Capacity", "string", STATUS, "capacity"),
        Column::of("Access Modes", "string", STATUS, "accessModes"),
        Column::new("StorageClass", "string", "StorageClass of the pvc"),
        Column::new("VolumeAttributesClass", "string", "VolumeAttributesClass of the pvc"),
        Column::age(),
        Column::of("VolumeMode", "string", SPEC, "volumeMode").wide(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let volume = text(&tree, "spec.volumeName");
    let (capacity, modes) = match volume {
        "" => ("", String::new()),
        _ => (quantity(&tree, "status.capacity.storage"), access_modes(&tree, "status.accessModes")),
    };
    let phase = if object.is_deleting() { "Terminating" } else { text(&tree, "status.phase") };
    let class = or(
        annotation(&tree, "volume.beta.kubernetes.io/storage-class"),
        text(&tree, "spec.storageClassName"),
    );
    vec![
        name(object),
        json!(phase),
        json!(volume),
        json!(capacity),
        modes.into(),
        json!(class),
        json!(at(&tree, "spec.volumeAttributesClassName").as_str().unwrap_or("<unset>")),
        age(object, now),
        json!(at(&tree, "spec.volumeMode").as_str().unwrap_or("<unset>")),
    ]
}

/// `SetObjectDefaults_PersistentVolumeClaim`; also of the templates in StatefulSets.
pub fn defaults(claim: &mut Value) {
    set_if_zero(claim, "status.phase", "Pending");
    default_spec(claim);
}

/// `SetDefaults_PersistentVolumeClaimSpec`; also of ephemeral volumes.
pub fn default_spec(claim: &mut Value) {
    set_if_unset(claim, "spec.volumeMode", "Filesystem");
}

fn prepare_for_create(claim: &mut Value) {
    set(claim, "status", json!({"phase": "Pending"}));
    data_source(claim);
}

/// `dataSource` is the older form of `dataSourceRef`; each is filled from the other, unless the latter reaches into
/// another namespace.
fn data_source(claim: &mut Value) {
    let (old, new) = (at(claim, "spec.dataSource").clone(), at(claim, "spec.dataSourceRef").clone());
    if new.is_null() && !old.is_null() {
        set(claim, "spec.dataSourceRef", old);
    } else if old.is_null() && !new.is_null() && text(&new, "namespace").is_empty() {
        set(claim, "spec.dataSource", new);
        remove(claim, "spec.dataSource.namespace");
    }
}
