//! One MutatingAdmissionPolicy, compiled, and what it makes of an object (`policy/mutating/patch`).

use std::sync::Arc;

use serde_json::Value as Json;

use super::params::ParamKind;
use crate::admission::cel::{CelVariables, MatchConditions, Watched, run};
use crate::admission::webhook::Criteria;
use apimachinery::managed_fields::{SchemaType, merge, validate};
use apimachinery::object::Object;
use apimachinery::patch::{PatchType, TEST_FAILED, apply};
use apimachinery::schema::Schema;
use apis::admissionregistration::expressions::{
    Compiled, apply_configuration_type, compile, environment, json_patch_type, with_patch_types,
    with_variables,
};
use apis::tree::{at, items, text};
use cel::conditions::ExpressionError;
use cel::{Activation, Budget, Value};

golang::text_error! {
    /// Why a mutation makes nothing of an object; in upstream's words.
    pub(super) struct MutationError;
}

/// A policy.
pub(super) struct MutatingPolicy {
    /// Its name.
    pub name: String,
    /// Which requests it is about.
    pub criteria: Criteria,
    /// The kind of its parameters.
    pub param_kind: Option<ParamKind>,
    /// What goes wrong refuses nothing.
    pub fails_open: bool,
    /// It is asked again when somebody behind it has changed the object.
    pub is_reinvoked: bool,
    conditions: MatchConditions,
    variables: Arc<[Compiled]>,
    mutations: Vec<Mutation>,
}

enum Mutation {
    /// An object that is laid over the other, field by field.
    ApplyConfiguration(Compiled),
    /// A list of operations.
    JsonPatch(Compiled),
}

impl MutatingPolicy {
    /// Compiles a policy; what does not compile fails when it is asked for.
    pub(super) fn new(object: &Object) -> MutatingPolicy {
        let tree = object.to_value();
        let spec = at(&tree, "spec");
        let param_kind = ParamKind::of(spec);
        let has_params = param_kind.is_some();
        let (declared, variables) = with_variables(environment(has_params, true), items(spec, "variables"));
        let declared = with_patch_types(declared);
        let mutation = |mutation: &Json| match text(mutation, "patchType") {
            "JSONPatch" => {
                let expression = text(mutation, "jsonPatch.expression");
                let program = compile(&declared, expression, &[json_patch_type()]);
                Mutation::JsonPatch((expression.trim().to_owned(), program))
            }
            _ => {
                let expression = text(mutation, "applyConfiguration.expression");
                let program = compile(&declared, expression, &[apply_configuration_type()]);
                Mutation::ApplyConfiguration((expression.trim().to_owned(), program))
            }
        };
        let fails_open = text(spec, "failurePolicy") == "Ignore";
        MutatingPolicy {
            name: object.metadata.name.clone(),
            criteria: Criteria::of_resources(at(spec, "matchConstraints")),
            conditions: MatchConditions::new(items(spec, "matchConditions"), fails_open, has_params),
            mutations: items(spec, "mutations").iter().map(mutation).collect(),
            is_reinvoked: text(spec, "reinvocationPolicy") == "IfNeeded",
            variables: variables.into(),
            param_kind,
            fails_open,
        }
    }

    /// Whether its conditions are met.
    ///
    /// # Errors
    /// What went wrong.
    pub(super) fn is_about(
        &self,
        activation: &Activation,
        watched: Watched,
    ) -> Result<bool, ExpressionError> {
        self.conditions.evaluate(activation, watched)
    }

    /// How many mutations there are; each sees what those before it have made.
    pub(super) fn len(&self) -> usize {
        self.mutations.len()
    }

    /// What one mutation makes of an object.
    ///
    /// # Errors
    /// What went wrong.
    pub(super) fn mutate(
        &self,
        index: usize,
        activation: Activation,
        object: &Json,
        kind: Option<SchemaType>,
        budget: &mut Budget,
    ) -> Result<Json, MutationError> {
        let activation = CelVariables::add(&self.variables, activation);
        match &self.mutations[index] {
            Mutation::JsonPatch((expression, program)) => {
                let operations = run(program, expression, &activation, budget).map_err(String::from)?;
                let operations = to_json(&operations)?.to_string();
                let patched =
                    apply(&Schema::default(), PatchType::Json, object.clone(), operations.as_bytes());
                match patched {
                    Ok(patched) => Ok(patched.value),
                    // It was not meant for this object.
                    Err(error) if error.to_string().ends_with(TEST_FAILED) => Ok(object.clone()),
                    Err(error) => Err(format!("JSON Patch: {error}").into()),
                }
            }
            Mutation::ApplyConfiguration((expression, program)) => {
                let configuration = run(program, expression, &activation, budget).map_err(String::from)?;
                let configuration = to_json(&configuration)?;
                if let Some(path) = names_the_object(&configuration) {
                    return Err(format!(
                        "error applying patch: {path} may not be changed by an ApplyConfiguration"
                    )
                    .into());
                }
                Ok(lay_over(object, &configuration, kind)?)
            }
        }
    }
}

/// What the configuration says counts, everything else stays, as an apply does it; of a kind without a schema
/// every list is one value.
fn lay_over(object: &Json, configuration: &Json, kind: Option<SchemaType>) -> Result<Json, String> {
    let kind = kind.unwrap_or(SchemaType::Custom(&Schema::FREE));
    validate(kind, configuration).map_err(|error| {
        format!("error applying patch: failed to convert patch object to typed object: {error}")
    })?;
    merge(kind, object, configuration).map_err(|error| format!("error applying patch: {error}"))
}

/// What says which object it is stays.
fn names_the_object(configuration: &Json) -> Option<&'static str> {
    let fields = [("apiVersion", "apiVersion"), ("kind", "kind"), ("metadata.name", "metadata.name")];
    fields.into_iter().find(|(path, _)| !at(configuration, path).is_null()).map(|(_, shown)| shown)
}

fn to_json(value: &Value) -> Result<Json, String> {
    value.to_json().ok_or_else(|| format!("cannot convert {} to JSON", value.type_name()))
}
