//! MutatingAdmissionPolicy: what is changed before a write, in CEL; and where it applies.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::expressions::{apply_configuration_type, check, json_patch_type, with_patch_types};
use super::group::{DEFINITION, GROUP};
use super::policy::{
    default_binding, default_policy, param_kind_cell, policy_environment, validate_binding, validate_policy,
};
use super::validating_admission_policy::{binding_cells, binding_columns};
use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use cel::Environment;

/// `mutatingadmissionpolicies`
pub static MUTATING_ADMISSION_POLICIES: Builtin = LazyLock::new(|| {
    let kind = "MutatingAdmissionPolicy";
    Kind::builtin(GROUP, "v1", kind, "mutatingadmissionpolicies", DEFINITION)
        .cluster_scoped()
        .kept_as("v1beta1")
        .in_categories(&["api-extensions"])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(default_policy)
        .governed_by(Rules {
            validate_create: |policy, errors| validate(policy, None, errors),
            validate_update: |new, old, errors| validate(new, Some(old), errors),
            allow_unconditional_update: false,
            ..RULES
        })
        .into()
});

/// `mutatingadmissionpolicybindings`
pub static MUTATING_ADMISSION_POLICY_BINDINGS: Builtin = LazyLock::new(|| {
    let kind = "MutatingAdmissionPolicyBinding";
    Kind::builtin(GROUP, "v1", kind, "mutatingadmissionpolicybindings", DEFINITION)
        .cluster_scoped()
        .kept_as("v1beta1")
        .in_categories(&["api-extensions"])
        .with_generation()
        .printed(binding_columns(), binding_cells)
        .defaulted(default_binding)
        .governed_by(Rules {
            validate: |binding, errors| validate_binding(&Field::of(binding, "spec"), errors),
            allow_unconditional_update: false,
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let mutations = "Mutation indicates the number of mutations rules defined in this configuration";
    let param_kind = "ParamKind specifies the kind of resources used to parameterize this policy";
    vec![
        Column::name(),
        Column::new("Mutations", "integer", mutations),
        Column::new("ParamKind", "string", param_kind),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let mutations = json!(count(&tree, "spec.mutations"));
    vec![name(object), mutations, param_kind_cell(&tree), age(object, now)]
}

fn validate(policy: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Field::of(policy, "spec");
    validate_policy(&spec, old, errors);
    let mutations = spec.child("mutations");
    if mutations.is_zero() {
        mutations.required("mutations must contain at least one item", errors);
    }
    let environment = with_patch_types(policy_environment(&spec));
    for mutation in mutations.items() {
        validate_mutation(&mutation, &environment, errors);
    }
    spec.child("reinvocationPolicy").one_of(&["IfNeeded", "Never"], errors);
}

fn validate_mutation(mutation: &Field, environment: &Environment, errors: &mut FieldErrors) {
    let (apply, json_patch) = (mutation.child("applyConfiguration"), mutation.child("jsonPatch"));
    let patch_type = mutation.child("patchType");
    let (wanted, other, gives) = match patch_type.text() {
        "" => return patch_type.required("", errors),
        "ApplyConfiguration" => (apply, json_patch, apply_configuration_type()),
        "JSONPatch" => (json_patch, apply, json_patch_type()),
        _ => return patch_type.not_supported(&["ApplyConfiguration", "JSONPatch"], errors),
    };
    if other.is_set() {
        let words = format!("must not be specified when patchType is {}", patch_type.text());
        other.invalid(words, errors);
    }
    if !wanted.is_set() {
        return wanted
            .required(&format!("must be specified when patchType is {}", patch_type.text()), errors);
    }
    let expression = wanted.child("expression");
    match expression.text().trim() {
        "" => expression.required("expression is not specified", errors),
        _ => check(environment, &expression, &[gives], errors),
    }
}
