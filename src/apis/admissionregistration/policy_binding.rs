//! ValidatingAdmissionPolicyBinding and MutatingAdmissionPolicyBinding: where a policy holds, and with what
//! parameters.

use std::sync::LazyLock;

use super::admission_policy::policy_name;
use super::match_resources::{default_match_resources, match_resources};
use super::{DEFINITIONS, GROUP};
use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::name;
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use crate::apis::validation::Field;
use crate::apis::validation::labels::label_selector;
use serde_json::{Value, json};

/// `validatingadmissionpolicybindings`
pub static VALIDATING_ADMISSION_POLICY_BINDINGS: Builtin = LazyLock::new(|| {
    kind("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
        .governed_by(Rules {
            validate: |binding, errors| {
                validate(binding, errors);
                validate_actions(&Field::of(binding, "spec.validationActions"), errors);
            },
            ..RULES
        })
        .into()
});

/// `mutatingadmissionpolicybindings`
pub static MUTATING_ADMISSION_POLICY_BINDINGS: Builtin = LazyLock::new(|| {
    kind("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
        .governed_by(Rules { validate, ..RULES })
        .into()
});

fn kind(kind: &str, plural: &str) -> Kind {
    Kind::builtin(GROUP, "v1", kind, plural, DEFINITIONS)
        .cluster_scoped()
        .in_categories(&["api-extensions"])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(|binding| default_match_resources(binding, "spec.matchResources"))
}

fn columns() -> Vec<Column> {
    let policy = "PolicyName indicates the policy definition which the policy binding binded to";
    let parameter = "ParamRef indicates the param resource which sets the configration param";
    vec![
        Column::name(),
        Column::new("PolicyName", "string", policy),
        Column::new("ParamRef", "string", parameter),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let parameter = at(&tree, "spec.paramRef");
    let shown = match (text(parameter, "namespace"), text(parameter, "name")) {
        ("", "") if is_set(parameter, "selector") => {
            crate::apis::print::label_selector(parameter, "selector")
        }
        ("", "") => "<unset>".to_owned(),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    vec![name(object), json!(text(&tree, "spec.policyName")), shown.into(), age(object, now)]
}

fn validate(binding: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(binding, "spec");
    policy_name(&spec.child("policyName"), errors);
    let parameter = spec.child("paramRef");
    if parameter.is_set() {
        validate_param_ref(&parameter, errors);
    }
    let resources = spec.child("matchResources");
    if resources.is_set() {
        match_resources(&resources, errors);
    }
}

fn validate_param_ref(parameter: &Field, errors: &mut FieldErrors) {
    let (name, selector) = (parameter.child("name"), parameter.child("selector"));
    match (name.is_zero(), selector.is_set()) {
        (true, false) => {
            name.required("one of name or selector must be specified", errors);
            selector.required("one of name or selector must be specified", errors);
        }
        (false, true) => {
            name.forbidden("name and selector are mutually exclusive", errors);
            selector.forbidden("name and selector are mutually exclusive", errors);
        }
        (false, false) => policy_name(&name, errors),
        (true, true) => label_selector(&selector, errors),
    }
    let action = parameter.child("parameterNotFoundAction");
    if action.is_zero() {
        action.required("", errors);
    } else {
        action.one_of_if_set(&["Allow", "Deny"], errors);
    }
}

fn validate_actions(actions: &Field, errors: &mut FieldErrors) {
    const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
    let given = actions.items();
    for (at, action) in given.iter().enumerate() {
        if !ACTIONS.contains(&action.text()) {
            action.not_supported(ACTIONS, errors);
        }
        if given[..at].iter().any(|earlier| earlier.text() == action.text()) {
            action.duplicate(errors);
        }
    }
    let has = |wanted: &str| given.iter().any(|action| action.text() == wanted);
    if has("Deny") && has("Warn") {
        let words = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                     API response and headers serves no purpose)";
        actions.invalid(words, errors);
    }
    if given.is_empty() {
        actions.required("at least one validation action is required", errors);
    }
}
