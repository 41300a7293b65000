//! What is wrong with a query.

use std::fmt;

/// What is wrong with a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueryError(pub(super) String);

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
