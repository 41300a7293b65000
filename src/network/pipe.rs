//! The two ends of a connection.

use tokio::io::DuplexStream;

/// So many bytes are on their way in one direction of a connection; whoever sends more waits.
pub const WINDOW_BYTES: usize = 64 << 10;

/// Both ends of a new connection.
pub fn connection() -> (DuplexStream, DuplexStream) {
    tokio::io::duplex(WINDOW_BYTES)
}
