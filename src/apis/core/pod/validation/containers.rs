//! Containers of all three sorts: names, images, ports, environment, mounts.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::references::{FIELDS, field_ref, resource_field_ref};
use super::scope::PodScope;
use super::{probes, resource_claims, security};
use crate::tree;
use crate::validation::resources::{ResourcePlace, requirements};
use crate::validation::texts::{
    config_map_key, descending_path, environment_variable_name, no_backsteps, port_name, port_number,
};
use crate::validation::{Field, at_most, push};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::{dns1123_label, dns1123_subdomain};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
/// `validateContainers`
pub(super) fn containers(spec: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    let containers = spec.each("containers");
    if containers.is_empty() {
        return spec.child("containers").required("", errors);
    }
    let mut names = BTreeSet::new();
    for container in &containers {
        common(container, scope, errors);
        if !names.insert(container.child("name").text()) {
            container.child("name").duplicate(errors);
        }
        probes::lifecycle_and_probes(container, scope, errors);
        restart_policy(container, errors);
    }
    host_port_conflicts(&containers, errors);
}

/// `validateInitContainers`
pub(super) fn init_containers(spec: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    let regular = spec.each("containers");
    let mut names: BTreeSet<&str> = regular.iter().map(|container| container.child("name").text()).collect();
    for container in spec.each("initContainers") {
        common(&container, scope, errors);
        restart_policy(&container, errors);
        let name = container.child("name");
        if !names.insert(name.text()) {
            name.duplicate(errors);
        }
        // One after the other: only within itself can one conflict.
        host_port_conflicts(std::slice::from_ref(&container), errors);
        if container.child("restartPolicy").text() == "Always" {
            probes::lifecycle_and_probes(&container, scope, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.child(field).is_set() {
                let words = "may not be set for init containers without restartPolicy=Always";
                container.child(field).forbidden(words, errors);
            }
        }
    }
}

/// `validateContainerRestartPolicy`: a container that restarts by rules says how it does otherwise.
fn restart_policy(container: &Field, errors: &mut FieldErrors) {
    let (policy, rules) = (container.child("restartPolicy"), container.child("restartPolicyRules"));
    policy.one_of_if_set(&["Always", "Never", "OnFailure"], errors);
    if !policy.is_set() && !rules.is_zero() {
        policy.required("must specify restartPolicy when restart rules are used", errors);
    }
    for rule in at_most(&rules, 20, errors) {
        let (action, codes) = (rule.child("action"), rule.child("exitCodes"));
        if !matches!(action.text(), "Restart" | "RestartAllContainers") {
            let shown = json!(action.text());
            errors.not_supported(action.path.as_str(), &shown, &["Restart", "RestartAllContainers"]);
        }
        if !codes.is_set() {
            codes.required("must be specified", errors);
            continue;
        }
        let operator = codes.child("operator");
        if !matches!(operator.text(), "In" | "NotIn") {
            errors.not_supported(operator.path.as_str(), &json!(operator.text()), &["In", "NotIn"]);
        }
        at_most(&codes.child("values"), 255, errors);
    }
}

/// `validateEphemeralContainers`
pub(super) fn ephemeral_containers(spec: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    const NEVER: [&str; 7] = [
        "ports",
        "resources",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
        "restartPolicy",
    ];
    const WORDS: &str = "cannot be set for an Ephemeral Container";
    let others = spec.each("containers").into_iter().chain(spec.each("initContainers"));
    let others: BTreeSet<&str> = others.map(|container| container.child("name").text()).collect();
    let mut names = others.clone();
    for container in spec.each("ephemeralContainers") {
        common(&container, scope, errors);
        unpadded_image(&container, errors);
        if !names.insert(container.child("name").text()) {
            container.child("name").duplicate(errors);
        }
        let target = container.child("targetContainerName");
        if !target.is_zero() && !others.contains(target.text()) {
            target.not_found(errors);
        }
        for field in NEVER.map(|field| container.child(field)).iter().filter(|field| !field.is_zero()) {
            field.forbidden(WORDS, errors);
        }
        for mount in container.each("volumeMounts") {
            for field in ["subPath", "subPathExpr"].map(|field| mount.child(field)) {
                if !field.is_zero() {
                    field.forbidden(WORDS, errors);
                }
            }
        }
    }
}

/// `validateContainerCommon`
fn common(container: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    container.child("name").must_follow(dns1123_label, errors);
    container.child("image").require(errors);
    container.child("terminationMessagePolicy").one_of(&["File", "FallbackToLogsOnError"], errors);
    ports(container, errors);
    container.each("env").iter().for_each(|variable| environment_variable(variable, errors));
    environment_from(container, errors);
    volume_mounts(container, scope, errors);
    volume_devices(container, scope, errors);
    container.child("imagePullPolicy").one_of(&["Always", "IfNotPresent", "Never"], errors);
    requirements(&container.child("resources"), ResourcePlace::Container, errors);
    resource_claims::used(&container.child("resources.claims"), &scope.claims, errors);
    resize_policy(container, scope, errors);
    security::security_context(&container.child("securityContext"), scope, errors);
}

fn ports(container: &Field, errors: &mut FieldErrors) {
    let mut names = BTreeSet::new();
    for port in container.each("ports") {
        let name = port.child("name");
        if !name.is_zero() {
            let wrong = port_name(name.text());
            if wrong.is_empty() && !names.insert(name.text()) {
                name.duplicate(errors);
            }
            name.invalid_each(wrong, errors);
        }
        let (inner, outer) = (port.child("containerPort"), port.child("hostPort"));
        if inner.require(errors) {
            inner.invalid_each(port_number(inner.number()), errors);
        }
        if !outer.is_zero() {
            outer.invalid_each(port_number(outer.number()), errors);
        }
        port.child("protocol").one_of(PROTOCOLS, errors);
    }
}

fn host_port_conflicts(containers: &[Field], errors: &mut FieldErrors) {
    let mut taken = BTreeSet::new();
    for port in containers.iter().flat_map(|container| container.each("ports")) {
        let host = port.child("hostPort");
        let key =
            format!("{}/{}/{}", port.child("protocol").text(), port.child("hostIP").text(), host.number());
        if host.number() != 0 && !taken.insert(key.clone()) {
            push(errors, &host.path, ErrorType::Duplicate, &key, "");
        }
    }
}

fn environment_variable(variable: &Field, errors: &mut FieldErrors) {
    variable.child("name").must_follow(environment_variable_name, errors);
    let from = variable.child("valueFrom");
    if !from.is_set() {
        return;
    }
    let sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let present: Vec<Field> =
        sources.map(|source| from.child(source)).into_iter().filter(Field::is_set).collect();
    for source in &present {
        match source.path.rsplit('.').next() {
            Some("fieldRef") => field_ref(source, FIELDS, errors),
            Some("resourceFieldRef") => resource_field_ref(source, false, errors),
            Some("configMapKeyRef" | "secretKeyRef") => key_ref(source, errors),
            Some("fileKeyRef") => file_key_ref(source, errors),
            _ => {}
        }
    }
    let words = match present.len() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !variable.child("value").is_zero() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.invalid(from.path, &json!(""), words);
}

fn file_key_ref(reference: &Field, errors: &mut FieldErrors) {
    reference.child("key").must_follow(environment_variable_name, errors);
    reference.child("volumeName").must_follow(dns1123_label, errors);
    if reference.child("path").require(errors) {
        no_backsteps(&reference.child("path"), errors);
    }
}

fn key_ref(reference: &Field, errors: &mut FieldErrors) {
    let name = reference.child("name");
    // A name that is not there is an empty one.
    for detail in dns1123_subdomain(name.text()) {
        errors.invalid(name.path.as_str(), &json!(name.text()), detail);
    }
    reference.child("key").must_follow(config_map_key, errors);
}

pub(super) fn unpadded_image(container: &Field, errors: &mut FieldErrors) {
    let image = container.child("image");
    if image.text().trim() != image.text() {
        image.invalid("must not have leading or trailing whitespace", errors);
    }
}

fn environment_from(container: &Field, errors: &mut FieldErrors) {
    for source in container.each("envFrom") {
        source.child("prefix").follows(environment_variable_name, errors);
        let sources = ["configMapRef", "secretRef"].map(|name| source.child(name));
        let present: Vec<&Field> = sources.iter().filter(|source| source.is_set()).collect();
        present.iter().for_each(|source| source.child("name").must_follow(dns1123_subdomain, errors));
        let words = match present.len() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.invalid(container.child("envFrom").path, &json!(""), words);
    }
}

fn volume_mounts(container: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    let mounts = container.child("volumeMounts");
    let devices = container.each("volumeDevices");
    let mut paths = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.child("name"), mount.child("mountPath"));
        name.require(errors);
        if !scope.volumes.contains_key(name.text()) {
            name.not_found(errors);
        }
        path.require(errors);
        if !paths.insert(path.text()) {
            path.invalid("must be unique", errors);
        }
        if devices.iter().any(|device| device.child("name").text() == name.text()) {
            name.invalid("must not already exist in volumeDevices", errors);
        }
        if devices.iter().any(|device| device.child("devicePath").text() == path.text()) {
            path.invalid("must not already exist as a path in volumeDevices", errors);
        }
        sub_paths(&mount, &mounts, scope, errors);
        propagation(&mount, &mounts, container, errors);
    }
}

/// Upstream names the list and not the item in some of these.
fn sub_paths(mount: &Field, mounts: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    let (plain, expression) = (mount.child("subPath"), mount.child("subPathExpr"));
    let volume = scope.volumes.get(mount.child("name").text());
    for path in [&plain, &expression].into_iter().filter(|path| !path.is_zero()) {
        if volume.is_some_and(|volume| tree::is_set(volume, "image")) {
            path.invalid("not allowed in image volume sources", errors);
        }
    }
    if !plain.is_zero() {
        descending_path(&plain.shown_as(mounts.child("subPath").path), errors);
    }
    if !expression.is_zero() {
        if !plain.is_zero() {
            expression.invalid("subPathExpr and subPath are mutually exclusive", errors);
        }
        descending_path(&expression.shown_as(mounts.child("subPathExpr").path), errors);
    }
}

fn propagation(mount: &Field, mounts: &Field, container: &Field, errors: &mut FieldErrors) {
    let field = mount.child("mountPropagation").shown_as(mounts.child("mountPropagation").path);
    field.one_of_if_set(&["Bidirectional", "HostToContainer", "None"], errors);
    if field.text() == "Bidirectional" && !container.child("securityContext.privileged").flag() {
        field.forbidden("Bidirectional mount propagation is available only to privileged containers", errors);
    }
}

fn volume_devices(container: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    let mounts = container.each("volumeMounts");
    let mut names = BTreeSet::new();
    let mut paths = BTreeSet::new();
    for device in container.each("volumeDevices") {
        let (name, path) = (device.child("name"), device.child("devicePath"));
        name.require(errors);
        if !names.insert(name.text()) {
            name.invalid("must be unique", errors);
        }
        let is_claim = |volume: &&Value| {
            tree::is_set(volume, "persistentVolumeClaim") || tree::is_set(volume, "ephemeral")
        };
        match scope.volumes.get(name.text()) {
            None => name.not_found(errors),
            Some(volume) if !is_claim(volume) => name.invalid(
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                errors,
            ),
            Some(_) => {}
        }
        if path.require(errors) {
            let mut found = FieldErrors::default();
            no_backsteps(&path, &mut found);
            if !found.is_empty() {
                path.invalid("can not contain backsteps ('..')", errors);
            }
        }
        if !paths.insert(path.text()) {
            path.invalid("must be unique", errors);
        }
        if mounts.iter().any(|mount| mount.child("name").text() == name.text()) {
            name.invalid("must not already exist in volumeMounts", errors);
        }
        if mounts.iter().any(|mount| mount.child("mountPath").text() == path.text()) {
            path.invalid("must not already exist as a path in volumeMounts", errors);
        }
    }
}

fn resize_policy(container: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    let list = container.child("resizePolicy");
    let mut seen = BTreeSet::new();
    for policy in list.items() {
        let (name, restart) = (policy.child("resourceName"), policy.child("restartPolicy"));
        if !seen.insert(name.text()) {
            name.shown_as(policy.path.as_str()).duplicate(errors);
        }
        name.shown_as(list.path.as_str()).one_of(&["cpu", "memory"], errors);
        let restart = restart.shown_as(list.path.as_str());
        restart.one_of(&["NotRequired", "RestartContainer"], errors);
        if scope.restart_policy == "Never" && restart.text() != "NotRequired" {
            restart.invalid("must be 'NotRequired' when `restartPolicy` is 'Never'", errors);
        }
    }
}
