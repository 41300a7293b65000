//! Connections that redirections have opened, as `interpreter::dialling` speaks on them.

use std::net::SocketAddr;

/// One that a script has opened.
pub(crate) struct ShellConnection {
    pub(super) to: SocketAddr,
    pub(super) is_udp: bool,
    /// Whether anybody may read what comes back.
    pub(crate) hears: bool,
    /// What was written, and not said yet. Bound: [`crate::bounds::MAX_MEMORY_BYTES`] for all together.
    pub(super) unsent: Vec<u8>,
    /// What came back was read.
    pub(super) is_over: bool,
}
