//! ValidatingAdmissionPolicy: what may not be written, in CEL; and where it applies.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::expressions::{check, messages_environment};
use super::group::{DEFINITION, GROUP};
use super::policy::{
    default_binding, default_policy, param_kind_cell, param_ref_cell, policy_environment, validate_binding,
    validate_policy,
};
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::qualified_name;
use apimachinery::object::Object;
use apimachinery::time::Time;
use cel::{Environment, Type};

/// `validatingadmissionpolicies`
pub static VALIDATING_ADMISSION_POLICIES: Builtin = LazyLock::new(|| {
    let kind = "ValidatingAdmissionPolicy";
    Kind::builtin(GROUP, "v1", kind, "validatingadmissionpolicies", DEFINITION)
        .cluster_scoped()
        .in_categories(&["api-extensions"])
        .with_generation()
        .with(&[Subresource::Status])
        .status_resets(&["metadata", "spec"])
        .status_leaves_metadata()
        .printed(policy_columns(), policy_cells)
        .defaulted(default_policy)
        .governed_by(Rules {
            validate_create: |policy, errors| validate(policy, None, errors),
            validate_update: |new, old, errors| validate(new, Some(old), errors),
            validate_status_update,
            allow_unconditional_update: false,
            ..RULES
        })
        .into()
});

/// `validatingadmissionpolicybindings`
pub static VALIDATING_ADMISSION_POLICY_BINDINGS: Builtin = LazyLock::new(|| {
    let kind = "ValidatingAdmissionPolicyBinding";
    Kind::builtin(GROUP, "v1", kind, "validatingadmissionpolicybindings", DEFINITION)
        .cluster_scoped()
        .in_categories(&["api-extensions"])
        .with_generation()
        .printed(binding_columns(), binding_cells)
        .defaulted(default_binding)
        .governed_by(Rules {
            validate: |binding, errors| {
                let spec = Field::of(binding, "spec");
                validate_binding(&spec, errors);
                validation_actions(&spec.child("validationActions"), errors);
            },
            allow_unconditional_update: false,
            ..RULES
        })
        .into()
});

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const MAX_AUDIT_ANNOTATIONS: usize = 20;
const MAX_VALUE_EXPRESSION_BYTES: usize = 5 * 1024;

fn policy_columns() -> Vec<Column> {
    let validations = "Validations indicates the number of validation rules defined in this configuration";
    let param_kind = "ParamKind specifies the kind of resources used to parameterize this policy";
    vec![
        Column::name(),
        Column::new("Validations", "integer", validations),
        Column::new("ParamKind", "string", param_kind),
        Column::age(),
    ]
}

fn policy_cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let validations = json!(count(&tree, "spec.validations"));
    vec![name(object), validations, param_kind_cell(&tree), age(object, now)]
}

/// The columns of both kinds of binding.
pub(super) fn binding_columns() -> Vec<Column> {
    let policy = "PolicyName indicates the policy definition which the policy binding binded to";
    let param = "ParamRef indicates the param resource which sets the configration param";
    vec![
        Column::name(),
        Column::new("PolicyName", "string", policy),
        Column::new("ParamRef", "string", param),
        Column::age(),
    ]
}

/// Their cells.
pub(super) fn binding_cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let policy = json!(text(&tree, "spec.policyName"));
    vec![name(object), policy, param_ref_cell(&tree), age(object, now)]
}

fn validate(policy: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Field::of(policy, "spec");
    validate_policy(&spec, old, errors);
    let (validations, annotations) = (spec.child("validations"), spec.child("auditAnnotations"));
    if validations.is_zero() && annotations.is_zero() {
        let words = "validations or auditAnnotations must contain at least one item";
        validations.required(words, errors);
        return annotations.required(words, errors);
    }
    let environment = policy_environment(&spec);
    let messages = messages_environment(spec.child("paramKind").is_set(), &environment);
    for validation in validations.items() {
        validate_validation(&validation, &environment, &messages, errors);
    }
    if annotations.items().len() > MAX_AUDIT_ANNOTATIONS {
        let words = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        annotations.invalid(words, errors);
    }
    let mut keys = BTreeSet::new();
    for annotation in annotations.items() {
        validate_audit_annotation(&annotation, text(policy, "metadata.name"), &environment, errors);
        let key = annotation.child("key");
        if !keys.insert(key.text().to_owned()) {
            key.duplicate(errors);
        }
    }
}

fn validate_validation(
    validation: &Field,
    environment: &Environment,
    messages: &Environment,
    errors: &mut FieldErrors,
) {
    let [expression, message, message_expression] =
        ["expression", "message", "messageExpression"].map(|name| validation.child(name));
    match expression.text().trim() {
        "" => expression.required("expression is not specified", errors),
        _ => check(environment, &expression, &[Type::Bool], errors),
    }
    let is_blank = |field: &Field| !field.text().is_empty() && field.text().trim().is_empty();
    if is_blank(&message_expression) {
        message_expression.invalid("must be non-empty if specified", errors);
    } else if !message_expression.is_zero() {
        check(messages, &message_expression, &[Type::String], errors);
    }
    if is_blank(&message) {
        message.invalid("message must be non-empty if specified", errors);
    } else if message.text().trim().contains(['\n', '\r']) {
        message.invalid("message must not contain line breaks", errors);
    }
    validation.child("reason").one_of_if_set(&REASONS, errors);
}

fn validate_audit_annotation(
    annotation: &Field,
    policy: &str,
    environment: &Environment,
    errors: &mut FieldErrors,
) {
    let (key, value) = (annotation.child("key"), annotation.child("valueExpression"));
    let name = json!(format!("{policy}/{}", key.text()));
    let shown = Field { path: key.path.clone(), value: &name };
    shown.invalid_each(qualified_name(shown.text()), errors);
    let expression = value.text().trim();
    if expression.is_empty() {
        value.required("valueExpression is not specified", errors);
    } else if expression.len() > MAX_VALUE_EXPRESSION_BYTES {
        value.required(&format!("must not exceed {MAX_VALUE_EXPRESSION_BYTES} bytes in length"), errors);
    } else {
        check(environment, &value, &[Type::String, Type::Null], errors);
    }
}

fn validation_actions(actions: &Field, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for action in actions.items() {
        if !ACTIONS.contains(&action.text()) {
            action.not_supported(&ACTIONS, errors);
        }
        if !seen.insert(action.text()) {
            action.duplicate(errors);
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let words = "must not contain both Deny and Warn (repeating the same validation failure information \
             in the API response and headers serves no purpose)";
        actions.invalid(words, errors);
    }
    if seen.is_empty() {
        actions.required("at least one validation action is required", errors);
    }
}

fn validate_status_update(new: &Value, _old: &Value, errors: &mut FieldErrors) {
    for warning in Field::of(new, "status.typeChecking").each("expressionWarnings") {
        warning.child("warning").require(errors);
        let field_ref = warning.child("fieldRef");
        if field_ref.text().trim().is_empty() {
            field_ref.required("", errors);
        }
    }
}
