//! What is wrong with a flag or a file of authentication.

use std::fmt;
use std::path::Path;

/// A flag that cannot be followed. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AuthenticationConfigError(pub String);

impl AuthenticationConfigError {
    /// What is wrong with a file.
    pub fn file(path: &Path, error: impl fmt::Display) -> AuthenticationConfigError {
        AuthenticationConfigError(format!("cannot use {}: {error}", path.display()))
    }
}
