//! The part of jq that keys of selectors and `expressionFrom` of stages are written in (kwok asks gojq).
//!
//! In comes a text, then trees; out comes what the query finds in each. There are paths, `[]`, slices, pipes,
//! commas, `//`, `?`, comparisons, `and` and `or`, arithmetic, `if`, lists, objects, and the functions of
//! [`functions`]. There are no variables, no definitions and no assignments: a query that has them is refused
//! when its stage is read. What goes wrong in a query, as an index into a text, makes it find nothing.

mod error;
mod evaluate;
mod functions;
mod node;
mod parser;
mod values;
mod words;

use serde_json::Value;

pub(crate) use error::QueryError;
use node::QueryNode;

/// A query that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JqQuery(QueryNode);

impl JqQuery {
    /// Reads a query.
    ///
    /// # Errors
    /// What it has that is not understood, and where.
    pub(crate) fn parse(text: &str) -> Result<JqQuery, QueryError> {
        parser::parse(text).map(JqQuery)
    }

    /// What it finds, without what is not there; nothing where something goes wrong.
    pub(crate) fn run(&self, tree: &Value) -> Vec<Value> {
        let mut found = evaluate::evaluate(&self.0, tree).unwrap_or_default();
        found.retain(|value| !value.is_null());
        found
    }
}

#[cfg(test)]
mod tests;
