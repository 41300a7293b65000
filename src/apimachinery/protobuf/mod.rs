//! Kubernetes' protobuf: bodies of requests in, answers out, by the same tables. Pure data.
//!
//! In comes what a client sends as `application/vnd.kubernetes.protobuf`: four bytes of magic, then a
//! `runtime.Unknown` that names a kind and holds a message of it. Out come that name and, for the schema of
//! the kind, the object, zeros dropped as Go's `omitempty` would drop them, or gogo's error. The other way
//! round: an object as JSON would write it becomes the bytes that gogo's generated code would write. Not
//! here: which kind is wanted (`decode` compares), canonical values, defaults, who asks for protobuf.
//!
//! No message has code of its own. Types come from the [`Schema`](super::schema::Schema), numbers and
//! pointers from `manifests/schemas/protobuf.tsv`; a field that the table does not know is skipped, as by
//! every decoder.

mod envelope;
mod error;
mod wire;

mod encode;
mod json_schema;
mod message;
mod numbers;
mod scalar;

#[cfg(test)]
mod tests;

pub use encode::{encode, encode_document};
pub use envelope::{Envelope, name_in, open, seal};
pub use error::ProtobufError;
pub use message::decode;
pub use wire::{pieces, write_bytes, write_double, write_int, write_nested};

/// The media type of such a body.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
