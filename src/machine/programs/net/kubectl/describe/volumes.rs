//! Volumes, as `kubectl describe` writes them.

use serde_json::Value;

use super::metadata::{list, plain, text};
use super::page::TabbedPage;

/// Kinds of volumes by their fields: what they are called, and which of their own fields are told, by which
/// titles.
type VolumeRow = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const KINDS: &[VolumeRow] = &[
    (
        "persistentVolumeClaim",
        "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        &[("ClaimName", "claimName"), ("ReadOnly", "readOnly")],
    ),
    (
        "nfs",
        "NFS (an NFS mount that lasts the lifetime of a pod)",
        &[("Server", "server"), ("Path", "path"), ("ReadOnly", "readOnly")],
    ),
    (
        "ephemeral",
        "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)",
        &[],
    ),
    (
        "csi",
        "CSI (a Container Storage Interface (CSI) volume source)",
        &[("Driver", "driver"), ("FSType", "fsType"), ("ReadOnly", "readOnly")],
    ),
    (
        "image",
        "Image (a container image or OCI artifact)",
        &[("Reference", "reference"), ("PullPolicy", "pullPolicy")],
    ),
];

/// All volumes of a pod or a template, which stands further to the right.
pub(super) fn volumes(page: &mut TabbedPage, volumes: &Value, space: &str) {
    let volumes = list(volumes);
    if volumes.is_empty() {
        return page.line(0, format!("{space}Volumes:\t<none>"));
    }
    page.line(0, format!("{space}Volumes:"));
    let indent = if space.is_empty() { "" } else { " " };
    for volume in volumes {
        page.line(1, format!("{indent}{}:", text(volume, "name")));
        source(page, volume);
    }
}

fn source(page: &mut TabbedPage, volume: &Value) {
    let of = |field: &str| Some(&volume[field]).filter(|source| source.is_object());
    if let Some(own) = of("hostPath") {
        page.field(2, "Type", "HostPath (bare host directory volume)");
        page.field(2, "Path", text(own, "path"));
        let kind = own["type"].as_str().unwrap_or("<none>");
        return page.field(2, "HostPathType", kind);
    }
    if let Some(own) = of("emptyDir") {
        page.field(2, "Type", "EmptyDir (a temporary directory that shares a pod's lifetime)");
        page.field(2, "Medium", text(own, "medium"));
        let limit = own["sizeLimit"].as_str().filter(|limit| *limit != "0").unwrap_or("<unset>");
        return page.field(2, "SizeLimit", limit);
    }
    if let Some(own) = of("secret") {
        page.field(2, "Type", "Secret (a volume populated by a Secret)");
        return named(page, ("SecretName", text(own, "secretName")), own);
    }
    if let Some(own) = of("configMap") {
        page.field(2, "Type", "ConfigMap (a volume populated by a ConfigMap)");
        return named(page, ("Name", text(own, "name")), own);
    }
    if let Some(own) = of("downwardAPI") {
        page.field(2, "Type", "DownwardAPI (a volume populated by information about the pod)");
        return items(page, own);
    }
    if let Some(own) = of("projected") {
        return projected(page, own);
    }
    for (field, title, told) in KINDS {
        if let Some(own) = of(field) {
            page.field(2, "Type", title);
            told.iter().for_each(|(title, field)| page.field(2, title, shown(field, &own[*field])));
            return;
        }
    }
    page.line(1, "<unknown>");
}

fn shown(field: &str, value: &Value) -> String {
    match value {
        Value::Null if field == "readOnly" => "false".to_owned(),
        Value::Null => String::new(),
        value => plain(value),
    }
}

fn named(page: &mut TabbedPage, (title, name): (&str, &str), own: &Value) {
    page.field(2, title, name);
    page.field(2, "Optional", (own["optional"] == true).to_string());
}

fn items(page: &mut TabbedPage, own: &Value) {
    page.line(2, "Items:");
    for item in list(&own["items"]) {
        let from = match &item["fieldRef"] {
            Value::Null => text(&item["resourceFieldRef"], "resource"),
            field => text(field, "fieldPath"),
        };
        page.line(3, format!("{from} -> {}", text(item, "path")));
    }
}

fn projected(page: &mut TabbedPage, own: &Value) {
    page.field(2, "Type", "Projected (a volume that contains injected data from multiple sources)");
    for source in list(&own["sources"]) {
        let of = |field: &str| Some(&source[field]).filter(|source| source.is_object());
        if let Some(own) = of("secret") {
            named(page, ("SecretName", text(own, "name")), own);
        } else if of("downwardAPI").is_some() {
            page.field(2, "DownwardAPI", "true");
        } else if let Some(own) = of("configMap") {
            named(page, ("ConfigMapName", text(own, "name")), own);
        } else if let Some(own) = of("serviceAccountToken") {
            page.field(2, "TokenExpirationSeconds", plain(&own["expirationSeconds"]));
        }
    }
}
