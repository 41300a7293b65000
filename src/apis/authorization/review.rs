//! SubjectAccessReview and its relatives: may somebody do something, and what may I do
//! (`pkg/apis/authorization/validation`).

use std::sync::LazyLock;

use serde_json::Value;

use crate::kind::{Builtin, Kind};
use crate::validation::{Field, equal};
use apimachinery::field_error::FieldErrors;

const GROUP: &str = "authorization.k8s.io";

fn review(kind: &str, plural: &str) -> Kind {
    Kind::builtin(GROUP, "v1", kind, plural, "io.k8s.api.authorization.v1").only(&["create"])
}

/// `subjectaccessreviews`: may that user?
pub static SUBJECT_ACCESS_REVIEWS: Builtin =
    LazyLock::new(|| review("SubjectAccessReview", "subjectaccessreviews").cluster_scoped().into());

/// `localsubjectaccessreviews`: may that user in this namespace?
pub(super) static LOCAL_SUBJECT_ACCESS_REVIEWS: Builtin =
    LazyLock::new(|| review("LocalSubjectAccessReview", "localsubjectaccessreviews").into());

/// `selfsubjectaccessreviews`: may I?
pub(super) static SELF_SUBJECT_ACCESS_REVIEWS: Builtin =
    LazyLock::new(|| review("SelfSubjectAccessReview", "selfsubjectaccessreviews").cluster_scoped().into());

/// `selfsubjectrulesreviews`: what may I?
pub(super) static SELF_SUBJECT_RULES_REVIEWS: Builtin =
    LazyLock::new(|| review("SelfSubjectRulesReview", "selfsubjectrulesreviews").cluster_scoped().into());

/// What is wrong with the question itself: exactly one of a resource and a path, selectors that can be read,
/// nothing in the metadata but what the path says.
pub fn validate_attributes(review: &Value, is_local: bool, errors: &mut FieldErrors) {
    let spec = Field::of(review, "spec");
    let (resource, path) = (spec.child("resourceAttributes"), spec.child("nonResourceAttributes"));
    match (resource.is_set(), path.is_set()) {
        (true, true) => path.invalid("cannot be specified in combination with resourceAttributes", errors),
        (false, false) => {
            let words = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            resource.invalid(words, errors);
        }
        _ => {}
    }
    if resource.is_set() {
        field_selector(&resource.child("fieldSelector"), errors);
        label_selector(&resource.child("labelSelector"), errors);
    }
    metadata(review, is_local, errors);
    if is_local {
        let namespace = resource.child("namespace");
        if resource.is_set() && namespace.text() != Field::of(review, "metadata.namespace").text() {
            namespace.invalid("must match metadata.namespace", errors);
        }
        if path.is_set() {
            path.invalid("disallowed on this kind of request", errors);
        }
    }
}

/// Somebody must be asked about.
pub fn validate_subject(review: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(review, "spec");
    if spec.child("user").is_zero() && spec.child("groups").is_zero() {
        let user = Value::from(spec.child("user").text());
        errors.invalid("spec.user", &user, "at least one of user or group must be specified");
    }
}

/// A review has no name: it is gone when it is answered.
fn metadata(review: &Value, is_local: bool, errors: &mut FieldErrors) {
    let mut metadata = review["metadata"].clone();
    if let Some(members) = metadata.as_object_mut() {
        members.remove("managedFields");
        if is_local {
            members.remove("namespace");
        }
    }
    if !equal(&metadata, &Value::Null) {
        let words = if is_local { "must be empty except for namespace" } else { "must be empty" };
        Field { path: "metadata".into(), value: &review["metadata"] }.invalid(words, errors);
    }
}

fn field_selector(selector: &Field, errors: &mut FieldErrors) {
    selector_form(selector, "fieldSelector", errors);
    for requirement in selector.each("requirements") {
        let key = requirement.child("key");
        if key.is_zero() {
            key.required("must be specified", errors);
        }
        values_fit(&requirement, errors);
    }
}

fn label_selector(selector: &Field, errors: &mut FieldErrors) {
    selector_form(selector, "labelSelector", errors);
    for requirement in selector.each("requirements") {
        let key = requirement.child("key");
        if key.is_zero() {
            key.required("must be specified", errors);
        } else {
            key.invalid_each(apimachinery::names::qualified_name(key.text()), errors);
        }
        values_fit(&requirement, errors);
    }
}

fn selector_form(selector: &Field, name: &str, errors: &mut FieldErrors) {
    let (requirements, raw) = (selector.child("requirements"), selector.child("rawSelector"));
    if !selector.is_set() {
        return;
    }
    if !raw.is_zero() && !requirements.is_zero() {
        raw.invalid("may not specified at the same time as requirements", errors);
    }
    if raw.is_zero() && requirements.is_zero() {
        let words = format!("when {name} is specified, requirements or rawSelector is required");
        requirements.required(&words, errors);
    }
}

fn values_fit(requirement: &Field, errors: &mut FieldErrors) {
    let (operator, values) = (requirement.child("operator"), requirement.child("values"));
    match operator.text() {
        "In" | "NotIn" if values.is_zero() => {
            values.required("must be specified when `operator` is 'In' or 'NotIn'", errors);
        }
        "In" | "NotIn" => {}
        "Exists" | "DoesNotExist" if !values.is_zero() => {
            values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'", errors);
        }
        "Exists" | "DoesNotExist" => {}
        _ => operator.invalid("not a valid selector operator", errors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn questions_are_checked_in_upstreams_words() {
        let pods = json!({"verb": "get", "resource": "pods", "namespace": "a"});
        let selecting = |selector: Value| json!({"resourceAttributes": {"fieldSelector": selector}});
        for (spec, is_local, wanted) in [
            (json!({"resourceAttributes": pods}), false, ""),
            (
                json!({}),
                false,
                "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or \
                 resourceAttributes must be specified",
            ),
            (
                json!({"resourceAttributes": pods}),
                true,
                "spec.resourceAttributes.namespace: Invalid value: \"a\": must match metadata.namespace",
            ),
            (
                selecting(json!({})),
                false,
                "spec.resourceAttributes.fieldSelector.requirements: Required value: when fieldSelector is \
                 specified, requirements or rawSelector is required",
            ),
            (
                selecting(json!({"requirements": [{"key": "a", "operator": "In"}]})),
                false,
                "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be \
                 specified when `operator` is 'In' or 'NotIn'",
            ),
        ] {
            let mut errors = FieldErrors::default();
            validate_attributes(&json!({"spec": spec}), is_local, &mut errors);
            let found = if errors.is_empty() { String::new() } else { errors.to_string() };
            assert_eq!(found, wanted);
        }
        let mut errors = FieldErrors::default();
        validate_subject(&json!({"spec": {}}), &mut errors);
        let wanted = "spec.user: Invalid value: \"\": at least one of user or group must be specified";
        assert_eq!(errors.to_string(), wanted);
    }
}
