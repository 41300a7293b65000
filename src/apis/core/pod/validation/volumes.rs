//! Volumes: one source each, with what it needs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::items::{downward_api_file, key_to_path};
use super::projected::projected;
use crate::core::{persistent_volume_claim, volume_sources};
use crate::validation::Field;
use crate::validation::resources::quantity;
use crate::validation::texts::{file_mode, template_metadata};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain};

/// Every source, in upstream's order.
const SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "azureDisk",
    "portworxVolume",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// `ValidateVolumes`: the volumes that are right, by name. `pod` is the pod's name, empty when it has none or
/// is a template.
pub(super) fn volumes<'a>(
    spec: &Field<'a>,
    pod: Option<&str>,
    errors: &mut FieldErrors,
) -> BTreeMap<&'a str, &'a Value> {
    let mut right = BTreeMap::new();
    let volumes = spec.each("volumes");
    let claim_of = |volume: &Field| format!("{}-{}", pod.unwrap_or(""), volume.child("name").text());
    let is_made = |claim: &Field| {
        let makes = |volume: &Field| volume.child("ephemeral").is_set() && claim_of(volume) == claim.text();
        pod.is_some_and(|pod| !pod.is_empty()) && volumes.iter().any(makes)
    };
    for volume in &volumes {
        let mut wrong = FieldErrors::default();
        source(volume, pod, &mut wrong);
        let name = volume.child("name");
        name.must_follow(dns1123_label, &mut wrong);
        if right.contains_key(name.text()) {
            name.duplicate(&mut wrong);
        }
        if wrong.is_empty() {
            right.insert(name.text(), volume.value);
        }
        errors.extend(wrong);
        let claim = volume.child("persistentVolumeClaim.claimName");
        if claim.is_set() && is_made(&claim) {
            claim.invalid("must not reference a PVC that gets created for an ephemeral volume", errors);
        }
    }
    right
}

fn source(volume: &Field, pod: Option<&str>, errors: &mut FieldErrors) {
    let Some((kind, source, others)) = volume_sources::only(volume, SOURCES, errors) else { return };
    volume_sources::source(kind, &source, false, errors);
    match kind {
        "emptyDir" => empty_dir(&source, errors),
        "secret" | "configMap" => keys_to_paths(&source, errors),
        "downwardAPI" => downward_api(&source, errors),
        "projected" => projected(&source, errors),
        "iscsi" => long_initiator(volume, &source, errors),
        "ephemeral" => ephemeral(volume, &source, pod, errors),
        "image" => image(&source, pod.is_some(), errors),
        _ => {}
    }
    volume_sources::refuse(volume, &others, errors);
}

fn empty_dir(source: &Field, errors: &mut FieldErrors) {
    let limit = source.child("sizeLimit");
    if quantity(&limit).sign() < 0 {
        limit.forbidden("SizeLimit field must be a valid resource quantity", errors);
    }
}

/// Also of PersistentVolumes: the node's directory is named by both.
pub fn is_long_initiator(name: &str, source: &Field) -> bool {
    const MOST_BYTES: usize = 64;
    let portal = source.child("targetPortal");
    source.child("initiatorName").is_set() && name.len() + 1 + portal.text().len() > MOST_BYTES
}

/// What is said of it.
pub const LONG_INITIATOR: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
characters if iscsi.initiatorName is specified.";

fn long_initiator(volume: &Field, source: &Field, errors: &mut FieldErrors) {
    let name = volume.child("name");
    if is_long_initiator(name.text(), source) {
        name.invalid(LONG_INITIATOR, errors);
    }
}

fn ephemeral(volume: &Field, source: &Field, pod: Option<&str>, errors: &mut FieldErrors) {
    let (template, name) = (source.child("volumeClaimTemplate"), volume.child("name"));
    if template.is_set() {
        template_metadata(&template.child("metadata"), errors);
        persistent_volume_claim::validate_spec(&template.child("spec"), errors);
    }
    if let Some(pod) = pod.filter(|pod| !pod.is_empty() && !name.is_zero()) {
        let claim = format!("{pod}-{}", name.text());
        for wrong in dns1123_subdomain(&claim) {
            name.invalid(format!("PVC name {claim:?}: {wrong}"), errors);
        }
    }
}

fn image(source: &Field, is_pod: bool, errors: &mut FieldErrors) {
    if is_pod {
        source.child("reference").require(errors);
    }
    source.child("pullPolicy").one_of(&["Always", "IfNotPresent", "Never"], errors);
}

fn keys_to_paths(source: &Field, errors: &mut FieldErrors) {
    file_mode(&source.child("defaultMode"), errors);
    source.each("items").iter().for_each(|item| key_to_path(item, errors));
}

fn downward_api(source: &Field, errors: &mut FieldErrors) {
    file_mode(&source.child("defaultMode"), errors);
    // Upstream names the volume and not the item.
    for item in source.each("items").iter().map(|item| item.shown_as(source.path.as_str())) {
        downward_api_file(&item, errors);
    }
}
