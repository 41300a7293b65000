//! Curves that are CEL expressions: over `pod`, `node` and `container` as far as whoever asks knows them, the
//! time (`now`), the seconds since the beginning (`age`), and what 100 % is (`whole`), both of them numbers.
//!
//! The value is a number, or a text that is a quantity, as `"100m"`.

use chrono::DateTime;
use serde_json::Value as Json;

use super::against::{Against, CurveError};
use super::curve::CurveFunction;
use apimachinery::quantity::Quantity;
use cel::{Activation, Budget, Environment, Program, Type, Value};

/// What one look at an expression may cost, in units of CEL's cost; beyond it the number is 0. An admission
/// policy may cost a hundred times as much.
const MAX_COST: u64 = 10_000;
/// What comes of the JSON of whoever asks.
const VARIABLES: [&str; 3] = ["pod", "node", "container"];

/// A checked expression.
#[derive(Debug)]
pub struct CurveExpression(Program);

impl CurveExpression {
    /// Checks an expression.
    ///
    /// # Errors
    /// What is wrong with it, in CEL's words.
    pub fn parse(text: &str) -> Result<CurveExpression, CurveError> {
        let mut environment = Environment::new()
            .with_variable("now", Type::Timestamp)
            .with_variable("age", Type::Double)
            .with_variable("whole", Type::Double);
        for name in VARIABLES {
            environment = environment.with_variable(name, Type::Dyn);
        }
        environment.compile(text).map(CurveExpression).map_err(|why| why.to_string().into())
    }

    /// The number so many seconds after the beginning.
    ///
    /// # Errors
    /// What went wrong, or cost too much, or is no number.
    pub fn evaluate(&self, seconds: f64, against: &Against<'_>) -> Result<f64, CurveError> {
        let millis = ((against.began + seconds) * 1000.0) as i64;
        let now = DateTime::from_timestamp_millis(millis).unwrap_or_default();
        let mut activation = Activation::new()
            .with("now", Value::Timestamp(now))
            .with("age", Value::Double(seconds))
            .with("whole", Value::Double(against.whole));
        for name in VARIABLES.iter().filter(|name| self.0.mentions(name)) {
            let json = against.variables.and_then(|variables| variables.get(*name)).unwrap_or(&Json::Null);
            activation.set(name, Value::from_json(json));
        }
        let value = self.0.evaluate(&activation, &mut Budget::new(MAX_COST));
        Ok(number(&value.map_err(|why| why.to_string())?)?)
    }
}

impl CurveFunction for CurveExpression {
    fn value(&self, seconds: f64, against: &Against<'_>) -> Option<f64> {
        self.evaluate(seconds, against).ok()
    }
}

fn number(value: &Value) -> Result<f64, String> {
    let number = match value {
        Value::Int(number) => *number as f64,
        Value::Uint(number) => *number as f64,
        Value::Double(number) => *number,
        Value::String(text) => {
            Quantity::parse(text).map_err(|_| format!("{text:?} is no quantity"))?.as_approximate_f64()
        }
        other => return Err(format!("a {} is neither a number nor a quantity", other.type_name())),
    };
    if number.is_finite() { Ok(number) } else { Err("the number is not finite".into()) }
}
