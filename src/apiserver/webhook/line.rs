//! `WebhookConnection`: a connection, whether it is a socket's or a pod's (Go's `net.Conn`).

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

/// What a line is made of.
trait Wire: Read + Write + Unpin + Send {}

impl<T: Read + Write + Unpin + Send> Wire for T {}

/// One connection, and whom it reached.
pub(super) struct WebhookConnection(Box<dyn Wire>, Option<SocketAddr>);

/// On an answer: the address that the connection was made to.
#[derive(Clone, Copy, Debug)]
pub struct Reached(pub SocketAddr);

impl WebhookConnection {
    pub(super) fn new(
        wire: impl Read + Write + Unpin + Send + 'static,
        to: Option<SocketAddr>,
    ) -> WebhookConnection {
        WebhookConnection(Box::new(wire), to)
    }
}

impl Connection for WebhookConnection {
    fn connected(&self) -> Connected {
        match self.1 {
            Some(address) => Connected::new().extra(Reached(address)),
            None => Connected::new(),
        }
    }
}

impl Read for WebhookConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for WebhookConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bytes)
    }
}
