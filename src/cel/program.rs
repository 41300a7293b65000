//! `Program`: an expression that was checked.

use super::activation::Activation;
use super::ast::Expr;
use super::checker;
use super::constants;
use super::cost::Budget;
use super::environment::Environment;
use super::error::{CompileError, EvaluationError};
use super::estimate::Estimator;
use super::evaluate::CelEvaluator;
use super::parser::parse;
use super::patterns::Patterns;
use super::sizes::{Size, SizeRoot};
use super::types::Type;
use super::validators;
use super::value::Value;

impl Environment {
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
        constants::find(&mut expr).map_err(|why| CompileError::instantiation(why.into()))?;
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
        let root = SizeRoot { size: variables, is_lax };
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
        let mut evaluator = CelEvaluator { activation, patterns: &self.patterns, budget, scopes: vec![] };
        evaluator.evaluate(&self.expr)
    }
}
