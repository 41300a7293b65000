//! PersistentVolume: storage that outlives pods.

use std::sync::LazyLock;

use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::names::dns1123_subdomain;
use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::core::persistent_volume_claim::access_modes_of;
use crate::apis::core::pod::defaults::volume_source;
use crate::apis::core::pod::validation::node_selector;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{access_modes, name, or, quantity};
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use crate::apis::validation::texts::no_backsteps;
use crate::apis::validation::{Field, difference, equal, resources};
use serde_json::{Value, json};

/// `persistentvolumes`
pub static PERSISTENT_VOLUMES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "PersistentVolume", "persistentvolumes", "io.k8s.api.core.v1")
        .cluster_scoped()
        .short(&["pv"])
        .with(&[Subresource::Status])
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules { prepare_for_create, validate, validate_update, ..RULES })
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

const SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

fn validate(volume: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(volume, "spec");
    access_modes_of(&spec, errors);
    let capacity = spec.child("capacity");
    if capacity.is_zero() {
        capacity.required("", errors);
    }
    for (name, quantity) in capacity.members() {
        if name != "storage" {
            capacity.not_supported(&["storage"], errors);
        }
        if resources::quantity(&quantity).sign() <= 0 {
            quantity.invalid("must be greater than zero", errors);
        }
    }
    spec.child("persistentVolumeReclaimPolicy").one_of_if_set(&["Delete", "Recycle", "Retain"], errors);
    let affinity = spec.child("nodeAffinity");
    if affinity.is_set() {
        match affinity.child("required") {
            required if required.is_set() => node_selector(&required, errors),
            required => required.required("must specify required node constraints", errors),
        }
    }
    source(&spec, errors);
    spec.child("storageClassName").follows(dns1123_subdomain, errors);
    spec.child("volumeMode").one_of_if_set(&["Block", "Filesystem"], errors);
}

fn source(spec: &Field, errors: &mut FieldErrors) {
    let mut present = SOURCES.iter().map(|kind| spec.child(kind)).filter(Field::is_set);
    let Some(first) = present.next() else { return spec.required("must specify a volume type", errors) };
    if first.path.ends_with(".hostPath") && first.child("path").require(errors) {
        no_backsteps(&first.child("path"), errors);
    }
    if first.path.ends_with(".local") {
        first.child("path").require(errors);
        if !spec.child("nodeAffinity").is_set() {
            spec.child("nodeAffinity").required("Local volume requires node affinity", errors);
        }
    }
    for other in present {
        other.forbidden("may not specify more than 1 volume type", errors);
    }
    let recycles = spec.child("persistentVolumeReclaimPolicy");
    if spec.child("hostPath.path").text() == "/" && recycles.text() == "Recycle" {
        recycles.forbidden("may not be 'recycle' for a hostPath mount of '/'", errors);
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let sources = |volume: &Value| {
        let of = |kind: &&str| ((*kind).to_owned(), at(&volume["spec"], kind).clone());
        Value::Object(SOURCES.iter().map(of).collect())
    };
    if !equal(&sources(new), &sources(old)) {
        let words = "spec.persistentvolumesource is immutable after creation";
        let difference = difference(&sources(old), &sources(new));
        errors.forbidden("spec.persistentvolumesource", format!("{words}\n{difference}"));
    }
    let mode = Field::of(new, "spec.volumeMode").shown_as("volumeMode");
    mode.immutable(&Field::of(old, "spec.volumeMode"), errors);
    if is_set(old, "spec.nodeAffinity") {
        let affinity = Field::of(new, "spec.nodeAffinity").shown_as("nodeAffinity");
        affinity.immutable(&Field::of(old, "spec.nodeAffinity"), errors);
    }
}
