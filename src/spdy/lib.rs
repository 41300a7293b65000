//! spdy: SPDY/3.1 as kubectl and kubelets speak it, many streams over one connection (`moby/spdystream`).
//!
//! Comes in: a connection that was upgraded, or a websocket that carries the same bytes. Goes out: the
//! streams that the client opens, each with its headers, to be read and written. It knows no
//! Kubernetes: what a stream is for stands in its headers, which others read.
//!
//! HTTP asked for this protocol twenty years after its death only here; no crate of these days has it.
//! As upstream's own library it sends no window updates and holds to none: a stream that is not read
//! holds up the whole connection, which is what bounds it.

#![warn(missing_docs, unreachable_pub)]

mod compression;
mod dictionary;
mod error;
mod frame;
mod session;

#[cfg(test)]
mod tests;

pub use compression::Headers;
pub use error::ConnectionError;
pub use session::{Incoming, Sender, Stream, StreamReset, serve};
