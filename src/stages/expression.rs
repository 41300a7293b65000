//! What a stage finds in an object: by CEL over `self`, or by a query.

use std::time::Duration;

use cel::{Budget, Program, Type, Value as CelValue};
use serde_json::Value;

use super::cel_functions::{CelHost, environment};
use super::error::StageError;
use super::jq::JqQuery;
use super::manifest::{ExpressionFrom, ExpressionText};
use apimachinery::time;
use golang::duration;

/// What one look of a CEL expression may cost, in units of CEL's cost; beyond it the expression fails.
const MAX_COST: u64 = 100_000;

/// An expression of CEL that was checked.
#[derive(Debug)]
pub struct CelExpression(Program);

impl CelExpression {
    /// Checks an expression over `self`.
    ///
    /// # Errors
    /// What is wrong with it, in CEL's words.
    pub fn parse(text: &str) -> Result<CelExpression, StageError> {
        let environment = environment().with_variable("self", Type::Dyn);
        environment.compile(text).map(CelExpression).map_err(|why| why.to_string().into())
    }

    /// Its value for a tree.
    ///
    /// # Errors
    /// What went wrong, or that it cost too much.
    pub fn value(&self, tree: &Value, host: &CelHost) -> Result<CelValue, StageError> {
        let activation = host.activation().with("self", CelValue::from_json(tree));
        self.0.evaluate(&activation, &mut Budget::new(MAX_COST)).map_err(|why| why.to_string().into())
    }
}

/// Where a number or a time comes from.
#[derive(Debug)]
pub(crate) enum ValueSource {
    Cel(CelExpression),
    JqQuery(JqQuery),
}

impl ValueSource {
    /// None where nothing is said; `field` is shown in errors.
    pub(crate) fn read(
        from: Option<&ExpressionFrom>,
        field: &str,
    ) -> Result<Option<ValueSource>, StageError> {
        let Some(from) = from else { return Ok(None) };
        if let Some(ExpressionText { expression }) = &from.cel {
            let read = CelExpression::parse(expression).map(ValueSource::Cel);
            return read.map(Some).map_err(|why| why.at(format!("{field}.cel.expression: ")));
        }
        let text = from.jq.as_ref().map_or(&from.expression_from, |jq| &jq.expression);
        if text.is_empty() {
            return Ok(None);
        }
        let read = JqQuery::parse(text).map(ValueSource::JqQuery);
        read.map(Some).map_err(|why| format!("{field}.expressionFrom: {why}").into())
    }

    /// A time from now; none where the object says nothing that is one.
    pub(crate) fn duration(&self, tree: &Value, host: &CelHost) -> Result<Option<Duration>, StageError> {
        match self {
            ValueSource::Cel(expression) => cel_duration(&expression.value(tree, host)?).map(Some),
            ValueSource::JqQuery(query) => Ok(query.run(tree).first().and_then(|found| {
                let text = found.as_str()?;
                let until = time::parse(text).map(|at| (at - host.now).to_std().unwrap_or_default());
                until.or_else(|| duration::parse(text))
            })),
        }
    }

    /// A whole number; none where the object says nothing that is one.
    pub(crate) fn number(&self, tree: &Value, host: &CelHost) -> Result<Option<i64>, StageError> {
        match self {
            ValueSource::Cel(expression) => cel_number(&expression.value(tree, host)?).map(Some),
            ValueSource::JqQuery(query) => Ok(query.run(tree).first().and_then(|found| match found {
                Value::String(text) => text.parse().ok(),
                other => other.as_f64().map(|number| number as i64),
            })),
        }
    }
}

fn cel_duration(value: &CelValue) -> Result<Duration, StageError> {
    match value {
        CelValue::String(text) => {
            duration::parse(text).ok_or_else(|| format!("{text:?} is no duration").into())
        }
        CelValue::Duration(time) => Ok(time.to_std().unwrap_or_default()),
        other => cel_number(other).map(|nanoseconds| Duration::from_nanos(nanoseconds.max(0).unsigned_abs())),
    }
}

fn cel_number(value: &CelValue) -> Result<i64, StageError> {
    match value {
        CelValue::Int(number) => Ok(*number),
        CelValue::Uint(number) => Ok(i64::try_from(*number).unwrap_or(i64::MAX)),
        CelValue::Double(number) => Ok(*number as i64),
        CelValue::Bool(flag) => Ok((*flag).into()),
        CelValue::Host(host) if host.number().is_some() => Ok(host.number().unwrap_or_default() as i64),
        other => Err(format!("a {} is no number", other.type_name()).into()),
    }
}
