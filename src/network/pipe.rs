//! The two ends of a connection.

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};

/// So many bytes are on their way in one direction of a connection; whoever sends more waits.
pub const WINDOW_BYTES: usize = 64 << 10;

/// Both ends of a new connection.
pub fn connection() -> (DuplexStream, DuplexStream) {
    tokio::io::duplex(WINDOW_BYTES)
}

/// What bytes come from and go to: a connection, as it is or within TLS.
pub(crate) trait BytePipe: AsyncRead + AsyncWrite + Unpin + Send {}

impl<Io: AsyncRead + AsyncWrite + Unpin + Send> BytePipe for Io {}

/// Any of them, so that what is spoken on it is compiled once.
pub(crate) type AnyPipe<'a> = Box<dyn BytePipe + 'a>;
