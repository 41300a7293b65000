//! `x-kubernetes-validations` (`schema/cel`): rules are compiled with their schema and run on each write.

use serde_json::Value;

use super::{Structural, child, shown};
use crate::apimachinery::cel::schema::{declared_type, value as cel_value};
use crate::apimachinery::cel::{
    Activation, Budget, Environment, EvaluationError, Program, Type, Value as Cel,
};
use crate::apimachinery::field_error::{ErrorType, FieldErrors};

/// One rule.
#[derive(Debug)]
pub struct CompiledRule {
    rule: String,
    message: String,
    message_expression: Option<Program>,
    reason: ErrorType,
    field_path: String,
    optional_old_self: bool,
    program: Program,
    uses_old_self: bool,
}

/// `self` and `oldSelf`, as a schema declares them; None where rules cannot see anything.
pub fn environment(schema: &Value, is_resource: bool, optional_old_self: bool) -> Option<Environment> {
    let of = declared_type(schema, is_resource)?;
    let old = if optional_old_self { Type::optional(of.clone()) } else { of.clone() };
    Some(Environment::new().with_variable("self", of).with_variable("oldSelf", old))
}

/// The rules of one schema. One that does not compile is left out: the definition was refused, or stems
/// from a data dir of another version.
pub fn compile_rules(schema: &Value, is_resource: bool) -> Vec<CompiledRule> {
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    rules.filter_map(|rule| compile(schema, is_resource, rule)).collect()
}

fn compile(schema: &Value, is_resource: bool, rule: &Value) -> Option<CompiledRule> {
    let text = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
    let optional_old_self = rule["optionalOldSelf"].as_bool().unwrap_or(false);
    let environment = environment(schema, is_resource, optional_old_self)?;
    let program = environment.compile(&text("rule")).ok()?;
    let message_expression = rule["messageExpression"].as_str().filter(|text| !text.trim().is_empty());
    Some(CompiledRule {
        rule: text("rule"),
        message: text("message"),
        message_expression: message_expression.and_then(|text| environment.compile(text).ok()),
        reason: reason(&text("reason")),
        field_path: text("fieldPath"),
        optional_old_self,
        uses_old_self: program.mentions("oldSelf"),
        program,
    })
}

fn reason(name: &str) -> ErrorType {
    match name {
        "FieldValueRequired" => ErrorType::Required,
        "FieldValueForbidden" => ErrorType::Forbidden,
        "FieldValueDuplicate" => ErrorType::Duplicate,
        _ => ErrorType::Invalid,
    }
}

/// The budget is spent, or a rule cost too much: no more rules.
struct Stopped;

impl Structural {
    /// Runs the rules of a value and of everything in it. `old` is the value that stood in the same place
    /// before, on an update and where that can be told.
    pub fn validate_rules(&self, value: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
        let mut run = Run { budget: Budget::new(Budget::PER_REQUEST), errors };
        // It has said so already.
        let _ = self.run_rules("", true, value, old, &mut run);
    }

    /// Members of a map are shown in brackets, fields behind a dot.
    pub(super) fn path_of(&self, path: &str, name: &str) -> String {
        match self.properties.contains_key(name) {
            true => child(path, name),
            false => format!("{path}[{name}]"),
        }
    }

    fn run_rules(
        &self,
        path: &str,
        is_resource: bool,
        value: &Value,
        old: Option<&Value>,
        run: &mut Run,
    ) -> Result<(), Stopped> {
        if let Some(source) = &self.source {
            run.rules(self, source, path, is_resource, value, old)?;
        }
        for all_of in self.quantifiers.all_of.iter().filter(|schema| schema.has_rules()) {
            all_of.run_rules(path, is_resource, value, old, run)?;
        }
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    let Some(schema) = self.member(name) else { continue };
                    let old = old.filter(|_| self.map_type != "atomic").and_then(|old| old.get(name));
                    schema.run_rules(&self.path_of(path, name), schema.embedded_resource, value, old, run)?;
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return Ok(()) };
                for (at, item) in items.iter().enumerate() {
                    let old = self.correlated(item, old);
                    schema.run_rules(&format!("{path}[{at}]"), schema.embedded_resource, item, old, run)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// One walk through an object.
struct Run<'a> {
    budget: Budget,
    errors: &'a mut FieldErrors,
}

impl Run<'_> {
    fn rules(
        &mut self,
        schema: &Structural,
        source: &Value,
        path: &str,
        is_resource: bool,
        value: &Value,
        old: Option<&Value>,
    ) -> Result<(), Stopped> {
        let unchanged = old == Some(value);
        let due = |rule: &&CompiledRule| match (rule.uses_old_self, old) {
            (true, None) => rule.optional_old_self,
            (true, Some(_)) => true,
            (false, _) => !unchanged,
        };
        let due: Vec<&CompiledRule> = schema.rules.iter().filter(due).collect();
        if due.is_empty() {
            return Ok(());
        }
        let current = cel_value(source, is_resource, value);
        let before = old.map(|old| cel_value(source, is_resource, old)).transpose();
        let (current, before) = match (current, before) {
            (Ok(current), Ok(before)) => (current, before),
            // The schema's own validation says what is wrong with it.
            _ => return Ok(()),
        };
        for rule in due {
            let activation = activation(rule, &current, before.as_ref());
            self.rule(schema, rule, path, value, &activation)?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        schema: &Structural,
        rule: &CompiledRule,
        path: &str,
        value: &Value,
        activation: &Activation,
    ) -> Result<(), Stopped> {
        let mut budget = Budget::per_call(&self.budget);
        let outcome = rule.program.evaluate(activation, &mut budget);
        let type_name = Value::from(schema.type_name.as_str());
        let errors = &mut *self.errors;
        let mut refuse = |detail: String| errors.invalid(shown(path), &type_name, detail);
        match outcome {
            Ok(Cel::Bool(true)) => {}
            Ok(_) => {
                let detail = rule.message(activation, &mut budget);
                let at = format!("{path}{}", rule.field_path);
                rule.refuse(shown(at.trim_start_matches('.')), value, &detail, errors);
            }
            Err(EvaluationError::CostLimitExceeded) => {
                let detail = format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules will be \
                     run due to call cost exceeds limit for rule: {}",
                    rule.shown()
                );
                refuse(detail);
                return Err(Stopped);
            }
            Err(EvaluationError::NoSuchOverload) => {
                let detail = format!(
                    "'no such overload': call arguments did not match a supported operator, function or macro \
                     signature for rule: {}",
                    rule.shown()
                );
                refuse(detail);
            }
            Err(error) => {
                refuse(format!("{error} evaluating rule: {}", rule.shown()));
            }
        }
        if self.budget.settle(&budget).is_err() {
            let detail = "validation failed due to running out of cost budget, no further validation rules \
                          will be run";
            self.errors.invalid(shown(path), &type_name, detail);
            return Err(Stopped);
        }
        Ok(())
    }
}

fn activation(rule: &CompiledRule, current: &Cel, before: Option<&Cel>) -> Activation {
    let activation = Activation::new().with("self", current.clone());
    match (rule.optional_old_self, before) {
        (true, before) => activation.with("oldSelf", Cel::Optional(before.cloned().map(std::sync::Arc::new))),
        (false, Some(before)) => activation.with("oldSelf", before.clone()),
        (false, None) => activation,
    }
}

impl CompiledRule {
    /// What the rule says when it does not hold.
    fn message(&self, activation: &Activation, budget: &mut Budget) -> String {
        let expression = self.message_expression.as_ref();
        let text = expression.and_then(|program| program.evaluate(activation, budget).ok());
        let text = text.as_ref().and_then(Cel::as_str).map(str::trim);
        match text.filter(|text| !text.is_empty() && !text.contains('\n')) {
            Some(text) => text.to_owned(),
            None if self.message.trim().is_empty() => format!("failed rule: {}", self.rule.trim()),
            None => self.message.trim().to_owned(),
        }
    }

    /// Objects and lists are not shown, and a duplicate has no more to say (`fieldErrorForReason`).
    fn refuse(&self, path: &str, value: &Value, detail: &str, errors: &mut FieldErrors) {
        let is_large = value.is_object() || value.is_array();
        match self.reason {
            ErrorType::Required => errors.required(path, detail),
            ErrorType::Forbidden => errors.forbidden(path, detail),
            ErrorType::Duplicate if is_large => errors.push(path, ErrorType::Duplicate, String::new(), ""),
            ErrorType::Duplicate => errors.duplicate(path, value),
            _ if is_large => errors.push(path, ErrorType::Invalid, String::new(), detail),
            _ => errors.invalid(path, value, detail),
        }
    }

    fn shown(&self) -> &str {
        if self.message.trim().is_empty() { self.rule.trim() } else { self.message.trim() }
    }
}
