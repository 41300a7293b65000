//! Runs a checked expression (`interpreter/interpreter.go`).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{Entry, Expr, Macro, MacroKind, Node};
use super::cost::Budget;
use super::environment::Activation;
use super::error::EvaluationError;
use super::functions::{self, Patterns};
use super::operators::{arithmetic, equal, index, is_in, order};
use super::value::{Key, Map, Value};

type Outcome = Result<Value, EvaluationError>;

pub(super) struct Evaluator<'a> {
    pub activation: &'a Activation,
    pub patterns: &'a Patterns,
    pub budget: &'a mut Budget,
    /// Of comprehensions, innermost last.
    pub scopes: Vec<(&'a str, Value)>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn evaluate(&mut self, expr: &'a Expr) -> Outcome {
        super::on_enough_stack(|| self.evaluate_node(expr))
    }

    fn evaluate_node(&mut self, expr: &'a Expr) -> Outcome {
        match &expr.node {
            Node::Literal(value) => Ok(value.clone()),
            Node::Ident(name) => self.variable(name),
            Node::Select { operand, field } => {
                let operand = self.evaluate(operand)?;
                self.field(&operand, field)
            }
            Node::Has { operand, field } => {
                let operand = self.evaluate(operand)?;
                self.has(&operand, field)
            }
            Node::OptionalSelect { operand, field } => {
                let operand = self.evaluate(operand)?;
                self.optional_field(&operand, field)
            }
            Node::Call { function, target, args } => self.call(function, target.as_deref(), args),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Struct { fields, .. } => self.structure(fields),
            Node::Macro(comprehension) => self.comprehension(comprehension),
        }
    }

    fn variable(&mut self, name: &str) -> Outcome {
        self.budget.spend(1)?;
        let scoped = self.scopes.iter().rev().find(|(scoped, _)| *scoped == name);
        match scoped.map(|(_, value)| value).or_else(|| self.activation.get(name)) {
            Some(value) => Ok(value.clone()),
            None => Err(EvaluationError::NoSuchAttribute(name.into())),
        }
    }

    fn field(&mut self, operand: &Value, field: &str) -> Outcome {
        self.budget.spend(1)?;
        let missing = || EvaluationError::NoSuchKey(field.to_owned());
        match operand {
            Value::Map(map) => map.entries.get(&Key::String(field.into())).cloned().ok_or_else(missing),
            Value::Host(host) => host.field(field, self.budget).unwrap_or_else(|| Err(missing())),
            Value::Optional(_) => self.optional_field(operand, field),
            _ => Err(missing()),
        }
    }

    fn has(&mut self, operand: &Value, field: &str) -> Outcome {
        self.budget.spend(1)?;
        Ok(Value::Bool(match operand {
            Value::Map(map) => map.entries.contains_key(&Key::String(field.into())),
            Value::Host(host) => host.field(field, self.budget).is_some(),
            Value::Optional(Some(inner)) => return self.has(inner, field),
            _ => false,
        }))
    }

    fn optional_field(&mut self, operand: &Value, field: &str) -> Outcome {
        let operand = match operand {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => inner,
            other => other,
        };
        optional(self.field(operand, field))
    }

    fn call(&mut self, function: &str, target: Option<&'a Expr>, args: &'a [Expr]) -> Outcome {
        match (function, args) {
            ("_&&_", args) => return self.logical(args, false),
            ("_||_", args) => return self.logical(args, true),
            ("_?_:_", [condition, yes, no]) => {
                return match self.evaluate(condition)? {
                    Value::Bool(true) => self.evaluate(yes),
                    Value::Bool(false) => self.evaluate(no),
                    _ => Err(EvaluationError::NoSuchOverload),
                };
            }
            _ => {}
        }
        let target = target.map(|target| self.evaluate(target)).transpose()?;
        let args = args.iter().map(|arg| self.evaluate(arg)).collect::<Result<Vec<_>, _>>()?;
        self.budget.spend(1)?;
        match (function, args.as_slice()) {
            ("_==_", [left, right]) => equal(left, right, self.budget).map(Value::Bool),
            ("_!=_", [left, right]) => equal(left, right, self.budget).map(|equal| Value::Bool(!equal)),
            ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => compare(function, left, right),
            ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [left, right]) => {
                arithmetic(function, left, right, self.budget)
            }
            ("@in", [left, right]) => is_in(left, right, self.budget),
            ("_[_]", [Value::Optional(_), _]) | ("_[?_]", _) => optional_index(&args),
            ("_[_]", [container, key]) => index(container, key),
            ("!_", [Value::Bool(flag)]) => Ok(Value::Bool(!flag)),
            ("-_", [Value::Int(number)]) => {
                number.checked_neg().map(Value::Int).ok_or(EvaluationError::Overflow("integer"))
            }
            ("-_", [Value::Double(number)]) => Ok(Value::Double(-number)),
            ("!_" | "-_", _) => Err(EvaluationError::NoSuchOverload),
            (_, args) => functions::call(function, target.as_ref(), args, self.patterns, self.budget),
        }
    }

    /// One operand that decides is enough, whatever went wrong in the others.
    fn logical(&mut self, args: &'a [Expr], decides: bool) -> Outcome {
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

    fn list(&mut self, items: &'a [Entry<Expr>]) -> Outcome {
        self.budget.spend(10)?;
        let mut out = Vec::with_capacity(items.len());
        for Entry { value, optional } in items {
            let value = self.evaluate(value)?;
            out.extend(held(value, *optional));
        }
        Ok(Value::from(out))
    }

    fn map(&mut self, entries: &'a [Entry<(Expr, Expr)>]) -> Outcome {
        self.budget.spend(30)?;
        let mut out = BTreeMap::new();
        for Entry { value: (key, value), optional } in entries {
            let key = Key::of(&self.evaluate(key)?);
            let key = key.ok_or_else(|| EvaluationError::Function("unsupported key type".into()))?;
            let value = self.evaluate(value)?;
            let text = key.to_string();
            if let Some(value) = held(value, *optional)
                && out.insert(key, value).is_some()
            {
                return Err(EvaluationError::Function(format!("Failed with repeated key {text}")));
            }
        }
        Ok(Value::Map(Arc::new(Map::of(out))))
    }

    fn structure(&mut self, fields: &'a [Entry<(String, Expr)>]) -> Outcome {
        self.budget.spend(40)?;
        let mut out = BTreeMap::new();
        for Entry { value: (field, value), optional } in fields {
            let value = self.evaluate(value)?;
            if let Some(value) = held(value, *optional) {
                out.insert(Key::String(field.as_str().into()), value);
            }
        }
        Ok(Value::Map(Arc::new(Map::of(out))))
    }

    fn comprehension(&mut self, comprehension: &'a Macro) -> Outcome {
        let range = self.evaluate(&comprehension.range)?;
        let depth = self.scopes.len();
        let outcome = self.run(comprehension, range);
        self.scopes.truncate(depth);
        outcome
    }

    fn run(&mut self, comprehension: &'a Macro, range: Value) -> Outcome {
        let Macro { kind, variables, .. } = comprehension;
        match kind {
            MacroKind::OptMap | MacroKind::OptFlatMap => match range {
                Value::Optional(Some(inner)) => {
                    let value = self.step(comprehension, vec![(*inner).clone()])?;
                    Ok(if *kind == MacroKind::OptMap {
                        Value::Optional(Some(Arc::new(value)))
                    } else {
                        value
                    })
                }
                Value::Optional(None) => Ok(range),
                _ => Err(EvaluationError::NoSuchOverload),
            },
            _ => {
                let elements = elements(&range, variables.len())?;
                match kind {
                    MacroKind::All | MacroKind::Exists => self.quantify(comprehension, elements),
                    MacroKind::ExistsOne => self.exists_one(comprehension, elements),
                    MacroKind::TransformMap | MacroKind::TransformMapEntry => {
                        self.transform_map(comprehension, elements)
                    }
                    MacroKind::SortBy => self.sort_by(comprehension, elements),
                    _ => self.transform(comprehension, elements),
                }
            }
        }
    }

    /// Binds the names and runs one part of the comprehension.
    fn with(&mut self, names: &'a [String], values: Vec<Value>, part: &'a Expr) -> Outcome {
        let depth = self.scopes.len();
        self.scopes.extend(names.iter().map(String::as_str).zip(values));
        let outcome = self.evaluate(part);
        self.scopes.truncate(depth);
        outcome
    }

    fn step(&mut self, comprehension: &'a Macro, values: Vec<Value>) -> Outcome {
        self.budget.spend(1)?;
        self.with(&comprehension.variables, values, &comprehension.step)
    }

    fn takes(&mut self, comprehension: &'a Macro, values: &[Value]) -> Result<bool, EvaluationError> {
        let Some(filter) = &comprehension.filter else { return Ok(true) };
        boolean(self.with(&comprehension.variables, values.to_vec(), filter)?)
    }

    fn quantify(&mut self, comprehension: &'a Macro, elements: Vec<Vec<Value>>) -> Outcome {
        let decides = comprehension.kind == MacroKind::Exists;
        let mut failed = None;
        for values in elements {
            match self.step(comprehension, values).and_then(boolean) {
                Ok(flag) if flag == decides => return Ok(Value::Bool(decides)),
                Ok(_) => {}
                Err(EvaluationError::CostLimitExceeded) => return Err(EvaluationError::CostLimitExceeded),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn exists_one(&mut self, comprehension: &'a Macro, elements: Vec<Vec<Value>>) -> Outcome {
        let mut count = 0;
        for values in elements {
            count += usize::from(boolean(self.step(comprehension, values)?)?);
        }
        Ok(Value::Bool(count == 1))
    }

    fn transform(&mut self, comprehension: &'a Macro, elements: Vec<Vec<Value>>) -> Outcome {
        let mut out = vec![];
        for values in elements {
            if comprehension.kind == MacroKind::Filter {
                if boolean(self.step(comprehension, values.clone())?)? {
                    out.extend(values);
                }
            } else if self.takes(comprehension, &values)? {
                out.push(self.step(comprehension, values)?);
            }
        }
        Ok(Value::from(out))
    }

    fn transform_map(&mut self, comprehension: &'a Macro, elements: Vec<Vec<Value>>) -> Outcome {
        let mut out = BTreeMap::new();
        for values in elements {
            if !self.takes(comprehension, &values)? {
                continue;
            }
            let key = Key::of(&values[0]).ok_or(EvaluationError::NoSuchOverload)?;
            match (comprehension.kind, self.step(comprehension, values)?) {
                (MacroKind::TransformMap, value) => drop(out.insert(key, value)),
                (_, Value::Map(map)) => out.extend(map.entries.clone()),
                _ => return Err(EvaluationError::NoSuchOverload),
            }
        }
        Ok(Value::Map(Arc::new(Map::of(out))))
    }

    fn sort_by(&mut self, comprehension: &'a Macro, elements: Vec<Vec<Value>>) -> Outcome {
        let mut keyed = vec![];
        for mut values in elements {
            let key = self.step(comprehension, values.clone())?;
            keyed.push((key, values.swap_remove(0)));
        }
        if keyed.windows(2).any(|pair| order(&pair[0].0, &pair[1].0).is_none()) {
            return Err(EvaluationError::NoSuchOverload);
        }
        keyed.sort_by(|left, right| order(&left.0, &right.0).unwrap_or(Ordering::Equal));
        Ok(Value::from(keyed.into_iter().map(|(_, value)| value).collect::<Vec<_>>()))
    }
}

fn boolean(value: Value) -> Result<bool, EvaluationError> {
    match value {
        Value::Bool(flag) => Ok(flag),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

/// What the names stand for, element by element: the element or the key; or index and element, key and value.
fn elements(range: &Value, names: usize) -> Result<Vec<Vec<Value>>, EvaluationError> {
    Ok(match range {
        Value::List(list) if names == 2 => {
            let pair = |(at, item): (usize, &Value)| vec![Value::Int(at as i64), item.clone()];
            list.items.iter().enumerate().map(pair).collect()
        }
        Value::List(list) => list.items.iter().map(|item| vec![item.clone()]).collect(),
        Value::Map(map) if names == 2 => {
            map.entries.iter().map(|(key, value)| vec![key.value(), value.clone()]).collect()
        }
        Value::Map(map) => map.entries.keys().map(|key| vec![key.value()]).collect(),
        _ => return Err(EvaluationError::NoSuchOverload),
    })
}

/// An element of a literal; an optional one that holds nothing is left out.
fn held(value: Value, optional: bool) -> Option<Value> {
    match value {
        Value::Optional(inner) if optional => inner.map(|inner| (*inner).clone()),
        other => Some(other),
    }
}

fn optional(found: Outcome) -> Outcome {
    match found {
        Ok(Value::Optional(found)) => Ok(Value::Optional(found)),
        Ok(found) => Ok(Value::Optional(Some(Arc::new(found)))),
        Err(EvaluationError::NoSuchKey(_) | EvaluationError::IndexOutOfBounds(_)) => {
            Ok(Value::Optional(None))
        }
        Err(error) => Err(error),
    }
}

fn optional_index(args: &[Value]) -> Outcome {
    match args {
        [Value::Optional(None), _] => Ok(Value::Optional(None)),
        [Value::Optional(Some(inner)), key] => optional(index(inner, key)),
        [container, key] => optional(index(container, key)),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn compare(function: &str, left: &Value, right: &Value) -> Outcome {
    let found = match order(left, right) {
        Some(found) => found,
        None if is_number(left) && is_number(right) => return Ok(Value::Bool(false)),
        None => return Err(EvaluationError::NoSuchOverload),
    };
    Ok(Value::Bool(match function {
        "_<_" => found == Ordering::Less,
        "_<=_" => found != Ordering::Greater,
        "_>_" => found == Ordering::Greater,
        _ => found != Ordering::Less,
    }))
}

/// `NaN` has no order, and no error either.
fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}
