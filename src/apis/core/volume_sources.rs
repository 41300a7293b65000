//! The sources of volumes: what each must have, in a pod and in a PersistentVolume
//! (`validateVolumeSource` and its siblings in `pkg/apis/core/validation`).

use serde_json::json;

use crate::validation::Field;
use crate::validation::texts::{csi_driver_name, descending_path, in_range, no_backsteps};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain};

const ONE: &str = "may not specify more than 1 volume type";

/// The fields that a source must have, when there is nothing else to say of them.
const NEEDED: &[(&str, &[&str])] = &[
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal"]),
    ("glusterfs", &["endpoints", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("secret", &["secretName"]),
    ("flexVolume", &["driver"]),
    ("configMap", &["name"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("portworxVolume", &["volumeID"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("ephemeral", &["volumeClaimTemplate"]),
];

/// The one source that there must be, of `kinds` in upstream's order; further ones are refused.
pub fn only<'a>(volume: &Field<'a>, kinds: &[&'static str], errors: &mut FieldErrors) -> Only<'a> {
    let mut present = kinds.iter().filter(|kind| volume.child(kind).is_set());
    match present.next() {
        None => {
            volume.required("must specify a volume type", errors);
            None
        }
        Some(kind) => {
            // Upstream spells some of them otherwise.
            let source = match *kind {
                "gcePersistentDisk" => volume.child(kind).shown_as(format!("{}.persistentDisk", volume.path)),
                _ => volume.child(kind),
            };
            Some((kind, source, present.map(|kind| (*kind).to_owned()).collect()))
        }
    }
}

/// A kind of source, the source, and the kinds that are too many.
pub type Only<'a> = Option<(&'static str, Field<'a>, Vec<String>)>;

/// Refuses the kinds that are too many.
pub fn refuse(volume: &Field, kinds: &[String], errors: &mut FieldErrors) {
    for kind in kinds {
        let shown = match kind.as_str() {
            "cephfs" => "cephFS",
            "downwardAPI" => "downwarAPI",
            other => other,
        };
        errors.forbidden(format!("{}.{shown}", volume.path), ONE);
    }
}

/// What is wrong with a source of that kind; `persists` when it is a PersistentVolume's.
pub fn source(kind: &str, source: &Field, persists: bool, errors: &mut FieldErrors) {
    let needed = NEEDED.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, needed)| needed);
    for field in needed {
        source.child(field).require(errors);
    }
    match kind {
        "hostPath" => host_path(source, errors),
        "local" if source.child("path").require(errors) => no_backsteps(&source.child("path"), errors),
        "gitRepo" => descending_path(&source.child("directory"), errors),
        "gcePersistentDisk" | "awsElasticBlockStore" => partition(&source.child("partition"), errors),
        "nfs" if !source.child("path").text().starts_with('/') => {
            errors.invalid(
                format!("{}.path", source.path),
                &source.child("path").text().into(),
                "must be an absolute path",
            );
        }
        "iscsi" => iscsi(source, persists, errors),
        "fc" => fibre_channel(source, errors),
        "quobyte" => quobyte(source, errors),
        "flocker" => flocker(source, errors),
        "flexVolume" => flex(source, errors),
        "azureDisk" => azure_disk(source, errors),
        "cinder" => secret_of(source, "secretRef", persists, errors),
        "storageos" => storage_os(source, persists, errors),
        "csi" => csi(source, persists, errors),
        "glusterfs" if persists && source.child("endpointsNamespace").is_set() => {
            let namespace = source.child("endpointsNamespace");
            if namespace.is_zero() {
                let words = "if the endpointnamespace is set, it must be a valid namespace name";
                namespace.invalid(words, errors);
            } else {
                namespace.invalid_each(dns1123_label(namespace.text()), errors)
            }
        }
        "azureFile" if persists && source.child("secretNamespace").is_set() => {
            source.child("secretNamespace").require(errors);
        }
        _ => {}
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
    if source.child("path").require(errors) {
        no_backsteps(&source.child("path"), errors);
        source.child("type").one_of_if_set(TYPES, errors);
    }
}

/// The range that upstream tells begins at 1 although 0, which is none, is allowed.
fn partition(partition: &Field, errors: &mut FieldErrors) {
    if !(0..=255).contains(&partition.number()) {
        partition.invalid_each(in_range(-1, 1, 255), errors);
    }
}

fn iscsi(source: &Field, persists: bool, errors: &mut FieldErrors) {
    const FORMAT: &str = "must be valid format";
    let starts = if persists { FORMAT } else { "must be valid format starting with iqn, eui, or naa" };
    let name = |name: &Field, errors: &mut FieldErrors| match name.text().get(..3) {
        Some("iqn" | "eui" | "naa") if is_iscsi_name(name.text()) => {}
        Some("iqn" | "eui" | "naa") => name.invalid(FORMAT, errors),
        _ => name.invalid(starts, errors),
    };
    let (iqn, lun, secret) = (source.child("iqn"), source.child("lun"), source.child("secretRef"));
    if iqn.require(errors) {
        name(&iqn, errors);
    }
    lun.invalid_each(in_range(lun.number(), 0, 255), errors);
    let authenticates = ["chapAuthDiscovery", "chapAuthSession"].map(|name| source.child(name).flag());
    if authenticates.contains(&true) && !secret.is_set() {
        secret.required("", errors);
    }
    if persists && secret.is_set() {
        secret.child("name").require(errors);
    }
    let initiator = source.child("initiatorName");
    if initiator.is_set() {
        name(&initiator.shown_as(format!("{}.initiatorname", source.path)), errors);
    }
}

fn is_iscsi_name(text: &str) -> bool {
    let is_word = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let is_qualified = |text: &str| {
        let (Some((date, rest)), Some((_, own))) = (text.split_once('.'), text.split_once(':')) else {
            return false;
        };
        let digit = |at: usize| date.as_bytes()[at].is_ascii_digit();
        let is_date =
            date.len() == 7 && date.as_bytes()[4] == b'-' && [0, 1, 2, 3, 5, 6].into_iter().all(digit);
        let authority = rest.split(':').next().unwrap_or("");
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        is_date
            && !authority.is_empty()
            && authority.chars().all(fits)
            && !own.is_empty()
            && !own.contains(|c: char| ",;*&$|".contains(c) || c.is_ascii_whitespace())
    };
    match text.get(..3) {
        Some("iqn") => text.strip_prefix("iqn.").is_some_and(is_qualified),
        Some("eui") => text.get(4..).is_some_and(|word| is_word(word, 16)),
        _ => text.get(4..).is_some_and(|word| is_word(word, 32)),
    }
}

fn fibre_channel(source: &Field, errors: &mut FieldErrors) {
    let (names, ids, lun) = (source.child("targetWWNs"), source.child("wwids"), source.child("lun"));
    match (names.is_zero(), ids.is_zero()) {
        (true, true) => names.required("must specify either targetWWNs or wwids, but not both", errors),
        (false, false) => names.invalid("targetWWNs and wwids can not be specified simultaneously", errors),
        _ => {}
    }
    if !names.is_zero() {
        if lun.is_set() {
            lun.invalid_each(in_range(lun.number(), 0, 255), errors)
        } else {
            lun.required("lun is required if targetWWNs is specified", errors)
        }
    }
}

fn quobyte(source: &Field, errors: &mut FieldErrors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let (registry, tenant) = (source.child("registry"), source.child("tenant"));
    if registry.is_zero() {
        registry.required(PAIRS, errors);
    } else if tenant.text().len() > 64 {
        tenant.required("must be a UUID and may not exceed a length of 64 characters", errors);
    } else {
        let is_pair = |pair: &str| {
            pair.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'))
        };
        for _ in registry.text().split(',').filter(|pair| !is_pair(pair)) {
            registry.invalid(PAIRS, errors);
        }
    }
    source.child("volume").require(errors);
}

fn flocker(source: &Field, errors: &mut FieldErrors) {
    let (name, uuid) = (source.child("datasetName"), source.child("datasetUUID"));
    match (name.is_zero(), uuid.is_zero()) {
        (true, true) => source.required("one of datasetName and datasetUUID is required", errors),
        (false, false) => {
            let words = "datasetName and datasetUUID can not be specified simultaneously";
            errors.invalid(source.path.as_str(), &json!("resource"), words);
        }
        _ => {}
    }
    if name.text().contains('/') {
        name.invalid("must not contain '/'", errors);
    }
}

fn flex(source: &Field, errors: &mut FieldErrors) {
    for (name, option) in source.child("options").members() {
        let namespace = format!(".{}", name.split('/').next().unwrap_or("").to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            let words = "kubernetes.io and k8s.io namespaces are reserved";
            errors.invalid(option.path, &name.into(), words);
        }
    }
}

fn azure_disk(source: &Field, errors: &mut FieldErrors) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    source.child("cachingMode").one_of_if_set(&["None", "ReadOnly", "ReadWrite"], errors);
    let (kind, uri) = (source.child("kind"), source.child("diskURI"));
    kind.one_of_if_set(&["Dedicated", "Managed", "Shared"], errors);
    let (begin, form) = match kind.text() {
        "Managed" => ("/subscriptions/", MANAGED),
        _ => ("https://", BLOB),
    };
    if kind.is_set() && !uri.text().starts_with(begin) {
        uri.not_supported(&[form], errors);
    }
}

fn storage_os(source: &Field, persists: bool, errors: &mut FieldErrors) {
    source.child("volumeName").must_follow(dns1123_label, errors);
    source.child("volumeNamespace").follows(dns1123_label, errors);
    secret_of(source, "secretRef", persists, errors);
}

/// A reference to a Secret has a name; that of a PersistentVolume also says where it is.
fn secret_of(source: &Field, field: &str, persists: bool, errors: &mut FieldErrors) {
    let secret = source.child(field);
    if secret.is_set() {
        secret.child("name").require(errors);
        if persists {
            secret.child("namespace").require(errors);
        }
    }
}

fn csi(source: &Field, persists: bool, errors: &mut FieldErrors) {
    csi_driver_name(&source.child("driver"), errors);
    if !persists {
        let secret = source.child("nodePublishSecretRef");
        if secret.is_set() && secret.child("name").require(errors) {
            let name = secret.child("name").shown_as(format!("{}.name", source.path));
            name.follows(dns1123_subdomain, errors);
        }
        return;
    }
    source.child("volumeHandle").require(errors);
    let references = [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ];
    for secret in references.map(|name| source.child(name)).iter().filter(|secret| secret.is_set()) {
        secret.child("name").must_follow(dns1123_subdomain, errors);
        secret.child("namespace").must_follow(dns1123_label, errors);
    }
}

#[cfg(test)]
mod tests {
    use super::is_iscsi_name;

    #[test]
    fn names_of_iscsi() {
        for right in
            ["iqn.2015-02.example.com:test", "eui.0123456789abcdef", "naa.62004567BA64678D0123456789ABCDEF"]
        {
            assert!(is_iscsi_name(right), "{right}");
        }
        for wrong in
            ["iqn.2015-02.example.com", "iqn.15-02.a:b", "iqn.2015-02.a:b c", "eui.01", "naa.1", "iqn"]
        {
            assert!(!is_iscsi_name(wrong), "{wrong}");
        }
    }
}
