//! One ValidatingAdmissionPolicy, compiled, and what it says of one request
//! (`policy/validating.Validator`).

use std::sync::Arc;

use serde_json::Value as Json;

use super::params::ParamKind;
use crate::admission::cel::{CelVariables, MatchConditions, OUT_OF_BUDGET, Watched, run};
use crate::admission::webhook::Criteria;
use apimachinery::object::Object;
use apis::admissionregistration::expressions::{
    Compiled, compile, environment, messages_environment, with_variables,
};
use apis::tree::{at, items, text};
use cel::{Activation, Budget, Type, Value};

/// A message that an expression makes may be so long; else it is not used.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

/// A policy.
pub(super) struct ValidatingPolicy {
    /// Its name.
    pub name: String,
    /// Which requests it is about.
    pub criteria: Criteria,
    /// The kind of its parameters.
    pub param_kind: Option<ParamKind>,
    /// What goes wrong refuses nothing.
    pub fails_open: bool,
    conditions: MatchConditions,
    variables: Arc<[Compiled]>,
    validations: Vec<PolicyValidation>,
    annotations: Vec<(String, Compiled)>,
}

struct PolicyValidation {
    check: Compiled,
    message: String,
    message_expression: Option<Compiled>,
    reason: String,
}

/// What one validation says.
#[derive(Debug, PartialEq)]
pub(super) enum PolicyDecision {
    /// It goes on.
    Admit,
    /// It does not: the reason, and a message.
    Deny(String, String),
}

/// What a policy says of a request, with one parameter.
#[derive(Debug, Default)]
pub(super) struct PolicyOutcome {
    /// One for each validation.
    pub decisions: Vec<PolicyDecision>,
    /// For the audit event.
    pub annotations: Vec<(String, String)>,
    /// Annotations that could not be made, where failures close.
    pub annotation_errors: Vec<String>,
}

impl ValidatingPolicy {
    /// Compiles a policy; what does not compile fails when it is asked for.
    pub(super) fn new(object: &Object) -> ValidatingPolicy {
        let tree = object.to_value();
        let spec = at(&tree, "spec");
        let param_kind = ParamKind::of(spec);
        let has_params = param_kind.is_some();
        let (declared, variables) = with_variables(environment(has_params, true), items(spec, "variables"));
        let messages = messages_environment(has_params, &declared);
        let fails_open = text(spec, "failurePolicy") == "Ignore";
        let program = |expression: &str, wanted: &[Type]| {
            (expression.trim().to_owned(), compile(&declared, expression, wanted))
        };
        let validation = |validation: &Json| PolicyValidation {
            check: program(text(validation, "expression"), &[Type::Bool]),
            message: text(validation, "message").trim().into(),
            message_expression: Some(text(validation, "messageExpression"))
                .filter(|expression| !expression.is_empty())
                .map(|expression| (expression.to_owned(), compile(&messages, expression, &[Type::String]))),
            reason: text(validation, "reason").into(),
        };
        let annotation = |annotation: &Json| {
            let value = text(annotation, "valueExpression");
            (text(annotation, "key").to_owned(), program(value, &[Type::String, Type::Null]))
        };
        ValidatingPolicy {
            name: object.metadata.name.clone(),
            criteria: Criteria::of_resources(at(spec, "matchConstraints")),
            conditions: MatchConditions::new(items(spec, "matchConditions"), fails_open, has_params),
            validations: items(spec, "validations").iter().map(validation).collect(),
            annotations: items(spec, "auditAnnotations").iter().map(annotation).collect(),
            variables: variables.into(),
            param_kind,
            fails_open,
        }
    }

    /// Evaluates everything.
    pub(super) fn evaluate(&self, activation: Activation, watched: Watched) -> PolicyOutcome {
        match self.conditions.evaluate(&activation, watched) {
            Ok(true) => {}
            Ok(false) => return PolicyOutcome::default(),
            Err(why) => {
                return PolicyOutcome {
                    decisions: vec![self.failed(why.into())],
                    ..PolicyOutcome::default()
                };
            }
        }
        let activation = CelVariables::add(&self.variables, activation);
        let mut budget = Budget::new(Budget::PER_REQUEST);
        let checks = self.validations.iter().map(|own| self.decide(own, &activation, &mut budget));
        let mut outcome = PolicyOutcome { decisions: checks.collect(), ..PolicyOutcome::default() };
        if budget.is_spent() {
            // It says nothing else.
            return PolicyOutcome {
                decisions: vec![self.failed(OUT_OF_BUDGET.into())],
                ..PolicyOutcome::default()
            };
        }
        self.annotate(&activation, &mut outcome);
        outcome
    }

    fn failed(&self, why: String) -> PolicyDecision {
        if self.fails_open { PolicyDecision::Admit } else { PolicyDecision::Deny(String::new(), why) }
    }

    fn decide(
        &self,
        validation: &PolicyValidation,
        activation: &Activation,
        budget: &mut Budget,
    ) -> PolicyDecision {
        let (expression, program) = &validation.check;
        match run(program, expression, activation, budget) {
            Err(why) => self.failed(why.into()),
            Ok(Value::Bool(true)) => PolicyDecision::Admit,
            Ok(_) => {
                let reason = if validation.reason.is_empty() { "Invalid" } else { &validation.reason };
                PolicyDecision::Deny(reason.into(), self.message(validation, activation, budget))
            }
        }
    }

    /// What the expression makes, if that is a line of text; else the message; else the expression.
    fn message(&self, validation: &PolicyValidation, activation: &Activation, budget: &mut Budget) -> String {
        if let Some((expression, program)) = &validation.message_expression
            && let Ok(Value::String(text)) = run(program, expression, activation, budget)
        {
            let text = text.trim();
            if !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n') {
                return text.to_owned();
            }
        }
        match validation.message.as_str() {
            "" => format!("failed expression: {}", validation.check.0),
            message => message.to_owned(),
        }
    }

    fn annotate(&self, activation: &Activation, outcome: &mut PolicyOutcome) {
        let mut budget = Budget::new(Budget::PER_REQUEST);
        for (key, (expression, program)) in &self.annotations {
            match run(program, expression, activation, &mut budget) {
                Ok(Value::String(value)) if !value.trim().is_empty() => {
                    outcome.annotations.push((key.clone(), value.trim().to_owned()));
                }
                Ok(_) => {}
                Err(why) if !self.fails_open => outcome.annotation_errors.push(why.into()),
                Err(_) => {}
            }
        }
    }
}
