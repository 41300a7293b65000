//! What a server remembers of those who asked it, for as long as it runs.

/// What a server was told.
#[derive(Debug, Default)]
pub struct ServerState {
    /// Whether it says of itself that it is well (agnhost's `grpc-health-checking`); nothing while nobody told it.
    pub(crate) is_serving: Option<bool>,
}

impl ServerState {
    /// Whether somebody told it to answer otherwise than by itself.
    pub fn is_told(&self) -> bool {
        self.is_serving.is_some()
    }
}
