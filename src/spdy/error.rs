//! What ends a connection before its time.

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// It broke.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// What the client sends is not SPDY/3.1, or goes beyond a bound.
    #[error("the client does not speak SPDY/3.1: {0}")]
    Protocol(&'static str),
}
