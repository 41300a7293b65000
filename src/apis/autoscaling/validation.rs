//! What is wrong with a HorizontalPodAutoscaler (`pkg/apis/autoscaling/validation`).

use serde_json::{Value, json};

use crate::tree::at;
use crate::validation::resources::{ResourcePlace, quantity, resource_name};
use crate::validation::{Field, NOT_NEGATIVE, equal};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, path_segment_name};

/// Where each type of metric keeps its source, in upstream's order of looking.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];

/// What is wrong with its v2 form. What `old` does not do well either is not looked at again.
pub(super) fn validate(autoscaler: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Field::of(autoscaler, "spec");
    let before = |name: &str| old.map(|old| at(&old["spec"], name));
    let (least, most) = (spec.child("minReplicas"), spec.child("maxReplicas"));
    let bound = if before("minReplicas") == Some(&json!(0)) { 0 } else { 1 };
    if least.is_set() && least.number() < bound {
        least.invalid(format!("must be greater than or equal to {bound}"), errors);
    }
    if most.number() < 1 {
        errors.invalid(most.path.as_str(), &most.number().into(), "must be greater than 0");
    }
    if least.is_set() && most.number() < least.number() {
        most.invalid("must be greater than or equal to `minReplicas`", errors);
    }
    let target = spec.child("scaleTargetRef");
    reference(&target, errors);
    let is_known = ["apiVersion", "kind"]
        .iter()
        .all(|name| before("scaleTargetRef").is_some_and(|old| equal(at(old, name), at(target.value, name))));
    if !is_known {
        api_version(&target, target.child("kind").text() == "ReplicationController", errors);
    }
    spec.each("metrics").iter().for_each(|metric| validate_metric(metric, errors));
    for direction in ["behavior.scaleUp", "behavior.scaleDown"].map(|name| spec.child(name)) {
        if direction.is_set() {
            scaling_rules(&direction, errors);
        }
    }
}

fn reference(reference: &Field, errors: &mut FieldErrors) {
    reference.child("kind").must_follow(path_segment_name, errors);
    reference.child("name").must_follow(path_segment_name, errors);
}

/// `ValidateAPIVersion`: what is scaled is in a group, but for one kind.
fn api_version(reference: &Field, may_be_core: bool, errors: &mut FieldErrors) {
    let version = reference.child("apiVersion");
    let shown = json!(version.text());
    if version.text().matches('/').count() > 1 {
        let words = format!("unexpected GroupVersion string: {}", version.text());
        errors.invalid(version.path.as_str(), &shown, words);
    } else if !may_be_core && version.text().split_once('/').is_none_or(|(group, _)| group.is_empty()) {
        errors.invalid(version.path.as_str(), &shown, "apiVersion must specify API group");
    }
}

fn scaling_rules(rules: &Field, errors: &mut FieldErrors) {
    let window = rules.child("stabilizationWindowSeconds");
    if window.number() < 0 {
        window.invalid("must be greater than or equal to zero", errors);
    }
    if window.number() > 3600 {
        window.invalid("must be less than or equal to 3600", errors);
    }
    let tolerance = rules.child("tolerance");
    if tolerance.is_set() && quantity(&tolerance).sign() < 0 {
        tolerance.invalid(NOT_NEGATIVE, errors);
    }
    rules.child("selectPolicy").one_of_if_set(&["Disabled", "Max", "Min"], errors);
    let policies = rules.child("policies");
    if policies.is_zero() {
        policies.required("must specify at least one Policy", errors);
    }
    for policy in policies.items() {
        let kind = policy.child("type");
        if !matches!(kind.text(), "Pods" | "Percent") {
            kind.not_supported(&["Percent", "Pods"], errors);
        }
        for field in ["value", "periodSeconds"].map(|name| policy.child(name)) {
            if field.number() <= 0 {
                errors.invalid(field.path.as_str(), &field.number().into(), "must be greater than zero");
            }
        }
        if policy.child("periodSeconds").number() > 1800 {
            policy.child("periodSeconds").invalid("must be less than or equal to 1800", errors);
        }
    }
}

fn validate_metric(metric: &Field, errors: &mut FieldErrors) {
    const TYPES: &[&str] = &["ContainerResource", "External", "Object", "Pods", "Resource"];
    let kind = metric.child("type");
    if kind.is_zero() {
        kind.required("must specify a metric source type", errors);
    }
    if !TYPES.contains(&kind.text()) {
        errors.not_supported(kind.path.as_str(), &kind.text().into(), TYPES);
    }
    let mut present: Vec<&str> =
        SOURCES.iter().map(|(_, field)| *field).filter(|field| metric.child(field).is_set()).collect();
    if let Some(first) = present.first() {
        source(&metric.child(first), first, errors);
    }
    let expected = SOURCES.iter().find(|(name, _)| *name == kind.text()).map(|(_, field)| *field);
    if let Some(field) = expected.filter(|field| !metric.child(field).is_set()) {
        metric.child(field).required("must populate information for the given metric source", errors);
    }
    if present.len() != 1 {
        present.retain(|field| Some(*field) != expected);
        for field in present {
            metric.child(field).forbidden("must populate the given metric source only", errors);
        }
    }
}

fn source(source: &Field, kind: &str, errors: &mut FieldErrors) {
    let target = source.child("target");
    let [value, average, utilization] =
        ["value", "averageValue", "averageUtilization"].map(|name| target.child(name));
    if matches!(kind, "object" | "external" | "pods") {
        metric_name(&source.child("metric.name"), errors);
    }
    match kind {
        "object" => reference(&source.child("describedObject"), errors),
        "resource" if source.child("name").is_zero() => {
            source.child("name").required("must specify a resource name", errors);
        }
        "containerResource" => of_container(source, errors),
        _ => {}
    }
    validate_target(&target, errors);
    match kind {
        "object" if !value.is_set() && !average.is_set() => {
            average.required("must set either a target value or averageValue", errors);
        }
        "external" if !value.is_set() && !average.is_set() => {
            average.required("must set either a target value for metric or a per-pod target", errors);
        }
        "external" if value.is_set() && average.is_set() => {
            value.forbidden("may not set both a target value for metric and a per-pod target", errors);
        }
        "pods" if !average.is_set() => {
            average.required("must specify a positive target averageValue", errors);
        }
        "resource" | "containerResource" => match (utilization.is_set(), average.is_set()) {
            (false, false) => {
                utilization.required("must set either a target raw value or a target utilization", errors);
            }
            (true, true) => {
                average.forbidden("may not set both a target raw value and a target utilization", errors);
            }
            _ => {}
        },
        _ => {}
    }
}

fn of_container(source: &Field, errors: &mut FieldErrors) {
    let (name, container) = (source.child("name"), source.child("container"));
    match name.text() {
        "" => name.required("must specify a resource name", errors),
        text => resource_name(text, &name, ResourcePlace::Container, errors),
    }
    match container.text() {
        "" => container.required("must specify a container", errors),
        text => container.invalid_each(dns1123_label(text), errors),
    }
}

fn metric_name(name: &Field, errors: &mut FieldErrors) {
    if name.is_zero() {
        name.required("must specify a metric name", errors)
    } else {
        name.invalid_each(path_segment_name(name.text()), errors)
    }
}

fn validate_target(target: &Field, errors: &mut FieldErrors) {
    let kind = target.child("type");
    if kind.is_zero() {
        kind.required("must specify a metric target type", errors);
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        let words = "must be either Utilization, Value, or AverageValue";
        errors.invalid(kind.path.as_str(), &kind.text().into(), words);
    }
    for field in ["value", "averageValue"].map(|name| target.child(name)) {
        if field.is_set() && quantity(&field).sign() != 1 {
            field.invalid("must be positive", errors);
        }
    }
    let utilization = target.child("averageUtilization");
    if utilization.is_set() && utilization.number() < 1 {
        utilization.invalid("must be greater than 0", errors);
    }
}
