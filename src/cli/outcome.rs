//! How a subcommand ends: lines for a person, or one that says what went wrong.

use std::io::Write;

/// What ends a subcommand badly: one line for a person.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl Failure {
    /// From what was tried and what the system said.
    pub fn new(what: impl std::fmt::Display, why: impl std::fmt::Display) -> Failure {
        Failure(format!("{what}: {why}"))
    }
}

/// Says what went wrong, on standard error.
pub(super) fn complain(Failure(text): &Failure) {
    let _ = writeln!(std::io::stderr(), "error: {text}");
}

/// Writes a line to standard output; a reader who has gone away ends nothing.
pub(super) fn say(text: impl AsRef<str>) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_ref().as_bytes()).and_then(|()| out.write_all(b"\n"));
}

/// Runs what a subcommand asks of a server.
pub(super) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new("cannot start", error))?.block_on(future)
}
