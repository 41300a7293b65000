//! Secrets that are compared: never byte by byte until the first difference, which could be measured.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A secret of which only its digest is kept: enough to know it again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digested([u8; 32]);

impl Digested {
    /// Of a secret.
    pub(super) fn of(secret: &str) -> Digested {
        Digested(Sha256::digest(secret).into())
    }

    /// Whether it is the same secret, in a time that does not depend on where they differ.
    pub(super) fn is(&self, other: &Digested) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// Whether two secrets are the same, in a time that depends on neither.
pub(super) fn same(left: &str, right: &str) -> bool {
    Digested::of(left).is(&Digested::of(right))
}
