//! The hash of a document, by which clients know whether theirs is still right.

use sha2::{Digest, Sha512};

/// What tells two states of a document apart: the ETag, and the hash in the v3 index.
pub fn hash(document: &[u8]) -> String {
    Sha512::digest(document).iter().map(|byte| format!("{byte:02X}")).collect()
}
