//! Which objects a stage is for.

use cel::Value as CelValue;
use serde_json::Value;

use super::cel_functions::CelHost;
use super::error::StageError;
use super::expression::CelExpression;
use super::jq::JqQuery;
use super::manifest::{JqSelector, MatchExpression, StageMatch};

/// A selector may hold so many expressions; one with more is refused.
const MAX_EXPRESSIONS: usize = 64;

/// A selector that was read.
#[derive(Debug)]
pub(crate) struct ObjectSelector {
    plain: StageMatch,
    conditions: Vec<StageCondition>,
}

#[derive(Debug)]
enum StageCondition {
    Cel(CelExpression),
    Jq(JqQuery, MatchOperator, Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl ObjectSelector {
    pub(crate) fn read(mut plain: StageMatch) -> Result<ObjectSelector, StageError> {
        let expressions = std::mem::take(&mut plain.match_expressions);
        if expressions.len() > MAX_EXPRESSIONS {
            return Err(format!("selector.matchExpressions: more than {MAX_EXPRESSIONS}").into());
        }
        let read = |(at, expression): (usize, MatchExpression)| {
            condition(expression).map_err(|why| why.at(format!("selector.matchExpressions[{at}]")))
        };
        let conditions = expressions.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(ObjectSelector { plain, conditions })
    }

    /// # Errors
    /// What went wrong in an expression.
    pub(crate) fn matches(&self, tree: &Value, host: &CelHost) -> Result<bool, StageError> {
        let metadata = &tree["metadata"];
        let has = |field: &str, wanted: &std::collections::BTreeMap<String, String>| {
            wanted.iter().all(|(key, value)| metadata[field].get(key).and_then(Value::as_str) == Some(value))
        };
        if !has("labels", &self.plain.match_labels) || !has("annotations", &self.plain.match_annotations) {
            return Ok(false);
        }
        for condition in &self.conditions {
            if !condition.holds(tree, host)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl StageCondition {
    fn holds(&self, tree: &Value, host: &CelHost) -> Result<bool, StageError> {
        match self {
            StageCondition::Cel(expression) => match expression.value(tree, host)? {
                CelValue::Bool(holds) => Ok(holds),
                other => Err(format!("a {} is neither true nor false", other.type_name()).into()),
            },
            StageCondition::Jq(query, operator, values) => {
                let found = query.run(tree);
                let is_in = || found.iter().any(|found| is_one_of(found, values));
                Ok(match operator {
                    MatchOperator::In => is_in(),
                    MatchOperator::NotIn => !is_in(),
                    MatchOperator::Exists => !found.is_empty(),
                    MatchOperator::DoesNotExist => found.is_empty(),
                })
            }
        }
    }
}

/// Texts, flags and whole numbers are compared; nothing else is one of any values.
fn is_one_of(found: &Value, values: &[String]) -> bool {
    match found {
        Value::String(text) => values.contains(text),
        Value::Bool(flag) => values.iter().any(|value| *value == flag.to_string()),
        Value::Number(number) => number.is_i64() && values.iter().any(|value| *value == number.to_string()),
        _ => false,
    }
}

fn condition(expression: MatchExpression) -> Result<StageCondition, StageError> {
    let MatchExpression { cel, jq, plain } = expression;
    if let Some(cel) = cel.filter(|_| jq.is_none() && plain.key.is_empty()) {
        let read = CelExpression::parse(&cel.expression).map(StageCondition::Cel);
        return read.map_err(|why| why.at(".cel.expression: "));
    }
    let JqSelector { key, operator, values } = jq.unwrap_or(plain);
    if key.is_empty() {
        return Err(": it must have cel, jq or key".into());
    }
    let query = JqQuery::parse(&key).map_err(|why| format!(".key: {why}"))?;
    let operator = match (operator.as_str(), values.is_empty()) {
        ("In", false) => MatchOperator::In,
        ("NotIn", false) => MatchOperator::NotIn,
        ("Exists", true) => MatchOperator::Exists,
        ("DoesNotExist", true) => MatchOperator::DoesNotExist,
        ("In" | "NotIn", true) => {
            return Err(".values: for 'in', 'notin' operators, values set can't be empty".into());
        }
        ("Exists" | "DoesNotExist", false) => {
            return Err(".values: values set must be empty for exists and does not exist".into());
        }
        _ => return Err(format!(".operator: {operator:?} must be In, NotIn, Exists or DoesNotExist").into()),
    };
    Ok(StageCondition::Jq(query, operator, values))
}
