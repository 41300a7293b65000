//! `Environment`: what expressions may name; `Program`: one that was checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::Expr;
use super::checker;
use super::constants;
use super::cost::Budget;
use super::error::{CompileError, EvaluationError};
use super::estimate::{Estimator, Root, Size};
use super::evaluate::Evaluator;
use super::functions::Patterns;
use super::parser::parse;
use super::types::{ObjectType, Type};
use super::validators;
use super::value::Value;

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

    /// Parses and checks.
    ///
    /// # Errors
    /// Everything that is wrong with the expression.
    pub fn compile(&self, expression: &str) -> Result<Program, CompileError> {
        let mut expr = parse(expression, self.has_bindings)?;
        let result = checker::check(&mut expr, self);
        let result = result.map_err(|issues| CompileError::new(expression, issues))?;
        let wrong = validators::validate(&expr);
        if !wrong.is_empty() {
            return Err(CompileError::new(expression, wrong));
        }
        constants::find(&mut expr).map_err(CompileError::instantiation)?;
        Ok(Program { expr, result, patterns: Patterns::default() })
    }
}

/// A checked expression. Kept by its owner: nothing is compiled per request.
#[derive(Debug)]
pub struct Program {
    pub(super) expr: Expr,
    result: Type,
    patterns: Patterns,
}

impl Program {
    /// The type of its value.
    pub fn result_type(&self) -> &Type {
        &self.result
    }

    /// What it costs at most, when every variable is of this size. `is_lax` is the way of custom resources:
    /// what is not part of a variable is thought to be as large as it.
    pub fn estimate(&self, variables: &Size, is_lax: bool) -> u64 {
        let root = Root { size: variables, is_lax };
        Estimator { root, scopes: vec![] }.estimate(&self.expr).cost
    }

    /// Whether it asks for a variable.
    pub fn mentions(&self, variable: &str) -> bool {
        super::ast::mentions(&self.expr, variable)
    }

    /// Whether it asks for a field of a variable.
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        super::ast::selects(&self.expr, variable, field)
    }

    /// Runs it.
    ///
    /// # Errors
    /// What went wrong, in cel-go's words; a budget that is spent.
    pub fn evaluate(&self, activation: &Activation, budget: &mut Budget) -> Result<Value, EvaluationError> {
        let mut evaluator = Evaluator { activation, patterns: &self.patterns, budget, scopes: vec![] };
        evaluator.evaluate(&self.expr)
    }
}

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
