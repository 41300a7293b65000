//! What a CustomResourceDefinition is refused for (`apis/apiextensions/validation`), with upstream's paths:
//! what all versions share stands at the top of the spec, as upstream's internal form has it.

mod conversion;
mod cost;
mod names;
mod rules;
mod schema;
mod structural;
mod versions;

use serde_json::{Value, json};

use super::approval::{Approval, approval_of, is_protected};
use super::view::CustomResourceDefinition;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::dns1123_subdomain;

const APPROVED: &str = "api-approved.kubernetes.io";

/// A new definition.
pub(super) fn definition(new: &Value) -> FieldErrors {
    let crd = CustomResourceDefinition::read(new);
    let mut errors = FieldErrors::default();
    name(new, &crd, &mut errors);
    spec(new, &crd, &mut errors);
    stored_versions(&crd, &mut errors);
    approval(new, None, &crd, &mut errors);
    errors
}

/// The new state of a definition.
pub(super) fn definition_update(new: &Value, old: &Value) -> FieldErrors {
    let crd = CustomResourceDefinition::read(new);
    let before = CustomResourceDefinition::read(old);
    let mut errors = FieldErrors::default();
    spec(new, &crd, &mut errors);
    immutable(&crd, &before, new, &mut errors);
    stored_versions(&crd, &mut errors);
    approval(new, Some(old), &crd, &mut errors);
    errors
}

/// The new status of a definition: its owner may write any versions there.
pub(super) fn status_update(new: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    names::validate(
        &CustomResourceDefinition::read(new).status.accepted_names,
        "status.acceptedNames",
        &mut errors,
    );
    errors
}

/// Warnings of a definition that is accepted.
pub(super) fn warnings(crd: &CustomResourceDefinition) -> Vec<String> {
    let mut warnings = vec![];
    for version in &crd.spec.versions {
        if version.deprecation_warning.as_deref() == Some("") {
            warnings.push(format!("spec.versions[{}]: empty deprecation warning", version.name));
        }
    }
    warnings
}

fn name(new: &Value, crd: &CustomResourceDefinition, errors: &mut FieldErrors) {
    let wanted = format!("{}.{}", crd.spec.names.plural, crd.spec.group);
    let given = new["metadata"]["name"].as_str().unwrap_or_default();
    if given != wanted {
        errors.invalid("metadata.name", &json!(given), "must be spec.names.plural+\".\"+spec.group");
    }
}

fn spec(new: &Value, crd: &CustomResourceDefinition, errors: &mut FieldErrors) {
    let spec = &crd.spec;
    match spec.group.as_str() {
        "" => errors.required("spec.group", ""),
        group => {
            let found = dns1123_subdomain(group);
            if !found.is_empty() {
                errors.invalid("spec.group", &json!(group), found.join(","));
            } else if !group.contains('.') {
                errors.invalid("spec.group", &json!(group), "should be a domain with at least one dot");
            }
        }
    }
    match spec.scope.as_str() {
        "" => errors.required("spec.scope", ""),
        "Cluster" | "Namespaced" => {}
        other => errors.not_supported("spec.scope", &json!(other), &["Cluster", "Namespaced"]),
    }
    if spec.preserve_unknown_fields {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.invalid("spec.preserveUnknownFields", &json!(true), detail);
    }
    versions::validate(new, crd, errors);
    names::require(&spec.names, errors);
    names::validate(&spec.names, "spec.names", errors);
    conversion::validate(crd, errors);
}

fn stored_versions(crd: &CustomResourceDefinition, errors: &mut FieldErrors) {
    let stored = &crd.status.stored_versions;
    let path = "status.storedVersions";
    if stored.is_empty() {
        errors.invalid(path, &Value::Null, "must have at least one stored version");
        return;
    }
    let versions = &crd.spec.versions;
    for version in versions.iter().filter(|version| version.storage && !stored.contains(&version.name)) {
        let detail = format!("must have the storage version {}", version.name);
        errors.invalid(path, &json!(stored), detail);
    }
    for (at, name) in stored.iter().enumerate() {
        if versions.iter().any(|version| version.name == *name) {
            continue;
        }
        let detail = "missing from spec.versions; v1 was previously a storage version, and must remain in \
                      spec.versions until a storage migration ensures no data remains persisted in v1 and \
                      removes v1 from status.storedVersions"
            .replace("v1", name);
        errors.invalid(format!("{path}[{at}]"), &json!(name), detail);
    }
}

/// What is served under a name cannot become something else.
fn immutable(
    crd: &CustomResourceDefinition,
    before: &CustomResourceDefinition,
    _new: &Value,
    errors: &mut FieldErrors,
) {
    let mut fixed = |path: &str, now: &str, then: &str| {
        if now != then {
            errors.invalid(path, &json!(now), "field is immutable");
        }
    };
    if before.is("Established") {
        fixed("spec.scope", &crd.spec.scope, &before.spec.scope);
        fixed("spec.names.kind", &crd.spec.names.kind, &before.spec.names.kind);
    }
    fixed("spec.group", &crd.spec.group, &before.spec.group);
    fixed("spec.names.plural", &crd.spec.names.plural, &before.spec.names.plural);
}

/// `ValidateCustomResourceDefinition...Approval`: Kubernetes' own groups need a word that they may be used.
fn approval(new: &Value, old: Option<&Value>, crd: &CustomResourceDefinition, errors: &mut FieldErrors) {
    if !is_protected(&crd.spec.group) {
        return;
    }
    let state = |tree: &Value| approval_of(tree["metadata"]["annotations"][APPROVED].as_str());
    let (now, then) = (state(new), old.map(state));
    let path = format!("metadata.annotations[{APPROVED}]");
    match now {
        Approval::Invalid(text) if then.as_ref() != Some(&Approval::Invalid(text.clone())) => {
            let value = new["metadata"]["annotations"][APPROVED].clone();
            errors.invalid(path, &value, text);
        }
        Approval::Missing if then.is_none_or(|then| then != Approval::Missing) => {
            errors.required(path, Approval::missing_text());
        }
        _ => {}
    }
}
