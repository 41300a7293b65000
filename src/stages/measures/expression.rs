//! Expressions over a node, a pod and a container (kwok's `pkg/kwok/metrics/evaluator.go`).

use std::sync::Arc;

use cel::{Activation, Budget, Environment, EvaluationError, HostFunctions, Program, Type, Value};

use super::node_usage::{NodeUsage, UsageOf};
use crate::cel_functions::{CelHost, environment, member};
use crate::error::StageError;
use apimachinery::time::Time;
use entropy::Entropy;

/// What one look may cost, in units of CEL's cost; beyond it the expression has no value.
const MAX_COST: u64 = 10_000;

/// What expressions are about. What is not known is null.
#[derive(Clone, Debug)]
pub(super) struct MeasureSubject {
    pub(super) node: Value,
    pub(super) pod: Value,
    pub(super) container: Value,
}

impl Default for MeasureSubject {
    fn default() -> MeasureSubject {
        MeasureSubject { node: Value::Null, pod: Value::Null, container: Value::Null }
    }
}

/// An expression that was checked.
#[derive(Debug)]
pub(super) struct MeasureExpression(Program);

impl MeasureExpression {
    /// # Errors
    /// What is wrong with it, in CEL's words.
    pub(super) fn parse(text: &str) -> Result<MeasureExpression, StageError> {
        measuring().compile(text).map(MeasureExpression).map_err(|why| why.to_string().into())
    }

    /// Whether the value may depend on `node`, `pod` or `container`.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.0.mentions(name)
    }

    /// # Errors
    /// What went wrong, or that it cost too much.
    pub(super) fn value(
        &self,
        subject: &MeasureSubject,
        host: &Arc<MeasureHost>,
    ) -> Result<Value, StageError> {
        let mut activation = Activation::new().with_host(host.clone());
        let MeasureSubject { node, pod, container } = subject;
        for (name, value) in [("node", node), ("pod", pod), ("container", container)] {
            if self.0.mentions(name) {
                activation.set(name, value.clone());
            }
        }
        self.0.evaluate(&activation, &mut Budget::new(MAX_COST)).map_err(|why| why.to_string().into())
    }

    /// Its value as a number (`AsFloat64`).
    ///
    /// # Errors
    /// As of [`MeasureExpression::value`], and that it is none, or not finite.
    pub(super) fn number(
        &self,
        subject: &MeasureSubject,
        host: &Arc<MeasureHost>,
    ) -> Result<f64, StageError> {
        let number = match self.value(subject, host)? {
            Value::Int(number) => number as f64,
            Value::Uint(number) => number as f64,
            Value::Double(number) => number,
            Value::Bool(flag) => f64::from(u8::from(flag)),
            Value::Duration(time) => time.num_nanoseconds().unwrap_or(i64::MAX) as f64,
            Value::Host(host) if host.number().is_some() => host.number().unwrap_or_default(),
            other => return Err(format!("a {} is no number", other.type_name()).into()),
        };
        if number.is_finite() { Ok(number) } else { Err("the number is not finite".into()) }
    }
}

/// The functions of stages, and those that ask what is used.
fn measuring() -> Environment {
    let of_anything = |environment: Environment, name: &str| {
        let one = environment.with_function(name, None, &[Type::Dyn], Type::Double);
        one.with_function(name, Some(Type::Dyn), &[], Type::Double)
    };
    let mut known = environment().with_function("now", None, &[], Type::Timestamp);
    for name in ["StartedContainersTotal", "startedContainersTotal"] {
        known = of_anything(known, name);
    }
    for name in ["Usage", "CumulativeUsage"] {
        known = known.with_function(name, Some(Type::Dyn), &[Type::String], Type::Double);
        known = known.with_function(name, Some(Type::Dyn), &[Type::String, Type::String], Type::Double);
    }
    // Amounts are counted with whatever the other number is, which shows when it is done.
    for operator in ["_+_", "_-_", "_*_", "_/_"] {
        known = known.with_function(operator, None, &[Type::Dyn, Type::Dyn], Type::Dyn);
    }
    ["node", "pod", "container"].iter().fold(known, |known, name| known.with_variable(name, Type::Dyn))
}

/// What the functions ask.
pub(super) struct MeasureHost {
    functions: CelHost,
    /// None while it is worked out what somebody uses: that would never end.
    usage: Option<Arc<dyn NodeUsage>>,
}

impl MeasureHost {
    /// At a moment. What is drawn is the same whenever that moment is looked at.
    pub(super) fn at(now: Time, usage: Option<Arc<dyn NodeUsage>>) -> Arc<MeasureHost> {
        let entropy = Entropy::seeded(now.timestamp_millis().unsigned_abs());
        Arc::new(MeasureHost { functions: CelHost { now, entropy }, usage })
    }

    fn used(&self, function: &str, target: &Value, args: &[Value]) -> Option<f64> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let metadata = |name: &str| text(member(member(target, "metadata")?, name)?);
        let name = metadata("name")?;
        // A Node is in no namespace.
        let pod = metadata("namespace").filter(|namespace| !namespace.is_empty());
        let pod = pod.as_ref().map(|namespace| (namespace.as_str(), name.as_str()));
        let (resource, container) = (text(args.first()?)?, args.get(1).and_then(text));
        let of = UsageOf { pod, container: container.as_deref(), resource: &resource };
        let usage = self.usage.as_ref()?;
        Some(if function == "Usage" { usage.usage(&of) } else { usage.cumulative_usage(&of) })
    }
}

impl HostFunctions for MeasureHost {
    fn call(
        &self,
        function: &str,
        target: Option<&Value>,
        args: &[Value],
    ) -> Option<Result<Value, EvaluationError>> {
        let number = match (function, target) {
            ("Usage" | "CumulativeUsage", Some(target)) => self.used(function, target, args),
            ("StartedContainersTotal" | "startedContainersTotal", _) => {
                self.usage.as_ref().map(|usage| usage.started_containers() as f64)
            }
            ("now", None) => return self.functions.call("Now", None, args),
            _ => return self.functions.call(function, target, args),
        };
        let unknown = || EvaluationError::Function(format!("{function} is not known of that here"));
        Some(number.map(Value::Double).ok_or_else(unknown))
    }
}
