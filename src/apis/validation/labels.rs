//! Labels, annotations and label selectors (`k8s.io/apimachinery/pkg/apis/meta/v1/validation`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Field;
use crate::tree;
use apimachinery::field_error::FieldErrors;
use apimachinery::labels::LabelSelector;
use apimachinery::names::{label_value, qualified_name};

const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// `ValidateLabels`
pub fn labels(field: &Field, errors: &mut FieldErrors) {
    for (name, value) in field.members() {
        label_name(&name.into(), &field.path, errors);
        value.shown_as(field.path.as_str()).invalid_each(label_value(value.text()), errors);
    }
}

/// `ValidateLabelName`
pub fn label_name(name: &serde_json::Value, path: &str, errors: &mut FieldErrors) {
    let field = Field { path: path.to_owned(), value: name };
    field.invalid_each(qualified_name(field.text()), errors);
}

/// `ValidateAnnotations`
pub fn annotations(field: &Field, errors: &mut FieldErrors) {
    let mut size = 0;
    for (name, value) in field.members() {
        let shown = name.into();
        let named = Field { path: field.path.clone(), value: &shown };
        named.invalid_each(qualified_name(&name.to_lowercase()), errors);
        size += name.len() + value.text().len();
    }
    if size > MAX_ANNOTATIONS_BYTES {
        errors.too_long(field.path.as_str(), MAX_ANNOTATIONS_BYTES);
    }
}

/// `ValidateLabelSelector`
pub fn label_selector(field: &Field, errors: &mut FieldErrors) {
    labels(&field.child("matchLabels"), errors);
    for expression in field.each("matchExpressions") {
        let values = expression.child("values");
        match expression.child("operator").text() {
            "In" | "NotIn" if values.is_zero() => {
                values.required("must be specified when `operator` is 'In' or 'NotIn'", errors);
            }
            "Exists" | "DoesNotExist" if !values.is_zero() => {
                values
                    .forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'", errors);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => expression.child("operator").invalid("not a valid selector operator", errors),
        }
        let key = expression.child("key");
        key.invalid_each(qualified_name(key.text()), errors);
        values.items().iter().for_each(|value| value.invalid_each(label_value(value.text()), errors));
    }
}

/// Whether a selector asks for nothing.
pub fn is_empty(selector: &Field) -> bool {
    selector.child("matchLabels").is_zero() && selector.child("matchExpressions").is_zero()
}

/// Whether the selector selects what bears these labels; nothing when it is no selector.
pub fn selects(selector: &Field, labels: &BTreeMap<String, String>) -> Option<bool> {
    if !selector.is_set() {
        return Some(false);
    }
    let parsed = LabelSelector::deserialize(selector.value).ok()?.selector().ok()?;
    Some(parsed.matches(labels))
}

/// The selector of a workload: required, valid, not empty.
pub fn workload_selector(selector: &Field, kind: &str, errors: &mut FieldErrors) {
    if !selector.is_set() {
        return selector.required("", errors);
    }
    label_selector(selector, errors);
    if is_empty(selector) {
        selector.invalid(format!("empty selector is invalid for {kind}"), errors);
    }
}

/// The labels of a workload's template must be what it selects, which is nothing when the selector is
/// missing; an empty one is reported elsewhere.
pub fn selected_template(selector: &Field, template: &Field, errors: &mut FieldErrors) {
    let labels = template.child("metadata.labels");
    let map = tree::string_map(template.value, "metadata.labels");
    let is_judged = !selector.is_set() || !is_empty(selector);
    if is_judged && selects(selector, &map) == Some(false) {
        labels.invalid("`selector` does not match template `labels`", errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors() {
        for (selector, wrong) in [
            (json!({"matchLabels": {"a": "b"}}), ""),
            (
                json!({"matchLabels": {"a": "-"}}),
                "s.matchLabels: Invalid value: \"-\": a valid label must be",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Is"}]}),
                "s.matchExpressions[0].operator: Invalid value: \"Is\": not a valid selector operator",
            ),
        ] {
            let tree = json!({"s": selector});
            let mut errors = FieldErrors::default();
            label_selector(&Field::of(&tree, "s"), &mut errors);
            assert!(errors.0.len() == usize::from(!wrong.is_empty()), "{errors}");
            assert!(errors.0.is_empty() || errors.to_string().starts_with(wrong), "{errors}");
        }
    }
}
