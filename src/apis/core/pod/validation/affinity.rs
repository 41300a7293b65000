//! Where a pod may run: affinity, tolerations, topology spread.

use serde_json::json;

use crate::validation::labels::{label_name, label_selector};
use crate::validation::{Field, push};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::{dns1123_label, dns1123_subdomain, label_value, qualified_name};
use apimachinery::repeats::repeats;

/// `validateAffinity`
pub(super) fn affinity(affinity: &Field, errors: &mut FieldErrors) {
    let node = affinity.child("nodeAffinity");
    let required = node.child("requiredDuringSchedulingIgnoredDuringExecution");
    if required.is_set() {
        node_selector(&required, errors);
    }
    for term in node.each("preferredDuringSchedulingIgnoredDuringExecution") {
        weight(&term, errors);
        node_selector_term(&term.child("preference"), false, errors);
    }
    for pods in ["podAffinity", "podAntiAffinity"].map(|name| affinity.child(name)) {
        for term in pods.each("requiredDuringSchedulingIgnoredDuringExecution") {
            pod_affinity_term(&term, errors);
        }
        for term in pods.each("preferredDuringSchedulingIgnoredDuringExecution") {
            weight(&term, errors);
            pod_affinity_term(&term.child("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Field, errors: &mut FieldErrors) {
    let weight = term.child("weight");
    if !(1..=100).contains(&weight.number()) {
        weight.invalid("must be in the range 1-100", errors);
    }
}

/// `ValidateNodeSelector`
pub fn node_selector(selector: &Field, errors: &mut FieldErrors) {
    let terms = selector.child("nodeSelectorTerms");
    if terms.is_zero() {
        return terms.required("must have at least one node selector term", errors);
    }
    terms.items().iter().for_each(|term| node_selector_term(term, true, errors));
}

/// Preferences may name impossible values, because older servers let them.
fn node_selector_term(term: &Field, is_strict: bool, errors: &mut FieldErrors) {
    for requirement in term.each("matchExpressions") {
        node_selector_requirement(&requirement, is_strict, errors);
    }
    term.each("matchFields").iter().for_each(|requirement| node_field_requirement(requirement, errors));
}

fn node_selector_requirement(requirement: &Field, is_strict: bool, errors: &mut FieldErrors) {
    let (values, operator) = (requirement.child("values"), requirement.child("operator"));
    match operator.text() {
        "In" | "NotIn" if values.is_zero() => {
            values.required("must be specified when `operator` is 'In' or 'NotIn'", errors);
        }
        "Exists" | "DoesNotExist" if !values.is_zero() => {
            values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'", errors);
        }
        "Gt" | "Lt" if values.items().len() != 1 => {
            values.required("must be specified single value when `operator` is 'Lt' or 'Gt'", errors);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => operator.invalid("not a valid selector operator", errors),
    }
    let key = requirement.child("key");
    key.invalid_each(qualified_name(key.text()), errors);
    if is_strict {
        values.items().iter().for_each(|value| value.invalid_each(label_value(value.text()), errors));
    }
}

fn node_field_requirement(requirement: &Field, errors: &mut FieldErrors) {
    let (values, operator, key) =
        (requirement.child("values"), requirement.child("operator"), requirement.child("key"));
    match operator.text() {
        "In" | "NotIn" if values.items().len() == 1 => {}
        "In" | "NotIn" => values.required(
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            errors,
        ),
        _ => operator.invalid("not a valid selector operator", errors),
    }
    if key.text() != "metadata.name" {
        return key.invalid("not a valid field selector key", errors);
    }
    values.items().iter().for_each(|value| value.invalid_each(dns1123_subdomain(value.text()), errors));
}

fn pod_affinity_term(term: &Field, errors: &mut FieldErrors) {
    label_selector(&term.child("labelSelector"), errors);
    label_selector(&term.child("namespaceSelector"), errors);
    for namespace in term.each("namespaces") {
        namespace
            .shown_as(term.child("namespace").path)
            .invalid_each(dns1123_label(namespace.text()), errors);
    }
    for keys in ["matchLabelKeys", "mismatchLabelKeys"].map(|name| term.child(name)) {
        label_keys(&keys, term, errors);
    }
    let mismatched = term.each("mismatchLabelKeys");
    for key in term.each("matchLabelKeys") {
        if mismatched.iter().any(|other| other.text() == key.text()) {
            key.invalid("exists in both matchLabelKeys and mismatchLabelKeys", errors);
        }
    }
    let topology_key = term.child("topologyKey");
    if topology_key.is_zero() {
        topology_key.required("can not be empty", errors);
    }
    label_name(topology_key.value, &topology_key.path, errors);
}

fn label_keys(keys: &Field, term: &Field, errors: &mut FieldErrors) {
    if keys.is_zero() {
        return;
    }
    if !term.child("labelSelector").is_set() {
        return keys.forbidden("must not be specified when labelSelector is not set", errors);
    }
    keys.items().iter().for_each(|key| key.invalid_each(qualified_name(key.text()), errors));
}

/// `ValidateTolerations`
pub fn tolerations(tolerations: &Field, errors: &mut FieldErrors) {
    for toleration in tolerations.items() {
        let (key, operator) = (toleration.child("key"), toleration.child("operator"));
        let (value, effect) = (toleration.child("value"), toleration.child("effect"));
        key.follows(qualified_name, errors);
        if key.is_zero() && operator.text() != "Exists" {
            let words =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            shown(&operator, errors, words);
        }
        if toleration.child("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            shown(&effect, errors, "effect must be 'NoExecute' when `tolerationSeconds` is set");
        }
        let named_value = value.shown_as(operator.path.as_str());
        match operator.text() {
            "" | "Equal" => {
                let wrong = label_value(value.text());
                if !wrong.is_empty() {
                    named_value.invalid(wrong.join(";"), errors);
                }
            }
            "Exists" if !value.is_zero() => {
                named_value.invalid("value must be empty when `operator` is 'Exists'", errors);
            }
            "Exists" => {}
            _ => operator.not_supported(&["Equal", "Exists"], errors),
        }
        if !effect.is_zero() {
            effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
    }
}

/// A text that is absent is shown as empty.
fn shown(field: &Field, errors: &mut FieldErrors, words: &str) {
    push(errors, &field.path, ErrorType::Invalid, field.text(), words);
}

/// `validateTopologySpreadConstraints`
pub(super) fn topology_spread(spec: &Field, errors: &mut FieldErrors) {
    let constraints = spec.each("topologySpreadConstraints");
    let kind = |constraint: &Field| {
        let (key, when) = (constraint.child("topologyKey"), constraint.child("whenUnsatisfiable"));
        format!("{{{}, {}}}", key.text(), when.text())
    };
    // Those that stand again further behind.
    let mut stands_again = repeats(constraints.iter().rev().map(kind));
    for constraint in &constraints {
        topology_spread_constraint(constraint, errors);
        if stands_again.pop() == Some(true) {
            let path = format!("{}.{{topologyKey, whenUnsatisfiable}}", constraint.path);
            errors.duplicate(path, &json!(kind(constraint)));
        }
    }
}

fn topology_spread_constraint(constraint: &Field, errors: &mut FieldErrors) {
    let skew = constraint.child("maxSkew");
    if skew.number() <= 0 {
        errors.invalid(skew.path.as_str(), &json!(skew.number()), "must be greater than zero");
    }
    if constraint.child("topologyKey").is_zero() {
        constraint.child("topologyKey").required("can not be empty", errors);
    }
    let when = constraint.child("whenUnsatisfiable");
    if !matches!(when.text(), "DoNotSchedule" | "ScheduleAnyway") {
        when.not_supported(&["DoNotSchedule", "ScheduleAnyway"], errors);
    }
    let domains = constraint.child("minDomains");
    if domains.is_set() {
        if domains.number() <= 0 {
            domains.invalid("must be greater than zero", errors);
        }
        if when.text() != "DoNotSchedule" {
            let words =
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", when.text());
            domains.invalid(words, errors);
        }
    }
    constraint.child("nodeAffinityPolicy").one_of_if_set(&["Honor", "Ignore"], errors);
    constraint.child("nodeTaintsPolicy").one_of_if_set(&["Honor", "Ignore"], errors);
    label_keys(&constraint.child("matchLabelKeys"), constraint, errors);
    label_selector(&constraint.child("labelSelector"), errors);
}
