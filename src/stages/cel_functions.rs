//! The functions that kwok adds to CEL: `Now()`, `Rand()`, `Quantity(text)`, `UnixSecond(time)`,
//! `SinceSecond(object)`; all but the first two also as members.

use std::sync::Arc;

use cel::{Activation, Environment, EvaluationError, HostFunctions, HostValue, MapKey, Type, Value};

use apimachinery::quantity::Quantity;
use apimachinery::time::{self, Time};
use entropy::Entropy;

/// Numbers of `Rand()` are so fine.
const RAND_STEPS: usize = 1 << 53;

/// What expressions of kwok's objects are evaluated in.
#[derive(Clone, Debug)]
pub struct CelHost {
    /// The time of the cluster.
    pub now: Time,
    /// Its chance.
    pub entropy: Entropy,
}

/// An environment that knows the functions. Of which type an object is, is known when it runs.
pub fn environment() -> Environment {
    let environment = Environment::new().with_function("Now", None, &[], Type::Timestamp).with_function(
        "Rand",
        None,
        &[],
        Type::Double,
    );
    let of_one = [
        // Of no type of CEL: it is counted with whatever the other number is.
        ("Quantity", Type::String, Type::Dyn),
        ("UnixSecond", Type::Timestamp, Type::Double),
        ("SinceSecond", Type::Dyn, Type::Double),
    ];
    of_one.into_iter().fold(environment, |environment, (name, of, result)| {
        environment.with_function(name, None, std::slice::from_ref(&of), result.clone()).with_function(
            name,
            Some(of),
            &[],
            result,
        )
    })
}

impl CelHost {
    /// What the functions need.
    pub fn activation(&self) -> Activation {
        Activation::new().with_host(Arc::new(self.clone()))
    }
}

impl HostFunctions for CelHost {
    fn call(
        &self,
        function: &str,
        target: Option<&Value>,
        args: &[Value],
    ) -> Option<Result<Value, EvaluationError>> {
        let of = match (target, args) {
            (Some(of), []) | (None, [of]) => Some(of),
            (None, []) => None,
            _ => return None,
        };
        let found = match (function, of) {
            ("Now", None) => Value::Timestamp(self.now),
            ("Rand", None) => Value::Double(self.entropy.below(RAND_STEPS) as f64 / RAND_STEPS as f64),
            ("Quantity", Some(Value::String(text))) => return Some(quantity(text)),
            ("UnixSecond", Some(Value::Timestamp(time))) => Value::Double(seconds(*time)),
            ("SinceSecond", Some(object)) => {
                Value::Double(created(object).map_or(0.0, |created| seconds(self.now) - seconds(created)))
            }
            _ => return None,
        };
        Some(Ok(found))
    }
}

/// When an object was made, as its metadata says: a text, or a time already.
fn created(object: &Value) -> Option<Time> {
    match member(member(object, "metadata")?, "creationTimestamp")? {
        Value::Timestamp(time) => Some(*time),
        Value::String(text) => time::parse(text),
        _ => None,
    }
}

/// What a map has by a name.
pub(crate) fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(map) = object else { return None };
    map.entries.get(&MapKey::String(name.into()))
}

fn quantity(text: &str) -> Result<Value, EvaluationError> {
    let quantity = Quantity::parse(text);
    let quantity = quantity.map_err(|_| EvaluationError::Function(format!("{text:?} is no quantity")))?;
    Ok(AmountValue::value(quantity.as_approximate_f64()))
}

/// `kubernetes.Quantity` of kwok's expressions: a number that whole numbers and others are counted with.
pub(crate) struct AmountValue(f64);

impl AmountValue {
    /// So much.
    pub(crate) fn value(amount: f64) -> Value {
        Value::Host(Arc::new(AmountValue(amount)))
    }
}

impl HostValue for AmountValue {
    fn type_name(&self) -> &str {
        "kubernetes.Quantity"
    }

    fn number(&self) -> Option<f64> {
        Some(self.0)
    }

    fn with_number(&self, number: f64) -> Value {
        AmountValue::value(number)
    }
}

fn seconds(time: Time) -> f64 {
    time.timestamp_micros() as f64 / 1e6
}
