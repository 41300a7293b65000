//! Why a fault is refused.

/// A fault that can never do what it says. The text says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Contradiction(pub String);
