//! `Activation`: what the names of an expression stand for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::error::EvaluationError;
use super::value::Value;

/// Functions that whoever evaluates adds; an environment declares them
/// ([`super::Environment::with_function`]).
pub trait HostFunctions: Send + Sync {
    /// The value of a call; None where the host has no such function.
    fn call(
        &self,
        function: &str,
        target: Option<&Value>,
        args: &[Value],
    ) -> Option<Result<Value, EvaluationError>>;
}

/// The host of an activation.
#[derive(Clone)]
struct BoxedHost(Arc<dyn HostFunctions>);

impl fmt::Debug for BoxedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

/// The values of the variables.
#[derive(Clone, Debug, Default)]
pub struct Activation {
    variables: BTreeMap<String, Value>,
    host: Option<BoxedHost>,
}

impl Activation {
    /// Without any.
    pub fn new() -> Activation {
        Activation::default()
    }

    /// With one.
    pub fn with(mut self, name: &str, value: Value) -> Activation {
        self.set(name, value);
        self
    }

    /// Sets one.
    pub fn set(&mut self, name: &str, value: Value) {
        self.variables.insert(name.to_owned(), value);
    }

    /// With the functions of a host.
    pub fn with_host(mut self, host: Arc<dyn HostFunctions>) -> Activation {
        self.host = Some(BoxedHost(host));
        self
    }

    /// What the host says to a call; None where there is none, or it has no such function.
    pub(super) fn call(
        &self,
        function: &str,
        target: Option<&Value>,
        args: &[Value],
    ) -> Option<Result<Value, EvaluationError>> {
        self.host.as_ref()?.0.call(function, target, args)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }
}
