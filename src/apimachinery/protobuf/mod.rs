//! Kubernetes' protobuf: the body of a request in, the same tree that JSON would have given out. Pure data.
//!
//! In comes what a client sends as `application/vnd.kubernetes.protobuf`: four bytes of magic, then a
//! `runtime.Unknown` that names a kind and holds a message of it. Out come that name and, for the schema of
//! the kind, the object, zeros dropped as Go's `omitempty` would drop them, or gogo's error. Not here: which
//! kind is wanted (`decode` compares), canonical values, defaults. Nothing is ever written as protobuf:
//! every client that sends it accepts JSON.
//!
//! No message has code of its own. Types come from the [`Schema`](super::schema::Schema), numbers from
//! `manifests/schemas/protobuf.tsv`; a field that the table does not know is skipped, as by every decoder.

mod envelope;
mod error;
mod wire;

mod json_schema;
mod message;
mod numbers;
mod scalar;

#[cfg(test)]
mod encoder;
#[cfg(test)]
mod tests;

pub use envelope::{Envelope, open};
pub use error::Error;
pub use message::decode;

/// The media type of such a body.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
