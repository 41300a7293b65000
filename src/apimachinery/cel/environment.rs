//! `Environment`: what expressions may name; `Program`: one that was checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::Expr;
use super::checker;
use super::cost::Budget;
use super::error::{CompileError, EvaluationError};
use super::estimate::{Estimator, Size};
use super::evaluate::Evaluator;
use super::functions::Patterns;
use super::parser::parse;
use super::types::{ObjectType, Type};
use super::value::Value;

/// The declared variables; the functions are always those of Kubernetes (`environment.MustBaseEnvSet`).
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, Type>,
    structures: BTreeMap<String, Arc<ObjectType>>,
    /// Names below which every structure is known, whatever its fields.
    open_structures: Vec<String>,
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

    /// Parses and checks.
    ///
    /// # Errors
    /// Everything that is wrong with the expression.
    pub fn compile(&self, expression: &str) -> Result<Program, CompileError> {
        let mut expr = parse(expression)?;
        let result = checker::check(&mut expr, &self.variables, &self.structures, &self.open_structures);
        let result = result.map_err(|issues| CompileError::new(expression, issues))?;
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

    /// What it costs at most, when every variable is of this size.
    pub fn estimate(&self, variables: &Size) -> u64 {
        Estimator { root: variables, scopes: vec![] }.estimate(&self.expr).cost
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
