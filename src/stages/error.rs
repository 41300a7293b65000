//! `StageError`: why a Stage cannot be read, or not be played.

use std::fmt;

golang::text_error! {
    /// Why a Stage cannot be read, or not be played: for people, as `selector.matchExpressions[0].key: ...`.
    pub struct StageError;
}

impl StageError {
    /// With where it is before it.
    pub(crate) fn at(self, place: impl fmt::Display) -> StageError {
        StageError(format!("{place}{}", self.0))
    }
}
