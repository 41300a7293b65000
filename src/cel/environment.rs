//! `Environment`: what expressions may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::{ObjectType, Type};

/// The declared variables; the functions are always those of Kubernetes (`environment.MustBaseEnvSet`), and
/// those that are only known to one kind of expression.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub(super) variables: BTreeMap<String, Type>,
    pub(super) structures: BTreeMap<String, Arc<ObjectType>>,
    /// Names below which every structure is known, whatever its fields.
    pub(super) open_structures: Vec<String>,
    /// The functions of `jsonpatch`.
    pub(super) has_json_patch: bool,
    /// `cel.bind(name, value, expression)`
    pub(super) has_bindings: bool,
}

impl Environment {
    /// Without variables.
    pub fn new() -> Environment {
        Environment::default()
    }

    /// With a variable.
    pub fn with_variable(mut self, name: &str, of: Type) -> Environment {
        self.variables.insert(name.to_owned(), of);
        self
    }

    /// The type of a variable.
    pub fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.get(name)
    }

    /// With a type that expressions may construct: `Name{field: value}`.
    pub fn with_structure(mut self, object: Arc<ObjectType>) -> Environment {
        self.structures.insert(object.name.to_string(), object);
        self
    }

    /// With a type that expressions may construct with whatever fields, as may every type below it:
    /// `Name{a: Name.a{b: 1}}` (`mutation.DynamicTypeResolver`).
    pub fn with_open_structure(mut self, name: &str) -> Environment {
        self.open_structures.push(name.to_owned());
        self
    }

    /// With the functions of `jsonpatch` (`library.JSONPatch`).
    pub fn with_json_patch(mut self) -> Environment {
        self.has_json_patch = true;
        self
    }

    /// With `cel.bind` (`ext.Bindings`).
    pub fn with_bindings(mut self) -> Environment {
        self.has_bindings = true;
        self
    }
}
