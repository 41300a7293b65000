//! `Environment`: what expressions may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::declarations::{self, Overload};
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
    /// The functions of whoever evaluates, by name.
    host_functions: BTreeMap<String, Vec<Overload>>,
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

    /// With a form of a function of the host's ([`super::HostFunctions`]); `target` is that of a member
    /// function.
    pub fn with_function(
        mut self,
        name: &str,
        target: Option<Type>,
        args: &[Type],
        result: Type,
    ) -> Environment {
        let overload = Overload { target, args: args.to_vec(), result };
        self.host_functions.entry(name.to_owned()).or_default().push(overload);
        self
    }

    /// The forms of a function; None where none is declared.
    pub(super) fn forms(&self, function: &str) -> Option<&[Overload]> {
        let own = self.host_functions.get(function).map(Vec::as_slice);
        own.or_else(|| declarations::overloads(function))
    }
}
