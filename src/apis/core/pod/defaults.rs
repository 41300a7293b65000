//! What the server fills into a pod's spec, in pods and in every template (`SetDefaults_PodSpec` and what
//! `SetObjectDefaults_Pod` calls below it). What holds for pods alone is in [`pod`].

use serde_json::{Value, json};

use crate::core::persistent_volume_claim;
use crate::print::or;
use crate::tree::*;

/// `SetObjectDefaults_Pod`.
pub fn pod(pod: &mut Value) {
    for list in ["containers", "initContainers"] {
        items_mut(pod, &format!("spec.{list}")).iter_mut().for_each(requests_from_limits);
    }
    set_if_unset(pod, "spec.enableServiceLinks", true);
    if flag(pod, "spec.hostNetwork") {
        for list in ["containers", "initContainers"] {
            items_mut(pod, &format!("spec.{list}")).iter_mut().for_each(host_ports);
        }
    }
    // Of a pod alone, and of no template (`Convert_v1_Pod_To_core_Pod`).
    if number(pod, "spec.terminationGracePeriodSeconds") < 0 {
        set(pod, "spec.terminationGracePeriodSeconds", 1);
    }
    pod_spec(pod, "spec");
    status_addresses(pod);
}

/// The defaults of the spec at `path`, which exists afterwards.
pub fn pod_spec(tree: &mut Value, path: &str) {
    object_mut(tree, path);
    let Some(spec) = get_mut(tree, path) else { return };
    set_if_zero(spec, "dnsPolicy", "ClusterFirst");
    set_if_zero(spec, "restartPolicy", "Always");
    set_if_unset(spec, "securityContext", json!({}));
    set_if_unset(spec, "terminationGracePeriodSeconds", 30);
    set_if_zero(spec, "schedulerName", "default-scheduler");
    service_account(spec);
    items_mut(spec, "volumes").iter_mut().for_each(volume);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        items_mut(spec, list).iter_mut().for_each(container);
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`: whichever is set is both.
fn service_account(spec: &mut Value) {
    let name = or(text(spec, "serviceAccountName"), text(spec, "serviceAccount")).to_owned();
    if !name.is_empty() {
        set(spec, "serviceAccountName", name.as_str());
        set(spec, "serviceAccount", name);
    }
}

fn container(container: &mut Value) {
    let pull_policy = pull_policy(text(container, "image"));
    set_if_zero(container, "imagePullPolicy", pull_policy);
    set_if_zero(container, "terminationMessagePath", "/dev/termination-log");
    set_if_zero(container, "terminationMessagePolicy", "File");
    object_mut(container, "resources");
    for port in items_mut(container, "ports") {
        set_if_zero(port, "protocol", "TCP");
    }
    for variable in items_mut(container, "env") {
        field_ref(variable, "valueFrom.fieldRef");
        if let Some(file) = get_mut(variable, "valueFrom.fileKeyRef") {
            set_if_unset(file, "optional", false);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        change(container, name, probe);
    }
    for name in ["lifecycle.postStart", "lifecycle.preStop"] {
        change(container, name, http_get);
    }
}

/// `Always` for the tag `latest`, said or not; a digest says which image it is.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit('/').next().unwrap_or(name);
    match (last.split_once(':'), digest) {
        (Some((_, "latest")), _) | (None, None) => "Always",
        _ => "IfNotPresent",
    }
}

fn probe(probe: &mut Value) {
    for (field, default) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        set_if_zero(probe, field, default);
    }
    http_get(probe);
    if let Some(grpc) = get_mut(probe, "grpc") {
        set_if_unset(grpc, "service", "");
    }
}

fn http_get(handler: &mut Value) {
    if let Some(action) = get_mut(handler, "httpGet") {
        set_if_zero(action, "path", "/");
        set_if_zero(action, "scheme", "HTTP");
    }
}

fn field_ref(tree: &mut Value, path: &str) {
    if let Some(field_ref) = get_mut(tree, path) {
        set_if_zero(field_ref, "apiVersion", "v1");
    }
}

/// Kind of volume, field, default.
const VOLUMES: &[(&str, &str, &str)] = &[
    ("iscsi", "iscsiInterface", "default"),
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("azureDisk", "cachingMode", "ReadWrite"),
    ("azureDisk", "kind", "Shared"),
    ("azureDisk", "fsType", "ext4"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
];

/// The defaults that volumes of pods and PersistentVolumes share.
pub fn volume_source(source: &mut Value) {
    for (kind, field, default) in VOLUMES {
        if let Some(volume) = get_mut(source, kind) {
            set_if_zero(volume, field, *default);
        }
    }
    if let Some(disk) = get_mut(source, "azureDisk") {
        set_if_unset(disk, "readOnly", false);
    }
    if let Some(host_path) = get_mut(source, "hostPath") {
        set_if_unset(host_path, "type", "");
    }
}

fn volume(volume: &mut Value) {
    let is_source = |(name, value): (&String, &Value)| name != "name" && !value.is_null();
    if !volume.as_object().is_some_and(|fields| fields.iter().any(is_source)) {
        set(volume, "emptyDir", json!({}));
    }
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = get_mut(volume, kind) {
            set_if_unset(source, "defaultMode", 0o644);
        }
    }
    if let Some(image) = get_mut(volume, "image") {
        let policy = pull_policy(text(image, "reference"));
        set_if_zero(image, "pullPolicy", policy);
    }
    volume_source(volume);
    items_mut(volume, "downwardAPI.items").iter_mut().for_each(|item| field_ref(item, "fieldRef"));
    items_mut(volume, "projected.sources").iter_mut().for_each(projection);
    if let Some(template) = get_mut(volume, "ephemeral.volumeClaimTemplate") {
        persistent_volume_claim::default_spec(template);
    }
}

fn projection(source: &mut Value) {
    items_mut(source, "downwardAPI.items").iter_mut().for_each(|item| field_ref(item, "fieldRef"));
    if let Some(token) = get_mut(source, "serviceAccountToken") {
        set_if_unset(token, "expirationSeconds", 3600);
    }
    if let Some(certificate) = get_mut(source, "podCertificate") {
        set_if_unset(certificate, "maxExpirationSeconds", 86_400);
    }
}

/// Only in pods: a template must not be changed by what its containers ask for.
fn requests_from_limits(container: &mut Value) {
    for (name, limit) in at(container, "resources.limits").as_object().cloned().unwrap_or_default() {
        object_mut(container, "resources.requests").entry(name).or_insert(limit);
    }
}

fn host_ports(container: &mut Value) {
    for port in items_mut(container, "ports") {
        let container_port = at(port, "containerPort").clone();
        set_if_zero(port, "hostPort", container_port);
    }
}

/// `podIP` is the first of `podIPs`, whichever of the two was given; on a difference the single one wins
/// (`Convert_v1_PodStatus_To_core_PodStatus`).
fn status_addresses(pod: &mut Value) {
    let single = text(pod, "status.podIP").to_owned();
    let first = items(pod, "status.podIPs").first().map_or("", |ip| text(ip, "ip")).to_owned();
    if !single.is_empty() && single != first {
        set(pod, "status.podIPs", json!([{"ip": single}]));
    } else if single.is_empty() && !first.is_empty() {
        set(pod, "status.podIP", first);
    }
}
