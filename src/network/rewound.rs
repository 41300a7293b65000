//! A connection whose first bytes were looked at, and are read again by whoever reads next.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// So many bytes are looked at.
pub(crate) const HEAD_BYTES: usize = 5;

/// A connection that is read from its beginning, though its first bytes are known.
#[derive(Debug)]
pub struct Rewound<Io> {
    io: Io,
    head: [u8; HEAD_BYTES],
    /// How many there were of them: fewer only where the other end said no more.
    length: usize,
    /// How many have been read again.
    read: usize,
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Rewound<Io> {
    /// Waits for the first bytes.
    ///
    /// # Errors
    /// The connection's.
    pub(crate) async fn after_head(mut io: Io) -> io::Result<Rewound<Io>> {
        let mut head = [0; HEAD_BYTES];
        let mut length = 0;
        while length < HEAD_BYTES {
            match io.read(&mut head[length..]).await? {
                0 => break,
                more => length += more,
            }
        }
        Ok(Rewound { io, head, length, read: 0 })
    }

    /// The first bytes.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head[..self.length]
    }

    /// The connection behind them.
    pub(crate) fn into_rest(self) -> Io {
        self.io
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for Rewound<Io> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let again = &this.head[this.read..this.length];
        if again.is_empty() {
            return Pin::new(&mut this.io).poll_read(cx, out);
        }
        let fits = again.len().min(out.remaining());
        out.put_slice(&again[..fits]);
        this.read += fits;
        Poll::Ready(Ok(()))
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Rewound<Io> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
