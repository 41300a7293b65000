//! Runs a checked expression (`interpreter/interpreter.go`).
//!
//! Names, and what is selected of them, are attributes: one is charged for the attribute, and one for each
//! step. Where an attribute is only part of another, or a branch of `?:`, it is resolved without that charge.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::activation::Activation;
use super::ast::{Expr, ExpressionNode, MapEntry};
use super::call_cost::{Called, LIST};
use super::constants;
use super::cost::Budget;
use super::error::EvaluationError;
use super::functions;
use super::operators::{arithmetic, compare, equal, index, is_in};
use super::patterns::Patterns;
use super::types::Type;
use super::value::{EvaluationResult, Map, MapKey, Value};

const MAP: u64 = 30;
const STRUCT: u64 = 40;

pub(super) struct CelEvaluator<'a> {
    pub activation: &'a Activation,
    pub patterns: &'a Patterns,
    pub budget: &'a mut Budget,
    /// Of comprehensions, innermost last.
    pub scopes: Vec<EvaluationScope<'a>>,
}

/// A name that a comprehension binds.
pub(super) struct EvaluationScope<'a> {
    pub name: &'a str,
    pub value: Value,
    /// What it costs to ask for it the first time, when it is worked out only then.
    pub first: u64,
}

impl<'a> CelEvaluator<'a> {
    pub(super) fn evaluate(&mut self, expr: &'a Expr) -> EvaluationResult {
        super::on_enough_stack(|| self.evaluate_node(expr))
    }

    fn evaluate_node(&mut self, expr: &'a Expr) -> EvaluationResult {
        if let Some(constant) = &expr.constant {
            return Ok(constant.clone());
        }
        match &expr.node {
            ExpressionNode::Literal(value) => Ok(value.clone()),
            ExpressionNode::List(items) => self.list(items),
            ExpressionNode::Map(entries) => self.map(entries),
            ExpressionNode::Struct { fields, .. } => self.structure(fields),
            ExpressionNode::Macro(comprehension) => self.comprehension(comprehension),
            _ if is_attribute(expr) => {
                let outcome = self.resolve(expr);
                self.charge_attribute(expr)?;
                outcome
            }
            ExpressionNode::Call { function, target, args } => self.call(function, target.as_deref(), args),
            _ => unreachable!("what is no call is an attribute"),
        }
    }

    /// `SelectAndIdentCost`: none for `?:`, and a test for presence gives it back.
    fn charge_attribute(&mut self, expr: &Expr) -> Result<(), EvaluationError> {
        let cost = u64::from(!is_conditional(expr));
        match &expr.node {
            ExpressionNode::Has { .. } => {
                if cost == 0 {
                    self.budget.give_back(1);
                }
                Ok(())
            }
            _ => self.budget.spend(cost),
        }
    }

    /// The value of an attribute, for as many steps as it has; of anything else what it evaluates to.
    fn resolve(&mut self, expr: &'a Expr) -> EvaluationResult {
        let outcome = if is_attribute(expr) {
            super::on_enough_stack(|| self.attribute(expr))
        } else {
            self.evaluate(expr)
        };
        match outcome? {
            Value::Invalid(why) => Err(EvaluationError::Function(why.to_string())),
            value => Ok(value),
        }
    }

    fn attribute(&mut self, expr: &'a Expr) -> EvaluationResult {
        match &expr.node {
            ExpressionNode::Ident(name) => self.variable(name),
            ExpressionNode::Select { operand, field } => {
                let operand = self.resolve(operand)?;
                self.step(&operand, false, |operand, budget| field_of(operand, field, budget))
            }
            ExpressionNode::OptionalSelect { operand, field } => {
                let operand = self.resolve(operand)?;
                self.step(&operand, true, |operand, budget| field_of(operand, field, budget))
            }
            ExpressionNode::Has { operand, field } => {
                let operand = self.resolve(operand)?;
                if matches!(operand, Value::Optional(None)) {
                    return Ok(Value::Bool(false));
                }
                self.budget.spend(1)?;
                Ok(Value::Bool(has(&operand, field, self.budget)))
            }
            ExpressionNode::Call { function, args, .. } => match &args[..] {
                [condition, yes, no] => match self.evaluate(condition)? {
                    Value::Bool(true) => self.resolve(yes),
                    Value::Bool(false) => self.resolve(no),
                    _ => Err(EvaluationError::NoSuchOverload),
                },
                [container, key] => {
                    let container = self.resolve(container)?;
                    if matches!(container, Value::Optional(None)) {
                        return Ok(container);
                    }
                    self.index(&container, key, function == "_[?_]")
                }
                _ => Err(EvaluationError::NoSuchOverload),
            },
            _ => unreachable!("it is an attribute"),
        }
    }

    fn variable(&mut self, name: &str) -> EvaluationResult {
        if let Some(scope) = self.scopes.iter_mut().rev().find(|scope| scope.name == name) {
            self.budget.spend(std::mem::take(&mut scope.first))?;
            return Ok(scope.value.clone());
        }
        let value = self.activation.get(name).cloned();
        value.ok_or_else(|| EvaluationError::NoSuchAttribute(name.into()))
    }

    /// One step of an attribute. Behind an optional everything is optional, and what is not there costs
    /// nothing.
    fn step(
        &mut self,
        operand: &Value,
        is_optional: bool,
        next: impl FnOnce(&Value, &mut Budget) -> EvaluationResult,
    ) -> EvaluationResult {
        let operand = match operand {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => inner,
            _ if !is_optional => {
                self.budget.spend(1)?;
                return next(operand, self.budget);
            }
            other => other,
        };
        let found = optional(next(operand, self.budget))?;
        self.budget.spend(u64::from(!matches!(found, Value::Optional(None))))?;
        Ok(found)
    }

    fn index(&mut self, container: &Value, key: &'a Expr, is_optional: bool) -> EvaluationResult {
        match self.resolve(key) {
            Ok(key) => self.step(container, is_optional, |container, _| index(container, &key)),
            Err(EvaluationError::CostLimitExceeded) => Err(EvaluationError::CostLimitExceeded),
            Err(error) => {
                let is_optional = is_optional || matches!(container, Value::Optional(_));
                self.budget.spend(u64::from(!is_optional))?;
                Err(error)
            }
        }
    }

    fn call(&mut self, function: &'a str, target: Option<&'a Expr>, args: &'a [Expr]) -> EvaluationResult {
        match (function, target, args) {
            ("_&&_", _, args) => return self.logical(args, false),
            ("_||_", _, args) => return self.logical(args, true),
            ("or" | "orValue", Some(target), [other]) => {
                return match self.evaluate(target)? {
                    Value::Optional(None) => self.evaluate(other),
                    Value::Optional(Some(inner)) if function == "orValue" => Ok((*inner).clone()),
                    held @ Value::Optional(_) => Ok(held),
                    _ => Err(EvaluationError::NoSuchOverload),
                };
            }
            ("@in", _, [wanted, list]) if constants::is_set(list) => {
                let wanted = self.evaluate(wanted)?;
                return is_in(&wanted, list.constant.as_ref().unwrap_or(&Value::Null));
            }
            _ => {}
        }
        let types: Vec<&Type> = target.into_iter().chain(args).map(|part| &part.of).collect();
        let mut values = Vec::with_capacity(types.len());
        let mut failed = None;
        for part in target.into_iter().chain(args) {
            match self.evaluate(part) {
                Ok(value) => values.push(Some(value)),
                Err(error) => {
                    failed = Some(error);
                    values.push(None);
                    break;
                }
            }
        }
        let called = Called { function, is_member: target.is_some(), types: &types, values: &values };
        if let Some(error) = failed {
            // What lacks its last argument only is counted all the same.
            let counts = error != EvaluationError::CostLimitExceeded && values.len() == types.len();
            self.budget.spend(if counts { called.after(None) } else { 0 })?;
            return Err(error);
        }
        let before = called.before();
        self.budget.spend(before.unwrap_or(0).saturating_add(called.copying()))?;
        if let ("lists.range", [Some(Value::Int(end))]) = (function, &values[..])
            && !self.budget.allows((*end).max(0).unsigned_abs())
        {
            return Err(EvaluationError::CostLimitExceeded);
        }
        let plain: Vec<Value> = values.iter().flatten().cloned().collect();
        let (target, args) = plain.split_at(usize::from(target.is_some()));
        let of_host = self.activation.call(function, target.first(), args);
        let outcome = of_host.unwrap_or_else(|| apply(function, target.first(), args, self.patterns));
        if before.is_none() {
            self.budget.spend(called.after(outcome.as_ref().ok()))?;
        }
        outcome
    }

    /// One operand that decides is enough, whatever went wrong in the others.
    fn logical(&mut self, args: &'a [Expr], decides: bool) -> EvaluationResult {
        let mut failed = None;
        for arg in args {
            match self.evaluate(arg) {
                Ok(Value::Bool(flag)) if flag == decides => return Ok(Value::Bool(decides)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or(Some(EvaluationError::NoSuchOverload)),
                Err(EvaluationError::CostLimitExceeded) => return Err(EvaluationError::CostLimitExceeded),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn list(&mut self, items: &'a [MapEntry<Expr>]) -> EvaluationResult {
        let made: Result<Vec<Option<Value>>, EvaluationError> = items
            .iter()
            .map(|MapEntry { value, optional }| Ok(held(self.evaluate(value)?, *optional)))
            .collect();
        self.budget.spend(LIST)?;
        Ok(Value::from(made?.into_iter().flatten().collect::<Vec<_>>()))
    }

    fn map(&mut self, entries: &'a [MapEntry<(Expr, Expr)>]) -> EvaluationResult {
        let made = self.entries(entries);
        self.budget.spend(MAP)?;
        Ok(Value::Map(Arc::new(Map::of(made?))))
    }

    fn entries(
        &mut self,
        entries: &'a [MapEntry<(Expr, Expr)>],
    ) -> Result<BTreeMap<MapKey, Value>, EvaluationError> {
        let mut out = BTreeMap::new();
        for MapEntry { value: (key, value), optional } in entries {
            let key = MapKey::of(&self.evaluate(key)?);
            let key = key.ok_or_else(|| EvaluationError::Function("unsupported key type".into()))?;
            match held(self.evaluate(value)?, *optional) {
                Some(value) => out.insert(key, value),
                None => out.remove(&key),
            };
        }
        Ok(out)
    }

    fn structure(&mut self, fields: &'a [MapEntry<(String, Expr)>]) -> EvaluationResult {
        let made: Result<Vec<Option<(MapKey, Value)>>, EvaluationError> = fields
            .iter()
            .map(|MapEntry { value: (field, value), optional }| {
                let value = held(self.evaluate(value)?, *optional);
                Ok(value.map(|value| (MapKey::String(field.as_str().into()), value)))
            })
            .collect();
        self.budget.spend(STRUCT)?;
        Ok(Value::Map(Arc::new(Map::of(made?.into_iter().flatten().collect()))))
    }
}

/// Applies an operator or function to its arguments.
fn apply(function: &str, target: Option<&Value>, args: &[Value], patterns: &Patterns) -> EvaluationResult {
    match (function, args) {
        ("_==_", [left, right]) => Ok(Value::Bool(equal(left, right))),
        ("_!=_", [left, right]) => Ok(Value::Bool(!equal(left, right))),
        ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => compare(function, left, right),
        ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [left, right]) => arithmetic(function, left, right),
        ("@in", [left, right]) => is_in(left, right),
        ("!_", [Value::Bool(flag)]) => Ok(Value::Bool(!flag)),
        ("-_", [Value::Int(number)]) => {
            number.checked_neg().map(Value::Int).ok_or(EvaluationError::Overflow("integer"))
        }
        ("-_", [Value::Double(number)]) => Ok(Value::Double(-number)),
        ("!_" | "-_", _) => Err(EvaluationError::NoSuchOverload),
        (_, args) => functions::call(function, target, args, patterns),
    }
}

/// `InterpretableAttribute`
fn is_attribute(expr: &Expr) -> bool {
    expr.constant.is_none()
        && match &expr.node {
            ExpressionNode::Ident(_)
            | ExpressionNode::Select { .. }
            | ExpressionNode::Has { .. }
            | ExpressionNode::OptionalSelect { .. } => true,
            ExpressionNode::Call { function, .. } => matches!(&**function, "_[_]" | "_[?_]" | "_?_:_"),
            _ => false,
        }
}

/// Whether an attribute begins with a choice between two.
fn is_conditional(expr: &Expr) -> bool {
    expr.constant.is_none()
        && match &expr.node {
            ExpressionNode::Select { operand, .. }
            | ExpressionNode::Has { operand, .. }
            | ExpressionNode::OptionalSelect { operand, .. } => is_conditional(operand),
            ExpressionNode::Call { function, args, .. } => match &**function {
                "_?_:_" => true,
                "_[_]" | "_[?_]" => args.first().is_some_and(is_conditional),
                _ => false,
            },
            _ => false,
        }
}

fn field_of(operand: &Value, field: &str, budget: &mut Budget) -> EvaluationResult {
    let missing = || EvaluationError::NoSuchKey(field.to_owned());
    match operand {
        Value::Map(map) => map.entries.get(&MapKey::String(field.into())).cloned().ok_or_else(missing),
        Value::Host(host) => host.field(field, budget).unwrap_or_else(|| Err(missing())),
        _ => Err(missing()),
    }
}

fn has(operand: &Value, field: &str, budget: &mut Budget) -> bool {
    match operand {
        Value::Map(map) => map.entries.contains_key(&MapKey::String(field.into())),
        Value::Host(host) => host.field(field, budget).is_some(),
        Value::Optional(Some(inner)) => has(inner, field, budget),
        _ => false,
    }
}

/// An element of a literal; an optional one that holds nothing is left out.
fn held(value: Value, optional: bool) -> Option<Value> {
    match value {
        Value::Optional(inner) if optional => inner.map(|inner| (*inner).clone()),
        other => Some(other),
    }
}

fn optional(found: EvaluationResult) -> EvaluationResult {
    match found {
        Ok(Value::Optional(found)) => Ok(Value::Optional(found)),
        Ok(found) => Ok(Value::Optional(Some(Arc::new(found)))),
        Err(EvaluationError::NoSuchKey(_) | EvaluationError::IndexOutOfBounds(_)) => {
            Ok(Value::Optional(None))
        }
        Err(error) => Err(error),
    }
}
