//! Running the rules of a schema (`schema/cel`), on each write.

use serde_json::Value;

use super::compiled_rule::CompiledRule;
use super::{Structural, child, shown};
use apimachinery::field_error::{ErrorType, FieldErrors};
use cel::schema::value as cel_value;
use cel::{Activation, Budget, EvaluationError, Program, Value as Cel};
use golang::go_text::quote;

const OUT_OF_BUDGET: &str =
    "failed due to running out of cost budget, no further validation rules will be run";
const PER_CALL: &str = "no further validation rules will be run due to call cost exceeds limit for ";
/// `MaxEvaluatedMessageExpressionSizeBytes`
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

/// The budget is spent, or a rule cost too much: no more rules.
struct RuleStopped;

impl Structural {
    /// Runs the rules of a value and of everything in it. `old` is the value that stood in the same place
    /// before, on an update and where that can be told.
    pub fn validate_rules(&self, value: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
        let mut run = RuleRun { budget: Budget::new(Budget::PER_REQUEST), errors, only_kept: false };
        // It has said so already.
        let _ = self.run_rules("", true, value, old, false, &mut run);
    }

    /// What rules would say of parts that did not change: warnings.
    pub fn kept_mistakes(&self, value: &Value, old: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        let budget = Budget::new(Budget::PER_REQUEST);
        let mut run = RuleRun { budget, errors: &mut errors, only_kept: true };
        // Whoever validates has said so.
        let _ = self.run_rules("", true, value, Some(old), false, &mut run);
        errors.0.iter().map(ToString::to_string).collect()
    }

    /// Members of a map are shown in brackets, fields behind a dot.
    pub(super) fn path_of(&self, path: &str, name: &str) -> String {
        if self.properties.contains_key(name) { child(path, name) } else { format!("{path}[{name}]") }
    }

    fn run_rules(
        &self,
        path: &str,
        is_resource: bool,
        value: &Value,
        old: Option<&Value>,
        kept: bool,
        run: &mut RuleRun,
    ) -> Result<(), RuleStopped> {
        if !self.has_rules() {
            return Ok(());
        }
        // What cannot be told apart is as unchanged as what it is part of (`shouldRatchetError`).
        let kept = kept || old == Some(value);
        if let Some(source) = &self.source {
            run.rules(self, source, path, &SeenValues { is_resource, value, old, kept })?;
        }
        for all_of in self.quantifiers.all_of.iter().filter(|schema| schema.has_rules()) {
            all_of.run_rules(path, is_resource, value, old, kept, run)?;
        }
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    let Some(schema) = self.member(name) else { continue };
                    let old = old.filter(|_| self.map_type != "atomic").and_then(|old| old.get(name));
                    let path = self.path_of(path, name);
                    schema.run_rules(&path, schema.embedded_resource, value, old, kept, run)?;
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return Ok(()) };
                let correlation = self.correlation(old);
                for (at, item) in items.iter().enumerate() {
                    let old = correlation.find(item);
                    let path = format!("{path}[{at}]");
                    schema.run_rules(&path, schema.embedded_resource, item, old, kept, run)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// One walk through an object.
struct RuleRun<'a> {
    budget: Budget,
    errors: &'a mut FieldErrors,
    /// Looks for what is wrong with what did not change, and for nothing else.
    only_kept: bool,
}

/// A value, and what it was.
struct SeenValues<'a> {
    is_resource: bool,
    value: &'a Value,
    old: Option<&'a Value>,
    /// It is what it was, or part of what is.
    kept: bool,
}

impl RuleRun<'_> {
    fn rules(
        &mut self,
        schema: &Structural,
        source: &Value,
        path: &str,
        seen: &SeenValues,
    ) -> Result<(), RuleStopped> {
        let SeenValues { is_resource, value, old, kept } = *seen;
        if !schema.rules.is_empty() && self.budget.is_spent() {
            return self.stop(schema, path, &format!("validation {OUT_OF_BUDGET}"));
        }
        let only_kept = self.only_kept;
        let due = |rule: &&CompiledRule| match (rule.uses_old_self, old) {
            (true, None) => rule.optional_old_self && !only_kept,
            (true, Some(_)) => !only_kept,
            (false, _) => kept || !only_kept,
        };
        let due: Vec<&CompiledRule> = schema.rules.iter().filter(due).collect();
        if due.is_empty() {
            return Ok(());
        }
        let current = cel_value(source, is_resource, value);
        let before = old.map(|old| cel_value(source, is_resource, old));
        for rule in due {
            let activation = activation(rule, &current, before.as_ref());
            self.rule(schema, rule, path, seen, &activation)?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        schema: &Structural,
        rule: &CompiledRule,
        path: &str,
        seen: &SeenValues,
        activation: &Activation,
    ) -> Result<(), RuleStopped> {
        let mut own = Budget::new(Budget::PER_CALL);
        let outcome = rule.program.evaluate(activation, &mut own);
        if self.budget.settle(&own).is_err() {
            return self.stop(schema, path, &format!("validation {OUT_OF_BUDGET}"));
        }
        match outcome {
            Ok(Cel::Bool(true)) => {}
            Err(_) if self.only_kept => {}
            Ok(_) if seen.kept && !rule.uses_old_self && !self.only_kept => {}
            Ok(_) => {
                let at = format!("{path}{}", rule.field_path);
                let at = at.trim_start_matches('.');
                match rule.message(activation, &mut self.budget) {
                    Ok(detail) => rule.refuse(shown(at), seen.value, &detail, self.errors),
                    Err(detail) => return self.stop(schema, at, &detail),
                }
            }
            Err(EvaluationError::CostLimitExceeded) => {
                let detail =
                    format!("'{}': {PER_CALL}rule: {}", EvaluationError::CostLimitExceeded, rule.shown());
                return self.stop(schema, path, &detail);
            }
            Err(EvaluationError::NoSuchOverload) => {
                let detail = format!(
                    "'no such overload': call arguments did not match a supported operator, function or macro \
                     signature for rule: {}",
                    rule.shown()
                );
                self.refuse(schema, path, &detail);
            }
            Err(error) => self.refuse(schema, path, &format!("{error} evaluating rule: {}", rule.shown())),
        }
        Ok(())
    }

    /// Of a value its type is shown.
    fn refuse(&mut self, schema: &Structural, path: &str, detail: &str) {
        self.errors.invalid(shown(path), &Value::from(schema.type_name.as_str()), detail);
    }

    fn stop(&mut self, schema: &Structural, path: &str, detail: &str) -> Result<(), RuleStopped> {
        if !self.only_kept {
            self.refuse(schema, path, detail);
        }
        Err(RuleStopped)
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

/// `evalMessageExpression`: a line of text that is not too long.
fn evaluate_message(
    expression: &str,
    program: &Program,
    activation: &Activation,
    budget: &mut Budget,
) -> Result<Option<String>, String> {
    let mut own = Budget::new(Budget::PER_CALL);
    let outcome = program.evaluate(activation, &mut own);
    if budget.settle(&own).is_err() {
        return Err(format!("messageExpression evaluation {OUT_OF_BUDGET}"));
    }
    if outcome == Err(EvaluationError::CostLimitExceeded) {
        return Err(format!("{PER_CALL}messageExpression: {}", quote(expression)));
    }
    let text = outcome.ok();
    let text = text.as_ref().and_then(Cel::as_str).map(str::trim);
    let is_fit = |text: &&str| !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
    Ok(text.filter(is_fit).map(str::to_owned))
}

impl CompiledRule {
    /// What the rule says when it does not hold; the error is why nothing goes on.
    fn message(&self, activation: &Activation, budget: &mut Budget) -> Result<String, String> {
        let made = match &self.message_expression {
            Some((expression, program)) => evaluate_message(expression, program, activation, budget)?,
            None => None,
        };
        Ok(made.unwrap_or_else(|| match self.message.trim() {
            "" => format!("failed rule: {}", self.rule.trim()),
            message => message.to_owned(),
        }))
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
