//! Runs comprehensions. Upstream's macros become folds; what each step of such a fold costs is charged here,
//! and as there, what goes wrong with one element does not end it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{Expr, ExpressionNode, Macro, MacroKind};
use super::call_cost::{LIST, comparing, is_ordered};
use super::error::EvaluationError;
use super::evaluate::{CelEvaluator, EvaluationScope};
use super::operators::{order, total_order};
use super::types::Type;
use super::value::{EvaluationResult, Map, MapKey, Value};

/// A name, or a call of a function that costs nothing besides.
const ONE: u64 = 1;

impl<'a> CelEvaluator<'a> {
    pub(super) fn comprehension(&mut self, comprehension: &'a Macro) -> EvaluationResult {
        let depth = self.scopes.len();
        let outcome = match comprehension.kind {
            MacroKind::OptMap | MacroKind::OptFlatMap => self.held(comprehension),
            MacroKind::SortBy => self.sort_by(comprehension),
            MacroKind::Bind => self.bind(comprehension),
            _ => self.fold(comprehension),
        };
        self.scopes.truncate(depth);
        outcome
    }

    fn fold(&mut self, comprehension: &'a Macro) -> EvaluationResult {
        let range = self.evaluate(&comprehension.range)?;
        let elements = elements(&range, comprehension.variables.len())?;
        match comprehension.kind {
            MacroKind::All | MacroKind::Exists => self.quantify(comprehension, elements),
            MacroKind::ExistsOne => self.exists_one(comprehension, elements),
            MacroKind::TransformMap | MacroKind::TransformMapEntry => {
                self.transform_map(comprehension, elements)
            }
            _ => self.transform(comprehension, elements),
        }
    }

    /// What an optional holds gets a name, and is taken out when that is first asked for.
    fn held(&mut self, comprehension: &'a Macro) -> EvaluationResult {
        let Macro { kind, range, variables, step, .. } = comprehension;
        let is_name = matches!(range.node, ExpressionNode::Ident(_));
        let range = self.evaluate(range);
        self.budget.spend(ONE + u64::from(!is_name))?;
        match range? {
            Value::Optional(Some(inner)) => {
                let name = EvaluationScope { name: &variables[0], value: (*inner).clone(), first: 2 * ONE };
                self.scopes.push(name);
                let value = self.evaluate(step);
                if *kind == MacroKind::OptFlatMap {
                    return value;
                }
                self.budget.spend(ONE)?;
                value.map(|value| Value::Optional(Some(Arc::new(value))))
            }
            none @ Value::Optional(None) => {
                self.budget.spend(ONE)?;
                Ok(none)
            }
            _ => Err(EvaluationError::NoSuchOverload),
        }
    }

    /// The value is charged when its name is first asked for. It is worked out before, within what is left.
    fn bind(&mut self, comprehension: &'a Macro) -> EvaluationResult {
        let Macro { range, variables, step, .. } = comprehension;
        let mut own = self.budget.ahead();
        std::mem::swap(self.budget, &mut own);
        let value = self.evaluate(range);
        std::mem::swap(self.budget, &mut own);
        if value == Err(EvaluationError::CostLimitExceeded) {
            return value;
        }
        self.budget.waste(own.wasted());
        let value = value.unwrap_or_else(|error| Value::Invalid(error.to_string().into()));
        let depth = self.scopes.len();
        self.scopes.push(EvaluationScope { name: &variables[0], value, first: own.spent() });
        let outcome = self.evaluate(step);
        self.budget.waste(self.scopes.get(depth).map_or(0, |scope| scope.first));
        outcome
    }

    /// Binds the names and runs one part of the comprehension.
    fn with(&mut self, names: &'a [String], values: &[Value], part: &'a Expr) -> EvaluationResult {
        let depth = self.scopes.len();
        let bind =
            |(name, value): (&'a String, &Value)| EvaluationScope { name, value: value.clone(), first: 0 };
        self.scopes.extend(names.iter().zip(values).map(bind));
        let outcome = self.evaluate(part);
        self.scopes.truncate(depth);
        outcome
    }

    fn quantify(&mut self, comprehension: &'a Macro, elements: Vec<Vec<Value>>) -> EvaluationResult {
        let decides = comprehension.kind == MacroKind::Exists;
        let mut failed = None;
        let mut decided = false;
        for values in elements {
            // Whether it goes on: `@not_strictly_false(@result)`, of `exists` with a `!` in it.
            self.budget.spend(2 * ONE + u64::from(decides))?;
            if decided {
                break;
            }
            self.budget.spend(ONE)?;
            match self.with(&comprehension.variables, &values, &comprehension.step).and_then(boolean) {
                Ok(flag) => decided = flag == decides,
                Err(error) => failed = Some(first(failed, error)?),
            }
        }
        self.budget.spend(ONE)?;
        match failed {
            Some(error) if !decided => Err(error),
            _ => Ok(Value::Bool(decided == decides)),
        }
    }

    fn exists_one(&mut self, comprehension: &'a Macro, elements: Vec<Vec<Value>>) -> EvaluationResult {
        let mut count = Ok(0);
        for values in elements {
            match self.with(&comprehension.variables, &values, &comprehension.step).and_then(boolean) {
                Ok(true) => {
                    self.budget.spend(ONE + u64::from(count.is_ok()))?;
                    count = count.map(|count| count + 1);
                }
                Ok(false) => {}
                Err(error) => count = Err(ended(error)?),
            }
        }
        self.budget.spend(ONE + u64::from(count.is_ok()))?;
        count.map(|count| Value::Bool(count == 1))
    }

    /// Whether an element is taken. What goes wrong with that question is the outcome of the whole.
    fn takes<T>(
        &mut self,
        comprehension: &'a Macro,
        values: &[Value],
        out: &mut Result<T, EvaluationError>,
    ) -> Result<bool, EvaluationError> {
        let filter = match comprehension.kind {
            MacroKind::Filter => Some(&comprehension.step),
            _ => comprehension.filter.as_ref(),
        };
        let Some(filter) = filter else { return Ok(true) };
        self.with(&comprehension.variables, values, filter).and_then(boolean).or_else(|error| {
            *out = Err(ended(error)?);
            Ok(false)
        })
    }

    fn transform(&mut self, comprehension: &'a Macro, elements: Vec<Vec<Value>>) -> EvaluationResult {
        let mut out = Ok(vec![]);
        for values in elements {
            if !self.takes(comprehension, &values, &mut out)? {
                continue;
            }
            // `@result + [value]`
            self.budget.spend(ONE)?;
            let Ok(made) = &mut out else { continue };
            let value = self.element(comprehension, &values);
            self.budget.spend(ONE)?;
            match value {
                Ok(value) => made.push(value),
                Err(error) => out = Err(ended(error)?),
            }
        }
        self.budget.spend(ONE)?;
        out.map(Value::from)
    }

    /// The value that is added, in a list of its own.
    fn element(&mut self, comprehension: &'a Macro, values: &[Value]) -> EvaluationResult {
        if comprehension.kind == MacroKind::Filter {
            self.budget.spend(ONE + LIST)?;
            return Ok(values[0].clone());
        }
        let value = self.with(&comprehension.variables, values, &comprehension.step);
        self.budget.spend(if comprehension.step.constant.is_some() { 0 } else { LIST })?;
        value
    }

    fn transform_map(&mut self, comprehension: &'a Macro, elements: Vec<Vec<Value>>) -> EvaluationResult {
        let mut out = Ok(BTreeMap::new());
        for values in elements {
            if !self.takes(comprehension, &values, &mut out)? {
                continue;
            }
            // `cel.@mapInsert(@result, key, value)`, or `cel.@mapInsert(@result, entries)`
            self.budget.spend(ONE)?;
            let Ok(made) = &mut out else { continue };
            self.budget.spend(u64::from(comprehension.kind == MacroKind::TransformMap))?;
            let value = self.with(&comprehension.variables, &values, &comprehension.step);
            self.budget.spend(ONE)?;
            if let Err(error) = value.and_then(|value| insert(comprehension.kind, &values[0], value, made)) {
                out = Err(ended(error)?);
            }
        }
        self.budget.spend(ONE)?;
        Ok(Value::Map(Arc::new(Map::of(out?))))
    }

    /// The list has a name while it is sorted by the keys that are made of it.
    fn sort_by(&mut self, comprehension: &'a Macro) -> EvaluationResult {
        let range = self.evaluate(&comprehension.range);
        self.budget.spend(ONE)?;
        let range = range?;
        self.budget.spend(ONE)?;
        let items: Vec<Value> = elements(&range, 1)?.into_iter().flatten().collect();
        let keys = self.transform(comprehension, items.iter().map(|item| vec![item.clone()]).collect())?;
        let of = Type::list(comprehension.step.of.clone());
        self.budget.spend(if is_ordered(&of) { comparing(Some(&keys)) } else { ONE })?;
        let Value::List(keys) = keys else { return Err(EvaluationError::NoSuchOverload) };
        let mut keyed: Vec<(&Value, Value)> = keys.items.iter().zip(items).collect();
        if keyed.windows(2).any(|pair| order(pair[0].0, pair[1].0).is_none()) {
            return Err(EvaluationError::NoSuchOverload);
        }
        keyed.sort_by(|left, right| total_order(left.0, right.0));
        Ok(Value::from(keyed.into_iter().map(|(_, value)| value).collect::<Vec<_>>()))
    }
}

fn insert(
    kind: MacroKind,
    key: &Value,
    value: Value,
    made: &mut BTreeMap<MapKey, Value>,
) -> Result<(), EvaluationError> {
    if kind == MacroKind::TransformMap {
        made.insert(MapKey::of(key).ok_or(EvaluationError::NoSuchOverload)?, value);
        return Ok(());
    }
    let Value::Map(map) = value else { return Err(EvaluationError::NoSuchOverload) };
    for (key, value) in &map.entries {
        if made.insert(key.clone(), value.clone()).is_some() {
            return Err(EvaluationError::Function(format!("insert failed: key {key} already exists")));
        }
    }
    Ok(())
}

/// An error ends one element; a budget that is spent ends everything.
fn ended(error: EvaluationError) -> Result<EvaluationError, EvaluationError> {
    match error {
        EvaluationError::CostLimitExceeded => Err(error),
        error => Ok(error),
    }
}

/// Of several errors the first is told.
fn first(
    before: Option<EvaluationError>,
    error: EvaluationError,
) -> Result<EvaluationError, EvaluationError> {
    let error = ended(error)?;
    Ok(before.unwrap_or(error))
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
