//! What the two kinds of policy have in common, and their bindings: parameters, variables, validation.

use serde_json::Value;

use super::expressions::{environment, with_variables};
use super::matching::{default_match_resources, match_conditions, match_resources};
use crate::tree::*;
use crate::validation::{Field, equal, labels::label_selector, push};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::{dns1035_label, dns1123_subdomain, path_segment_name};
use cel::{Environment, is_identifier};

/// `SetDefaults_*AdmissionPolicySpec`
pub(super) fn default_policy(policy: &mut Value) {
    if is_set(policy, "spec") {
        set_if_unset(policy, "spec.failurePolicy", "Fail");
    }
    default_match_resources(policy, "spec.matchConstraints");
}

/// The defaults of a binding.
pub(super) fn default_binding(binding: &mut Value) {
    default_match_resources(binding, "spec.matchResources");
}

/// The part of a policy's spec that both kinds have. Match conditions that did not change are not looked at
/// again.
pub(super) fn validate_policy(spec: &Field, old: Option<&Value>, errors: &mut FieldErrors) {
    spec.child("failurePolicy").one_of(&["Fail", "Ignore"], errors);
    let param_kind = spec.child("paramKind");
    if param_kind.is_set() {
        validate_param_kind(&param_kind, errors);
    }
    let constraints = spec.child("matchConstraints");
    if constraints.is_set() {
        match_resources(&constraints, errors);
        constraints.child("resourceRules").require(errors);
    } else {
        constraints.required("", errors)
    }
    let unchanged = |old: &Value, name: &str| equal(at(spec.value, name), &old["spec"][name]);
    let is_old = |old: &Value| unchanged(old, "paramKind") && unchanged(old, "matchConditions");
    if !old.is_some_and(is_old) {
        match_conditions(&spec.child("matchConditions"), param_kind.is_set(), errors);
    }
    validate_variables(&spec.child("variables"), param_kind.is_set(), errors);
}

fn validate_variables(variables: &Field, has_params: bool, errors: &mut FieldErrors) {
    let list = variables.items();
    if list.is_empty() {
        return;
    }
    let trees: Vec<Value> = list.iter().map(|variable| variable.value.clone()).collect();
    let (_, compiled) = with_variables(environment(has_params, true), &trees);
    for (variable, (_, program)) in list.iter().zip(compiled) {
        validate_variable(variable, errors);
        let expression = variable.child("expression");
        if let (Err(why), false) = (program, expression.text().trim().is_empty()) {
            expression.invalid(why, errors);
        }
    }
}

/// What the expressions of a policy's spec may name.
pub(super) fn policy_environment(spec: &Field) -> Environment {
    with_variables(environment(spec.child("paramKind").is_set(), true), items(spec.value, "variables")).0
}

fn validate_variable(variable: &Field, errors: &mut FieldErrors) {
    let (name, expression) = (variable.child("name"), variable.child("expression"));
    if name.text().trim().is_empty() {
        name.required("name is not specified", errors);
    } else if !is_identifier(name.text()) {
        name.invalid("name is not a valid CEL identifier", errors);
    }
    if expression.text().trim().is_empty() {
        expression.required("expression is not specified", errors);
    }
}

/// `validateParamKind`
fn validate_param_kind(param_kind: &Field, errors: &mut FieldErrors) {
    let (api_version, kind) = (param_kind.child("apiVersion"), param_kind.child("kind"));
    if api_version.require(errors) {
        validate_api_version(&api_version, errors);
    }
    if kind.require(errors) {
        let wrong = dns1035_label(&kind.text().to_lowercase());
        if !wrong.is_empty() {
            let words = "may have mixed case, but should otherwise match: ";
            kind.invalid(format!("{words}{}", wrong.join(",")), errors);
        }
    }
}

fn validate_api_version(api_version: &Field, errors: &mut FieldErrors) {
    let text = api_version.text();
    if text.matches('/').count() > 1 {
        return api_version.invalid(format!("unexpected GroupVersion string: {text}"), errors);
    }
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    let mut check = |part: &str, wrong: Vec<String>| {
        if !wrong.is_empty() {
            push(errors, &api_version.path, ErrorType::Invalid, part, &wrong.join(","));
        }
    };
    if !group.is_empty() {
        check(group, dns1123_subdomain(group));
    }
    match version {
        "" => api_version.invalid("version must be specified", errors),
        version => check(version, dns1035_label(version)),
    }
}

/// The part of a binding's spec that both kinds have.
pub(super) fn validate_binding(spec: &Field, errors: &mut FieldErrors) {
    spec.child("policyName").must_follow(dns1123_subdomain, errors);
    let param_ref = spec.child("paramRef");
    if param_ref.is_set() {
        validate_param_ref(&param_ref, errors);
    }
    // Upstream's path, to the letter.
    let resources = spec.child("matchResources");
    match_resources(&resources.shown_as(format!("{}.matchResouces", spec.path)), errors);
}

/// `validateParamRef`
fn validate_param_ref(param_ref: &Field, errors: &mut FieldErrors) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, selector) = (param_ref.child("name"), param_ref.child("selector"));
    if !name.is_zero() {
        name.invalid_each(path_segment_name(name.text()), errors);
        if selector.is_set() {
            name.forbidden(EXCLUSIVE, errors);
        }
    }
    if selector.is_set() {
        label_selector(&selector, errors);
        if !name.is_zero() {
            selector.forbidden(EXCLUSIVE, errors);
        }
    }
    if name.is_zero() && !selector.is_set() {
        param_ref.required("one of name or selector must be specified", errors);
    }
    let action = param_ref.child("parameterNotFoundAction");
    match action.text() {
        "Allow" | "Deny" => {}
        "" => action.required("", errors),
        _ => action.not_supported(&["Deny", "Allow"], errors),
    }
}

/// The column `ParamKind`.
pub(super) fn param_kind_cell(policy: &Value) -> Value {
    if is_set(policy, "spec.paramKind") {
        let kind = at(policy, "spec.paramKind");
        format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")).into()
    } else {
        "<unset>".into()
    }
}

/// The column `ParamRef`.
pub(super) fn param_ref_cell(binding: &Value) -> Value {
    let param_ref = at(binding, "spec.paramRef");
    if param_ref.is_null() {
        return "<unset>".into();
    }
    match (text(param_ref, "namespace"), text(param_ref, "name")) {
        ("", "") => crate::print::label_selector(param_ref, "selector").into(),
        ("", name) => name.into(),
        (namespace, name) => format!("{namespace}/{name}").into(),
    }
}
