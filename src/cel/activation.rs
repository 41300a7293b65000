//! `Activation`: what the names of an expression stand for.

use std::collections::BTreeMap;

use super::value::Value;

/// The values of the variables.
#[derive(Clone, Debug, Default)]
pub struct Activation {
    variables: BTreeMap<String, Value>,
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

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }
}
