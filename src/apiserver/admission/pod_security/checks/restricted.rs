//! The checks of the restricted level.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::policy::PolicyVersion;
use super::baseline::added_capabilities;
use super::fields::{
    CheckedPod, Violation, bad_values, named_containers, plural, quoted, setters, violation,
};
use apis::tree::{at, is_set, items, text, texts};

/// A process gets no more than its parent has.
pub(super) fn allow_privilege_escalation(pod: CheckedPod) -> Option<Violation> {
    if means_nothing_on_windows(pod) {
        return None;
    }
    let escalates = |container: &Value| at(container, "securityContext.allowPrivilegeEscalation") != false;
    let containers = pod.bad_containers(escalates);
    if containers.is_empty() {
        return None;
    }
    let who = named_containers(&containers);
    violation(
        "allowPrivilegeEscalation != false",
        format!("{who} must set securityContext.allowPrivilegeEscalation=false"),
    )
}

/// All capabilities are dropped; only low ports may be bound.
pub(super) fn capabilities(pod: CheckedPod) -> Option<Violation> {
    if means_nothing_on_windows(pod) {
        return None;
    }
    let keeps = |container: &Value| !texts(container, "securityContext.capabilities.drop").contains(&"ALL");
    let keeping = pod.bad_containers(keeps);
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let who = named_containers(&keeping);
        details.push(format!("{who} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    details.extend(added_capabilities(pod, &["NET_BIND_SERVICE"]));
    if details.is_empty() { None } else { violation("unrestricted capabilities", details.join("; ")) }
}

/// Only kinds of volumes that reach nothing outside, or that somebody else has set up.
pub(super) fn volumes(pod: CheckedPod) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    const KNOWN: [&str; 21] = [
        "hostPath",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "gitRepo",
        "nfs",
        "iscsi",
        "glusterfs",
        "rbd",
        "flexVolume",
        "cinder",
        "cephfs",
        "flocker",
        "fc",
        "azureFile",
        "vsphereVolume",
        "quobyte",
        "azureDisk",
        "portworxVolume",
        "scaleIO",
        "storageos",
        "photonPersistentDisk",
    ];
    let mut names = Vec::new();
    let mut types = BTreeSet::new();
    for volume in items(pod.tree, "spec.volumes") {
        if !ALLOWED.iter().any(|kind| is_set(volume, kind)) {
            names.push(text(volume, "name"));
            types.insert(*KNOWN.iter().find(|kind| is_set(volume, kind)).unwrap_or(&"unknown"));
        }
    }
    if names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} {} {} {} {}",
        plural(names.len(), "volume", "volumes"),
        quoted(names.iter().copied()),
        plural(names.len(), "uses", "use"),
        plural(types.len(), "restricted volume type", "restricted volume types"),
        quoted(types)
    );
    violation("restricted volume types", detail)
}

/// Nobody runs as root.
pub(super) fn run_as_non_root(pod: CheckedPod) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if pod.has_user_namespace() && pod.version >= PolicyVersion::Minor(35) {
        return None;
    }
    let says = |tree: &Value| at(tree, "securityContext.runAsNonRoot").as_bool();
    let own = says(&pod.tree["spec"]);
    let refusing = pod.bad_containers(|container| says(container) == Some(false));
    if let Some(setters) = setters(own == Some(false), &refusing) {
        return violation(REASON, format!("{setters} must not set securityContext.runAsNonRoot=false"));
    }
    let silent = pod.bad_containers(|container| says(container).is_none() && own != Some(true));
    if silent.is_empty() {
        return None;
    }
    let who = named_containers(&silent);
    violation(REASON, format!("pod or {who} must set securityContext.runAsNonRoot=true"))
}

/// Nobody is root by number.
pub(super) fn run_as_user(pod: CheckedPod) -> Option<Violation> {
    if pod.has_user_namespace() && pod.version >= PolicyVersion::Minor(35) {
        return None;
    }
    let is_root = |tree: &Value| at(tree, "securityContext.runAsUser").as_i64() == Some(0);
    let setters = setters(is_root(&pod.tree["spec"]), &pod.bad_containers(is_root))?;
    violation("runAsUser=0", format!("{setters} must not set runAsUser=0"))
}

/// A seccomp profile is asked for.
pub(super) fn seccomp_profile(pod: CheckedPod) -> Option<Violation> {
    const REASON: &str = "seccompProfile";
    if means_nothing_on_windows(pod) {
        return None;
    }
    let is_valid = |value: &str| matches!(value, "RuntimeDefault" | "Localhost");
    if let Some((setters, values)) = bad_values(&pod, "seccompProfile.type", |value| !is_valid(value)) {
        let values = quoted(values);
        return violation(
            REASON,
            format!("{setters} must not set securityContext.seccompProfile.type to {values}"),
        );
    }
    if is_set(pod.tree, "spec.securityContext.seccompProfile") {
        return None;
    }
    let silent = pod.bad_containers(|container| !is_set(container, "securityContext.seccompProfile"));
    if silent.is_empty() {
        return None;
    }
    let who = named_containers(&silent);
    violation(
        REASON,
        format!(
            "pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
        ),
    )
}

/// Since there is `spec.os`, pods for Windows need not say what only Linux knows.
fn means_nothing_on_windows(pod: CheckedPod) -> bool {
    pod.is_windows() && pod.version >= PolicyVersion::Minor(25)
}
