//! The bound on what YAML's aliases may stand for: a text of a megabyte that is named ten thousand times
//! would be ten gigabytes.
//!
//! What a document may become grows with its own length, so no document without aliases ever meets the bound,
//! and aliases may add so much to it: [`MAX_ALIASED_BYTES`] of text and [`MAX_ALIASED_VALUES`] values. Beyond
//! that it is refused, while it is read, in the words of upstream's reader, which has a bound of its own.

golang::text_error! {
    /// A text that is no YAML, or one whose aliases stand for too much; in go-yaml's words.
    pub struct BadYaml;
}

/// How much text aliases may add to a document: as much as a request's body may have.
const MAX_ALIASED_BYTES: usize = 3 * 1024 * 1024;
/// How many values aliases may add to a document.
const MAX_ALIASED_VALUES: usize = 100_000;
/// go-yaml's words for it.
const EXCESSIVE: &str = "yaml: document contains excessive aliasing";

/// What may still come of a text.
pub(super) struct Allowance {
    bytes: usize,
    values: usize,
}

impl Allowance {
    /// Of a whole text. An escape such as `\L` is shorter than what it stands for, but not by half.
    pub(super) fn of(text: &str) -> Allowance {
        Allowance { bytes: 2 * text.len() + MAX_ALIASED_BYTES, values: text.len() + MAX_ALIASED_VALUES }
    }

    /// A value is read, whatever it is, with so much text, which is not copied before.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), BadYaml> {
        let left = (self.values.checked_sub(1), self.bytes.checked_sub(bytes));
        let (Some(values), Some(bytes)) = left else { return Err(EXCESSIVE.into()) };
        self.values = values;
        self.bytes = bytes;
        Ok(())
    }
}
