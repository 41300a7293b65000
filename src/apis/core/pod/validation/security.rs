//! Security contexts, host namespaces, and what an operating system does not have.

use std::collections::BTreeSet;

use super::scope::PodScope;
use crate::validation::Field;
use crate::validation::texts::{descending_path, identity};
use apimachinery::field_error::FieldErrors;

/// `validatePodSpecSecurityContext`
pub(super) fn pod_security_context(spec: &Field, errors: &mut FieldErrors) {
    let context = spec.child("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"].map(|name| context.child(name)) {
        if field.is_set() {
            identity(&field, errors);
        }
    }
    context.each("supplementalGroups").iter().for_each(|group| identity(group, errors));
    let shared = spec.child("shareProcessNamespace");
    if shared.flag() && spec.child("hostPID").flag() {
        let words = "ShareProcessNamespace and HostPID cannot both be enabled";
        shared.shown_as(context.child("shareProcessNamespace").path).invalid(words, errors);
    }
    sysctls(&context, errors);
    context.child("fsGroupChangePolicy").one_of_if_set(&["Always", "OnRootMismatch"], errors);
    profiles(&context, errors);
    context.child("supplementalGroupsPolicy").one_of_if_set(&["Merge", "Strict"], errors);
    context.child("seLinuxChangePolicy").one_of_if_set(&["MountOption", "Recursive"], errors);
}

fn sysctls(context: &Field, errors: &mut FieldErrors) {
    const WORDS: &str = "must have at most 253 characters and match regex \
^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    let mut names = BTreeSet::new();
    for name in context.each("sysctls").iter().map(|sysctl| sysctl.child("name")) {
        if !name.require(errors) {
            continue;
        }
        if !is_sysctl(name.text()) {
            name.invalid(WORDS, errors);
        } else if !names.insert(name.text()) {
            name.duplicate(errors);
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_segment = |segment: &str| {
        segment.starts_with(inner)
            && segment.ends_with(inner)
            && segment.chars().all(|c| inner(c) || c == '-' || c == '_')
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_segment)
}

/// Seccomp and AppArmor, of pods and containers.
fn profiles(context: &Field, errors: &mut FieldErrors) {
    for (name, words) in [("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")] {
        let profile = context.child(name);
        if !profile.is_set() {
            continue;
        }
        let (kind, local) = (profile.child("type"), profile.child("localhostProfile"));
        if kind.is_zero() {
            kind.required(&format!("type is required when {name} is set"), errors);
        } else if !matches!(kind.text(), "Localhost" | "RuntimeDefault" | "Unconfined") {
            kind.not_supported(&["Localhost", "RuntimeDefault", "Unconfined"], errors);
        }
        match (kind.text() == "Localhost", local.is_set()) {
            (true, false) => local.required(&format!("must be set when {words} type is Localhost"), errors),
            (true, true) if name == "seccompProfile" => descending_path(&local, errors),
            (false, true) => local.invalid(format!("can only be set when {words} type is Localhost"), errors),
            _ => {}
        }
    }
}

/// `ValidateSecurityContext`
pub(super) fn security_context(context: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    for field in ["runAsUser", "runAsGroup"].map(|name| context.child(name)) {
        if field.is_set() {
            identity(&field, errors);
        }
    }
    let proc_mount = context.child("procMount");
    proc_mount.one_of_if_set(&["Default", "Unmasked"], errors);
    if scope.uses_host_users && proc_mount.text() == "Unmasked" {
        proc_mount.invalid("`hostUsers` must be false to use `Unmasked`", errors);
    }
    profiles(context, errors);
    if context.child("allowPrivilegeEscalation").value == false {
        if context.child("privileged").flag() {
            let words = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            context.invalid(words, errors);
        }
        if context.each("capabilities.add").iter().any(|capability| capability.text() == "CAP_SYS_ADMIN") {
            let words = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            context.invalid(words, errors);
        }
    }
}

/// `validateHostUsers`
pub(super) fn host_users(spec: &Field, errors: &mut FieldErrors) {
    if spec.child("hostUsers").value != false {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.child(field).flag() {
            let field = spec.child(shown);
            field.forbidden("when `pod.Spec.HostUsers` is false", errors);
        }
    }
}

/// `validateOS` and what follows of it.
pub(super) fn operating_system(spec: &Field, errors: &mut FieldErrors) {
    let os = spec.child("os");
    if !os.is_set() {
        return;
    }
    let name = os.child("name");
    match name.text() {
        "" => name.required("cannot be empty", errors),
        "linux" => forbid(
            spec,
            &["securityContext.windowsOptions"],
            &["windowsOptions"],
            "windows options cannot be set for a linux pod",
            errors,
        ),
        "windows" => forbid(
            spec,
            NOT_IN_WINDOWS_PODS,
            NOT_IN_WINDOWS_CONTAINERS,
            "cannot be set for a windows pod",
            errors,
        ),
        _ => name.shown_as(os.path.as_str()).not_supported(&["linux", "windows"], errors),
    }
}

const NOT_IN_WINDOWS_PODS: &[&str] = &[
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];

const NOT_IN_WINDOWS_CONTAINERS: &[&str] = &[
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

fn forbid(spec: &Field, of_pod: &[&str], of_containers: &[&str], words: &str, errors: &mut FieldErrors) {
    let is_given = |field: &Field| field.is_set() && field.value != false;
    for field in of_pod.iter().map(|path| spec.child(path)).filter(is_given) {
        field.forbidden(words, errors);
    }
    for container in
        ["containers", "initContainers", "ephemeralContainers"].iter().flat_map(|list| spec.each(list))
    {
        let context = container.child("securityContext");
        of_containers
            .iter()
            .map(|name| context.child(name))
            .filter(Field::is_set)
            .for_each(|field| field.forbidden(words, errors));
    }
}
