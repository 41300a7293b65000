//! PersistentVolume: storage that outlives pods.

use std::sync::LazyLock;

use crate::core::persistent_volume_claim::access_modes_of;
use crate::core::pod::defaults::volume_source;
use crate::core::pod::validation::{LONG_INITIATOR, is_long_initiator, node_selector};
use crate::core::volume_sources;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{access_modes, name, or, quantity};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::{Field, difference, equal, resources};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::dns1123_subdomain;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `persistentvolumes`
pub static PERSISTENT_VOLUMES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "PersistentVolume", "persistentvolumes", "io.k8s.api.core.v1")
        .cluster_scoped()
        .short(&["pv"])
        .with(&[Subresource::Status])
        .returns_deleted()
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            prepare_for_create,
            validate: |volume, errors| {
                let spec = Field::of(volume, "spec");
                validate_spec(&spec, text(volume, "metadata.name"), errors);
            },
            validate_update,
            ..RULES
        })
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

/// `ValidatePersistentVolumeSpec`
fn validate_spec(spec: &Field, name: &str, errors: &mut FieldErrors) {
    volume_access_modes(spec, errors);
    capacity(&spec.child("capacity"), errors);
    spec.child("persistentVolumeReclaimPolicy").one_of_if_set(&["Delete", "Recycle", "Retain"], errors);
    let affinity = spec.child("nodeAffinity");
    if affinity.is_set() {
        match affinity.child("required") {
            required if required.is_set() => node_selector(&required, errors),
            required => required.required("must specify required node constraints", errors),
        }
    }
    source(spec, name, errors);
    spec.child("storageClassName").follows(dns1123_subdomain, errors);
    spec.child("volumeMode").one_of_if_set(&["Block", "Filesystem"], errors);
    attributes_class(spec, errors);
}

/// What is wrong with the volume that a VolumeAttachment brings with it.
pub fn validate_inline(spec: &Field, errors: &mut FieldErrors) {
    let refuse = |name: &str, errors: &mut FieldErrors| {
        if !spec.child(name).is_zero() {
            let words = "may not be specified in the context of inline volumes";
            spec.child(name).forbidden(words, errors);
        }
    };
    ["claimRef", "capacity"].iter().for_each(|name| refuse(name, errors));
    if !spec.child("csi").is_set() {
        spec.child("csi").required("has to be specified in the context of inline volumes", errors);
    }
    volume_access_modes(spec, errors);
    let policy = spec.child("persistentVolumeReclaimPolicy");
    if !matches!(policy.text(), "" | "Retain") {
        policy.forbidden("may only be Retain in the context of inline volumes", errors);
    }
    refuse("nodeAffinity", errors);
    source(spec, "", errors);
    refuse("storageClassName", errors);
    let mode = spec.child("volumeMode");
    if mode.is_set() && mode.text() != "Filesystem" {
        let words = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        mode.forbidden(words, errors);
    }
    attributes_class(spec, errors);
}

fn volume_access_modes(spec: &Field, errors: &mut FieldErrors) {
    spec.child("accessModes").require(errors);
    access_modes_of(spec, errors);
}

fn capacity(capacity: &Field, errors: &mut FieldErrors) {
    capacity.require(errors);
    let amounts = capacity.members();
    if amounts.len() != 1 || amounts[0].0 != "storage" {
        capacity.not_supported(&["storage"], errors);
    }
    for (_, amount) in amounts {
        if resources::quantity(&amount).sign() <= 0 {
            amount.invalid("must be greater than zero", errors);
        }
    }
}

fn source(spec: &Field, name: &str, errors: &mut FieldErrors) {
    if let Some((kind, source, others)) = volume_sources::only(spec, SOURCES, errors) {
        if kind == "iscsi" && is_long_initiator(name, &source) {
            let portal = source.child("targetPortal");
            portal.shown_as(format!("{}.targetportal", source.path)).invalid(LONG_INITIATOR, errors);
        }
        volume_sources::source(kind, &source, true, errors);
        if kind == "local" && spec.child("nodeAffinity.required.nodeSelectorTerms").is_zero() {
            spec.child("nodeAffinity").required("Local volume requires node affinity", errors);
        }
        volume_sources::refuse(spec, &others, errors);
    }
    let (policy, path) = (spec.child("persistentVolumeReclaimPolicy"), spec.child("hostPath.path"));
    let is_root = path.text().starts_with('/') && path.text().split('/').all(|part| matches!(part, "" | "."));
    if is_root && policy.text() == "Recycle" {
        policy.forbidden("may not be 'recycle' for a hostPath mount of '/'", errors);
    }
}

fn attributes_class(spec: &Field, errors: &mut FieldErrors) {
    let class = spec.child("volumeAttributesClassName");
    if !class.is_set() {
        return;
    }
    if class.is_zero() {
        class.required("an empty string is disallowed", errors)
    } else {
        class.invalid_each(dns1123_subdomain(class.text()), errors)
    }
    if !spec.child("csi").is_set() {
        let words = "has to be specified when using volumeAttributesClassName";
        spec.child("csi").required(words, errors);
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let sources = |volume: &Value| {
        let of = |kind: &&str| ((*kind).to_owned(), at(&volume["spec"], kind).clone());
        Value::Object(SOURCES.iter().map(of).collect())
    };
    let (mut is, was) = (sources(new), sources(old));
    const EXPAND_SECRET: &str = "csi.controllerExpandSecretRef";
    if is_set(&was, "csi") && !is_set(&was, EXPAND_SECRET) {
        // It may be added.
        remove(&mut is, EXPAND_SECRET);
    }
    if !equal(&is, &was) {
        let words = "spec.persistentvolumesource is immutable after creation";
        let difference = difference(&was, &is);
        errors.forbidden("spec.persistentvolumesource", format!("{words}\n{difference}"));
    }
    let mode = Field::of(new, "spec.volumeMode").shown_as("volumeMode");
    mode.immutable(&Field::of(old, "spec.volumeMode"), errors);
    if is_set(old, "spec.nodeAffinity") {
        let affinity = Field::of(new, "spec.nodeAffinity").shown_as("nodeAffinity");
        affinity.immutable(&Field::of(old, "spec.nodeAffinity"), errors);
    }
    let class = Field::of(new, "spec.volumeAttributesClassName");
    if is_set(old, "spec.volumeAttributesClassName") && !class.is_set() {
        class.forbidden("update from non-nil value to nil is forbidden", errors);
    }
}
