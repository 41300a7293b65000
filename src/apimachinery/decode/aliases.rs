//! The bound on what YAML's aliases may stand for: a text of a megabyte that is named ten thousand times
//! would be ten gigabytes.
//!
//! What a document may become grows with its own length, so no document without aliases ever meets the bound,
//! and aliases may add so much to it: [`MAX_ALIASED_BYTES`] of text and [`MAX_ALIASED_VALUES`] values. Beyond
//! that it is refused, while it is read, in the words of upstream's reader, which has a bound of its own.

use serde::de::Error;

/// How much text aliases may add to a document: as much as a request's body may have.
const MAX_ALIASED_BYTES: usize = 3 * 1024 * 1024;
/// How many values aliases may add to a document.
const MAX_ALIASED_VALUES: usize = 100_000;
/// go-yaml's words for it.
pub(super) const EXCESSIVE: &str = "document contains excessive aliasing";
/// serde_yaml's words for aliases of aliases, of which it has a bound itself.
pub(super) const REPETITIONS: &str = "repetition limit exceeded";

/// What may still come of a text.
pub(super) struct Allowance {
    bytes: Option<usize>,
    values: Option<usize>,
}

impl Allowance {
    /// Of a whole text. An escape such as `\L` is shorter than what it stands for, but not by half.
    pub(super) fn of(text: &[u8]) -> Allowance {
        let bytes = Some(2 * text.len() + MAX_ALIASED_BYTES);
        let values = Some(text.len() + MAX_ALIASED_VALUES);
        Allowance { bytes, values }
    }

    /// A value is read, whatever it is.
    pub(super) fn take_value<E: Error>(&mut self) -> Result<(), E> {
        self.values = self.values.and_then(|left| left.checked_sub(1));
        self.checked()
    }

    /// A text is read, which is not copied before.
    pub(super) fn take_text<E: Error>(&mut self, text: &str) -> Result<(), E> {
        self.bytes = self.bytes.and_then(|left| left.checked_sub(text.len()));
        self.checked()
    }

    /// Whether it was not enough.
    pub(super) fn is_exhausted(&self) -> bool {
        self.bytes.is_none() || self.values.is_none()
    }

    fn checked<E: Error>(&self) -> Result<(), E> {
        if self.is_exhausted() { Err(E::custom(EXCESSIVE)) } else { Ok(()) }
    }
}
