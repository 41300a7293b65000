//! The envelope of every message: the magic, and `runtime.Unknown`, which says what is in it.

use super::error::ProtobufError;
use super::wire::{Reader, write_bytes, write_nested};

/// `k8s` and a zero: what tells Kubernetes' protobuf from any other bytes.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// An opened body: `runtime.Unknown`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `typeMeta.apiVersion`; may be empty.
    pub api_version: String,
    /// `typeMeta.kind`; may be empty.
    pub kind: String,
    /// The message.
    pub raw: &'a [u8],
}

/// Opens a body.
///
/// # Errors
/// Without the magic, with nothing after it, or with a broken envelope.
pub fn open(body: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    if body.is_empty() {
        return Err(ProtobufError::Empty);
    }
    let unknown = body.strip_prefix(MAGIC).ok_or(ProtobufError::NoPrefix)?;
    if unknown.is_empty() {
        return Err(ProtobufError::EmptyBody);
    }
    let mut envelope = Envelope::default();
    let mut reader = Reader::new(unknown, "Unknown");
    while let Some((number, value)) = reader.next()? {
        match number {
            1 => type_meta(&mut envelope, value.bytes("typeMeta")?)?,
            2 => envelope.raw = value.bytes("raw")?,
            // The encoding and type of the content: upstream's decoder does not ask for them either.
            _ => {}
        }
    }
    Ok(envelope)
}

/// The name of the object in a body: number 1 of the metadata, which is number 1 of every object. Nothing
/// when the body cannot be read so far.
pub fn name_in(body: &[u8]) -> Option<String> {
    let metadata = first_value(open(body).ok()?.raw)?;
    String::from_utf8(first_value(metadata)?.to_vec()).ok()
}

/// The bytes of number 1 in a message.
fn first_value(message: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(message, "");
    while let Some((number, value)) = reader.next().ok()? {
        if number == 1 {
            return value.bytes("").ok();
        }
    }
    None
}

/// Puts what `write` appends, the message of an object, into an envelope, which is appended.
pub fn seal(out: &mut Vec<u8>, api_version: &str, kind: &str, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(MAGIC);
    write_nested(out, 1, |name| {
        write_bytes(name, 1, api_version.as_bytes());
        write_bytes(name, 2, kind.as_bytes());
    });
    write_nested(out, 2, write);
    // The encoding and type of the content: a message, as it is.
    write_bytes(out, 3, b"");
    write_bytes(out, 4, b"");
}

fn type_meta(envelope: &mut Envelope, message: &[u8]) -> Result<(), ProtobufError> {
    let mut reader = Reader::new(message, "TypeMeta");
    while let Some((number, value)) = reader.next()? {
        match number {
            1 => envelope.api_version = value.text("apiVersion")?,
            2 => envelope.kind = value.text("kind")?,
            _ => {}
        }
    }
    Ok(())
}
