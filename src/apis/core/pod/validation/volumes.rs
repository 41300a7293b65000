//! Volumes: one source each, with what it needs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::containers::{field_ref, resource_field_ref};
use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::names::dns1123_label;
use crate::apis::core::persistent_volume_claim;
use crate::apis::validation::Field;
use crate::apis::validation::resources::quantity;
use crate::apis::validation::texts::{descending_path, file_mode, file_path, no_backsteps};

/// Every source with the fields that it must have, in upstream's order.
const SOURCES: &[(&str, &[&str])] = &[
    ("emptyDir", &[]),
    ("hostPath", &["path"]),
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flocker", &[]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("quobyte", &["registry", "volume"]),
    ("downwardAPI", &[]),
    ("fc", &[]),
    ("flexVolume", &["driver"]),
    ("configMap", &["name"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("portworxVolume", &["volumeID"]),
    ("storageos", &[]),
    ("projected", &[]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("csi", &["driver"]),
    ("ephemeral", &["volumeClaimTemplate"]),
    ("image", &[]),
];

const FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// `ValidateVolumes`: the volumes that are right, by name.
pub fn volumes<'a>(spec: &Field<'a>, is_pod: bool, errors: &mut FieldErrors) -> BTreeMap<&'a str, &'a Value> {
    let mut right = BTreeMap::new();
    for volume in spec.each("volumes") {
        let mut wrong = FieldErrors::default();
        source(&volume, is_pod, &mut wrong);
        let name = volume.child("name");
        name.must_follow(dns1123_label, &mut wrong);
        if right.contains_key(name.text()) {
            name.duplicate(&mut wrong);
        }
        if wrong.is_empty() {
            right.insert(name.text(), volume.value);
        }
        errors.extend(wrong);
    }
    right
}

fn source(volume: &Field, is_pod: bool, errors: &mut FieldErrors) {
    let mut present = SOURCES.iter().filter(|(kind, _)| volume.child(kind).is_set());
    let Some((kind, needed)) = present.next() else {
        return volume.required("must specify a volume type", errors);
    };
    let source = volume.child(kind);
    for field in *needed {
        source.child(field).require(errors);
    }
    match *kind {
        "emptyDir" => empty_dir(&source, errors),
        "hostPath" => host_path(&source, errors),
        "gitRepo" => descending_path(&source.child("directory"), errors),
        "nfs" if !source.child("path").text().starts_with('/') => {
            source.child("path").invalid("must be an absolute path", errors);
        }
        "secret" | "configMap" => keys_to_paths(&source, errors),
        "downwardAPI" => downward_api(&source, errors),
        "projected" => projected(&source, errors),
        "ephemeral" if source.child("volumeClaimTemplate").is_set() => {
            persistent_volume_claim::validate_spec(&source.child("volumeClaimTemplate.spec"), errors);
        }
        "image" => image(&source, is_pod, errors),
        _ => {}
    }
    for (kind, _) in present {
        volume.child(kind).forbidden("may not specify more than 1 volume type", errors);
    }
}

fn empty_dir(source: &Field, errors: &mut FieldErrors) {
    let limit = source.child("sizeLimit");
    if quantity(&limit).sign() < 0 {
        limit.forbidden("SizeLimit field must be a valid resource quantity", errors);
    }
}

fn host_path(source: &Field, errors: &mut FieldErrors) {
    const TYPES: &[&str] = &[
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    if source.child("path").is_zero() {
        return;
    }
    no_backsteps(&source.child("path"), errors);
    source.child("type").one_of_if_set(TYPES, errors);
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

fn key_to_path(item: &Field, errors: &mut FieldErrors) {
    item.child("key").require(errors);
    item.child("path").require(errors);
    file_path(&item.child("path"), errors);
    file_mode(&item.child("mode"), errors);
}

fn downward_api(source: &Field, errors: &mut FieldErrors) {
    file_mode(&source.child("defaultMode"), errors);
    // Upstream names the volume and not the item.
    for item in source.each("items").iter().map(|item| item.shown_as(source.path.as_str())) {
        downward_api_file(&item, errors);
    }
}

fn downward_api_file(item: &Field, errors: &mut FieldErrors) {
    item.child("path").require(errors);
    file_path(&item.child("path"), errors);
    let (field, resource) = (item.child("fieldRef"), item.child("resourceFieldRef"));
    match (field.is_set(), resource.is_set()) {
        (true, both) => {
            field_ref(&field, FIELDS, errors);
            if both {
                let words = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid(item.path.as_str(), &json!("resource"), words);
            }
        }
        (false, true) => resource_field_ref(&resource, true, errors),
        (false, false) => item.required("one of fieldRef and resourceFieldRef is required", errors),
    }
    file_mode(&item.child("mode"), errors);
}

fn projected(source: &Field, errors: &mut FieldErrors) {
    file_mode(&source.child("defaultMode"), errors);
    for projection in source.each("sources") {
        for kind in
            ["secret", "configMap"].map(|kind| projection.child(kind)).iter().filter(|kind| kind.is_set())
        {
            kind.child("name").require(errors);
            kind.each("items").iter().for_each(|item| key_to_path(item, errors));
        }
        let downward = projection.child("downwardAPI");
        downward.each("items").iter().for_each(|item| downward_api_file(item, errors));
        let token = projection.child("serviceAccountToken");
        if token.is_set() {
            service_account_token(&token, errors);
        }
        let kinds = projection
            .value
            .as_object()
            .map_or(0, |kinds| kinds.values().filter(|kind| !kind.is_null()).count());
        if kinds > 1 {
            projection.forbidden("may not specify more than 1 volume type", errors);
        }
    }
}

fn service_account_token(token: &Field, errors: &mut FieldErrors) {
    let expiration = token.child("expirationSeconds");
    match expiration.number() {
        ..600 => expiration.invalid("may not specify a duration less than 10 minutes", errors),
        600..=0x1_0000_0000 => {}
        _ => expiration.invalid("may not specify a duration larger than 2^32 seconds", errors),
    }
    if token.child("path").require(errors) {
        file_path(&token.child("path"), errors);
    }
}
