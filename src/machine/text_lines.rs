//! Lines and words of text protocols, and how long they may be.

/// A command may be so long; whoever sends a longer one is cut off.
pub const MAX_COMMAND_BYTES: usize = 1 << 20;

/// So many words may a command have; one with more is no command.
pub(crate) const MAX_WORDS: usize = 1024;
/// So much is said to one command; whoever asks for more at once is told so, and cut off.
pub(crate) const MAX_SAID_BYTES: usize = 4 << 20;
/// What comes of what was received.
#[derive(Debug, Default, PartialEq)]
pub struct HeardText {
    /// So many bytes were understood.
    pub taken: usize,
    /// What is said to that.
    pub says: Vec<u8>,
    /// The connection ends with it.
    pub ends: bool,
}

/// A line and its length with its end.
pub(crate) fn line(received: &[u8]) -> Option<(&[u8], usize)> {
    let end = received.iter().position(|byte| *byte == b'\n')?;
    Some((received[..end].strip_suffix(b"\r").unwrap_or(&received[..end]), end + 1))
}

/// A number that is not below zero.
pub(crate) fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A line's words, unless there are too many.
pub(crate) fn words(line: &[u8], is_between: impl FnMut(&u8) -> bool) -> Option<Vec<&[u8]>> {
    let words = line.split(is_between).filter(|word| !word.is_empty());
    let words: Vec<&[u8]> = words.take(MAX_WORDS + 1).collect();
    (words.len() <= MAX_WORDS).then_some(words)
}
