//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy: admission written as expressions.
//!
//! What is said of expressions here is that they are there; whether they compile is admission's.

use std::sync::LazyLock;

use super::match_resources::*;
use super::{DEFINITIONS, GROUP};
use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::gvk::GroupVersion;
use crate::apimachinery::names::{path_segment_name, qualified_name};
use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::name;
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use crate::apis::validation::Field;
use serde_json::Value;

/// `validatingadmissionpolicies`
pub static VALIDATING_ADMISSION_POLICIES: Builtin = LazyLock::new(|| {
    kind("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .with(&[Subresource::Status])
        .printed(columns("Validations", "validation"), |object, now| cells(object, "spec.validations", now))
        .defaulted(defaults)
        .governed_by(Rules { validate: validate_validating, ..RULES })
        .into()
});

/// `mutatingadmissionpolicies`
pub static MUTATING_ADMISSION_POLICIES: Builtin = LazyLock::new(|| {
    kind("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .printed(columns("Mutations", "mutation"), |object, now| cells(object, "spec.mutations", now))
        .defaulted(defaults)
        .governed_by(Rules { validate: validate_mutating, ..RULES })
        .into()
});

fn kind(kind: &str, plural: &str) -> Kind {
    Kind::builtin(GROUP, "v1", kind, plural, DEFINITIONS)
        .cluster_scoped()
        .in_categories(&["api-extensions"])
        .with_generation()
}

fn columns(heading: &str, rule: &str) -> Vec<Column> {
    let counted = format!("{heading} indicates the number of {rule} rules defined in this configuration");
    let kind = "ParamKind specifies the kind of resources used to parameterize this policy";
    vec![
        Column::name(),
        Column::new(heading, "integer", &counted),
        Column::new("ParamKind", "string", kind),
        Column::age(),
    ]
}

fn cells(object: &Object, rules: &str, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let parameter = at(&tree, "spec.paramKind");
    let parameter = match parameter.is_null() {
        true => "<unset>".to_owned(),
        false => format!("{}/{}", text(parameter, "apiVersion"), text(parameter, "kind")),
    };
    vec![name(object), count(&tree, rules).into(), parameter.into(), age(object, now)]
}

fn defaults(policy: &mut Value) {
    set_if_unset(policy, "spec.failurePolicy", "Fail");
    default_match_resources(policy, "spec.matchConstraints");
}

fn validate_validating(policy: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(policy, "spec");
    validate_common(&spec, errors);
    let (validations, annotations) = (spec.child("validations"), spec.child("auditAnnotations"));
    if validations.is_zero() && annotations.is_zero() {
        let words = "validations or auditAnnotations must contain at least one item";
        validations.required(words, errors);
        annotations.required(words, errors);
    }
    validations.items().iter().for_each(|validation| validate_validation(validation, errors));
    for (at, annotation) in annotations.items().iter().enumerate() {
        let (key, value) = (annotation.child("key"), annotation.child("valueExpression"));
        match key.text() {
            "" => key.required("", errors),
            text => {
                let whole = format!("{}/{text}", crate::apis::tree::text(policy, "metadata.name"));
                key.invalid_each(qualified_name(&whole), errors);
            }
        }
        if value.text().trim().is_empty() {
            value.required("", errors);
        }
        let earlier = &annotations.items()[..at];
        if earlier.iter().any(|other| other.child("key").text() == key.text()) {
            key.duplicate(errors);
        }
    }
}

fn validate_mutating(policy: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(policy, "spec");
    validate_common(&spec, errors);
    let mutations = spec.child("mutations");
    if mutations.is_zero() {
        mutations.required("mutations must contain at least one item", errors);
    }
    for mutation in mutations.items() {
        validate_mutation(&mutation, errors);
    }
    let reinvocation = spec.child("reinvocationPolicy");
    if reinvocation.is_zero() {
        reinvocation.required("", errors);
    } else {
        reinvocation.one_of_if_set(&["IfNeeded", "Never"], errors);
    }
}

fn validate_common(spec: &Field, errors: &mut FieldErrors) {
    failure_policy(&spec.child("failurePolicy"), errors);
    let parameter = spec.child("paramKind");
    if parameter.is_set() {
        validate_param_kind(&parameter, errors);
    }
    let constraints = spec.child("matchConstraints");
    match constraints.is_set() {
        false => constraints.required("", errors),
        true => {
            match_resources(&constraints, errors);
            if constraints.child("resourceRules").is_zero() {
                constraints.child("resourceRules").required("", errors);
            }
        }
    }
    match_conditions(&spec.child("matchConditions"), errors);
    let variables = spec.each("variables");
    for (at, variable) in variables.iter().enumerate() {
        let (name, expression) = (variable.child("name"), variable.child("expression"));
        if name.is_zero() {
            name.required("name is not specified", errors);
        } else if !is_identifier(name.text()) {
            name.invalid("name is not a valid CEL identifier", errors);
        }
        if variables[..at].iter().any(|other| other.child("name").text() == name.text()) {
            name.duplicate(errors);
        }
        if expression.text().trim().is_empty() {
            expression.required("expression is not specified", errors);
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

fn validate_param_kind(parameter: &Field, errors: &mut FieldErrors) {
    let (version, kind) = (parameter.child("apiVersion"), parameter.child("kind"));
    match version.text() {
        "" => version.required("", errors),
        text if GroupVersion::parse(text).is_none() => {
            version.invalid(format!("unexpected GroupVersion string: {text}"), errors);
        }
        _ => {}
    }
    match kind.text() {
        "" => kind.required("", errors),
        text => {
            let wrong = crate::apimachinery::names::dns1035_label(&text.to_lowercase());
            if !wrong.is_empty() {
                let words = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
                kind.invalid(words, errors);
            }
        }
    }
}

fn validate_validation(validation: &Field, errors: &mut FieldErrors) {
    let (expression, message) = (validation.child("expression"), validation.child("message"));
    if expression.text().trim().is_empty() {
        expression.required("expression is not specified", errors);
    }
    let said = message.text();
    if !said.is_empty() && said.trim().is_empty() {
        message.invalid("message must be non-empty if specified", errors);
    } else if said.trim().contains('\n') {
        message.invalid("message must not contain line breaks", errors);
    } else if said.is_empty() && expression.text().trim().contains('\n') {
        let words = "message must be specified if expression contains line breaks";
        errors.required(message.path.as_str(), words);
    }
    let computed = validation.child("messageExpression");
    if computed.is_set() && computed.text().trim().is_empty() && !computed.text().is_empty() {
        computed.invalid("must be non-empty if specified", errors);
    }
    let reason = validation.child("reason");
    const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
    if reason.is_set() && !REASONS.contains(&reason.text()) {
        reason.not_supported(REASONS, errors);
    }
}

fn validate_mutation(mutation: &Field, errors: &mut FieldErrors) {
    let kind = mutation.child("patchType");
    let (apply, patch) = (mutation.child("applyConfiguration"), mutation.child("jsonPatch"));
    let (wanted, other) = match kind.text() {
        "ApplyConfiguration" => (&apply, &patch),
        "JSONPatch" => (&patch, &apply),
        "" => return kind.required("", errors),
        _ => return kind.not_supported(&["ApplyConfiguration", "JSONPatch"], errors),
    };
    let word = kind.text();
    match wanted.is_set() {
        false => {
            wanted.required(&format!("must be specified when patchType is {word}"), errors);
        }
        true if wanted.child("expression").text().trim().is_empty() => {
            wanted.child("expression").required("expression is not specified", errors);
        }
        true => {}
    }
    if other.is_set() {
        other.forbidden(format!("must not be specified when patchType is {word}"), errors);
    }
}

/// `ValidateName` of what a binding refers to.
pub(super) fn policy_name(name: &Field, errors: &mut FieldErrors) {
    if name.is_zero() {
        return name.required("", errors);
    }
    name.invalid_each(path_segment_name(name.text()), errors);
}
