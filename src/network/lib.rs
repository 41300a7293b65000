//! network: connections between simulated pods, and to them. No socket is opened and no name resolved: a
//! connection is two ends of a pipe in memory.
//!
//! Comes in: who asks, and a handler that says what is answered. Goes out: bytes, as over TCP. It must not
//! know Kubernetes: no pods, no Services, addresses alone.

#![warn(missing_docs)]

pub mod http_client;
pub mod http_server;

#[cfg(test)]
mod tests;

use tokio::io::DuplexStream;

/// So many bytes are on their way in one direction of a connection; whoever sends more waits.
pub const WINDOW_BYTES: usize = 64 << 10;

/// Both ends of a new connection.
pub fn connection() -> (DuplexStream, DuplexStream) {
    tokio::io::duplex(WINDOW_BYTES)
}
