//! What can be wrong with an expression, and with running it, in cel-go's words.

use std::fmt;

/// One thing that is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Byte offset in the expression.
    pub at: usize,
    /// As `undeclared reference to 'x' (in container '')`.
    pub message: String,
}

/// An expression that does not compile. Its text is cel-go's, place and line included; callers put
/// `compilation failed: ` before it, as upstream does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    source: String,
    /// By place.
    pub issues: Vec<Issue>,
    /// The words of the grammar's own parser, where the text is no expression at all.
    syntax: Option<String>,
    /// It is right, and yet no program can be made of it.
    is_instantiation: bool,
}

impl CompileError {
    pub(super) fn new(source: &str, mut issues: Vec<Issue>) -> CompileError {
        issues.sort_by_key(|issue| issue.at);
        CompileError { source: source.to_owned(), issues, syntax: None, is_instantiation: false }
    }

    pub(super) fn instantiation(text: String) -> CompileError {
        CompileError { source: String::new(), issues: vec![], syntax: Some(text), is_instantiation: true }
    }

    /// Whether it is no fault of the expression's form (`program instantiation failed`).
    pub fn is_instantiation(&self) -> bool {
        self.is_instantiation
    }

    /// With what callers put before it.
    pub fn described(&self) -> String {
        let what = if self.is_instantiation { "program instantiation" } else { "compilation" };
        format!("{what} failed: {self}")
    }

    pub(super) fn syntax(source: &str, issue: Issue, text: Option<String>) -> CompileError {
        CompileError { source: source.to_owned(), issues: vec![issue], syntax: text, is_instantiation: false }
    }
}

impl std::error::Error for CompileError {}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.syntax {
            return f.write_str(text);
        }
        for (nth, issue) in self.issues.iter().enumerate() {
            if nth > 0 {
                f.write_str("\n")?;
            }
            let (line, column, snippet) = place(&self.source, issue.at);
            write!(f, "ERROR: <input>:{line}:{}: {}", column + 1, issue.message)?;
            write!(f, "\n | {snippet}\n | {}^", ".".repeat(column))?;
        }
        Ok(())
    }
}

/// Line (from 1), column in code points (from 0) and the text of the line.
fn place(source: &str, at: usize) -> (usize, usize, &str) {
    let before = source.get(..at).unwrap_or(source);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    let snippet = source[start..].lines().next().unwrap_or_default();
    (line, before[start..].chars().count(), snippet)
}

/// Why an evaluation gave no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// A field or key that is not there.
    #[error("no such key: {0}")]
    NoSuchKey(String),
    /// Values that an operator or function is not made for.
    #[error("no such overload")]
    NoSuchOverload,
    /// A list has no such place.
    #[error("index out of bounds: {0}")]
    IndexOutOfBounds(i64),
    /// A name that the activation does not hold.
    #[error("no such attribute(s): {0}")]
    NoSuchAttribute(String),
    /// `/` by nothing.
    #[error("division by zero")]
    DivisionByZero,
    /// `%` by nothing.
    #[error("modulus by zero")]
    ModulusByZero,
    /// A number left its range.
    #[error("{0} overflow")]
    Overflow(&'static str),
    /// The budget is spent.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimitExceeded,
    /// What a function says.
    #[error("{0}")]
    Function(String),
}
