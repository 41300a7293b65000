//! References to fields of the pod and to resources of its containers, of variables and of volumes.

use serde_json::Value;

use crate::validation::{Field, push};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::qualified_name;

/// The fields that a variable can have the value of.
pub(super) const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// `validateObjectFieldSelector`; `supported` are the fields without a subscript.
pub(super) fn field_ref(reference: &Field, supported: &[&str], errors: &mut FieldErrors) {
    if !reference.child("apiVersion").require(errors) || !reference.child("fieldPath").require(errors) {
        return;
    }
    let path = reference.child("fieldPath");
    let Some((name, key)) = subscript(path.text()) else {
        if !supported.contains(&path.text()) {
            match path.text() {
                "metadata.labels" | "metadata.annotations" => path.not_supported(supported, errors),
                text if FIELDS.contains(&text) => path.not_supported(supported, errors),
                text => {
                    let words = format!("error converting fieldPath: field label not supported: {text}");
                    path.invalid(words, errors);
                }
            }
        }
        return;
    };
    let value: Value = key.into();
    let key_field = Field { path: reference.path.clone(), value: &value };
    match name {
        "metadata.annotations" => key_field.invalid_each(qualified_name(&key.to_lowercase()), errors),
        "metadata.labels" => key_field.invalid_each(qualified_name(key), errors),
        name => errors.invalid(reference.path.as_str(), &name.into(), "does not support subscript"),
    }
}

/// `metadata.labels['key']`
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['")
}

/// `validateContainerResourceFieldSelector`
pub(super) fn resource_field_ref(reference: &Field, in_volume: bool, errors: &mut FieldErrors) {
    let (container, resource) = (reference.child("containerName"), reference.child("resource"));
    let is_huge =
        |text: &str| text.starts_with("limits.hugepages-") || text.starts_with("requests.hugepages-");
    if in_volume && container.is_zero() {
        container.required("", errors);
    } else if resource.is_zero() {
        resource.required("", errors);
    } else if !RESOURCES.contains(&resource.text()) && !is_huge(resource.text()) {
        resource.not_supported(RESOURCES, errors);
    }
    divisor(reference, errors);
}

fn divisor(reference: &Field, errors: &mut FieldErrors) {
    const SIZES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
    let (divisor, resource) = (reference.child("divisor").text(), reference.child("resource"));
    let kind = match resource.text().split_once('.').map(|(_, kind)| kind) {
        Some("memory") => "memory",
        Some("ephemeral-storage") => "local ephemeral storage",
        Some(kind) if kind.starts_with("hugepages-") => "hugepages",
        Some("cpu") if !matches!(divisor, "" | "0" | "1m" | "1") => {
            let words = "only divisor's values 1m and 1 are supported with the cpu resource";
            return errors.invalid(format!("{}.divisor", reference.path), resource.value, words);
        }
        _ => return,
    };
    if !matches!(divisor, "" | "0") && !SIZES.split(", ").any(|size| size == divisor) {
        let words = format!("only divisor's values {SIZES} are supported with the {kind} resource");
        errors.invalid(format!("{}.divisor", reference.path), resource.value, words);
    }
}

/// `validateFileKeyRefVolumes`: files that variables come from are in volumes of type `emptyDir`.
pub(super) fn volumes_of_file_keys(spec: &Field, errors: &mut FieldErrors) {
    let volumes = spec.each("volumes");
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let variables = lists.iter().flat_map(|list| spec.each(list)).flat_map(|container| container.each("env"));
    for reference in variables.map(|variable| variable.child("valueFrom").child("fileKeyRef")) {
        let name = reference.child("volumeName");
        let volume = volumes.iter().rev().find(|volume| volume.child("name").text() == name.text());
        match volume {
            _ if !reference.is_set() => {}
            None => push(errors, &name.path, ErrorType::NotFound, name.text(), ""),
            Some(volume) if volume.child("emptyDir").is_set() => {}
            Some(_) => name.invalid("referenced volume must be of type emptyDir", errors),
        }
    }
}
