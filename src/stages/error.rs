//! `StageError`: why a Stage cannot be read, or not be played.

use std::fmt;

/// Why a Stage cannot be read, or not be played: for people, as `selector.matchExpressions[0].key: ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageError(String);

impl StageError {
    /// With where it is before it.
    pub(crate) fn at(self, place: impl fmt::Display) -> StageError {
        StageError(format!("{place}{}", self.0))
    }
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for StageError {
    fn from(why: String) -> StageError {
        StageError(why)
    }
}

impl From<&str> for StageError {
    fn from(why: &str) -> StageError {
        StageError(why.to_owned())
    }
}
