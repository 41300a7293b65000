//! What somebody says to a process whose standard input is open (`attach`).
//!
//! All that was said so far is kept with its times, and the process is played again with it: so it says the
//! same to everybody who is attached, and to its log.

use std::time::Duration;

use crate::byte_text;

/// So much is taken that somebody says to one run of a process; it does not hear more.
pub const MAX_SAID_BYTES: usize = 1 << 20;

/// So much is taken of what is sent to a command through a pipe (`exec -i`); with more it is killed.
pub const MAX_PIPED_BYTES: usize = 8 << 20;

/// So many sizes of its window are taken; it does not hear of more.
pub const MAX_SIZES: usize = 1024;

/// How large the window of a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Letters in a line.
    pub columns: u16,
    /// How many of those.
    pub lines: u16,
}

impl Default for TerminalSize {
    /// Of a terminal of which nobody says it.
    fn default() -> TerminalSize {
        TerminalSize { columns: 80, lines: 24 }
    }
}

/// What was said to a process so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandardInput {
    /// Whether it is a terminal.
    pub is_terminal: bool,
    /// Whether anybody was attached so far: the first one hears all from the start.
    pub was_attached: bool,
    /// What came, and when; after the start of the process.
    pub(crate) pieces: Vec<(Duration, String)>,
    /// How large the window of its terminal was, and from when on.
    sizes: Vec<(Duration, TerminalSize)>,
    /// How much that is.
    bytes: usize,
    /// Whether a pipe was sent more than is taken.
    is_over: bool,
    /// When it ended.
    pub(crate) closed: Option<Duration>,
    /// The beginning of a letter of which the rest is to come.
    unfinished: Vec<u8>,
}

impl StandardInput {
    /// Of a process to which nothing was said yet.
    pub fn new(is_terminal: bool) -> StandardInput {
        StandardInput { is_terminal, ..StandardInput::default() }
    }

    /// What a shell hears that begins anew behind all of this: the rest of a letter may be still to come.
    #[must_use]
    pub fn anew(&self) -> StandardInput {
        let unfinished = self.unfinished.clone();
        StandardInput { is_terminal: self.is_terminal, unfinished, ..StandardInput::default() }
    }

    /// Somebody says this; what is over [`MAX_SAID_BYTES`] nobody hears, nor what comes after its end.
    pub fn say(&mut self, after: Duration, bytes: &[u8]) {
        self.say_within(MAX_SAID_BYTES, after, bytes);
    }

    /// This comes through a pipe; of what is over [`MAX_PIPED_BYTES`] it is noted that it is too much.
    pub fn pipe(&mut self, after: Duration, bytes: &[u8]) {
        self.is_over |= !self.say_within(MAX_PIPED_BYTES, after, bytes) && self.closed.is_none();
    }

    /// Whether more came through a pipe than is taken.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether it is heard.
    fn say_within(&mut self, most: usize, after: Duration, bytes: &[u8]) -> bool {
        if self.closed.is_some() || self.bytes + bytes.len() > most {
            return false;
        }
        self.bytes += bytes.len();
        self.unfinished.extend_from_slice(bytes);
        let text = self.take_whole();
        self.hear(after, text);
        true
    }

    fn hear(&mut self, after: Duration, text: String) {
        match self.pieces.last_mut() {
            Some((at, last)) if *at == after => last.push_str(&text),
            _ if text.is_empty() => {}
            _ => self.pieces.push((after, text)),
        }
    }

    /// The window has another size; what is over [`MAX_SIZES`] nobody hears.
    pub fn resize(&mut self, after: Duration, size: TerminalSize) {
        let is_full = self.sizes.len() >= MAX_SIZES;
        match self.sizes.last_mut() {
            Some((_, last)) if *last == size => {}
            Some((at, last)) if *at == after => *last = size,
            _ if is_full => {}
            _ => self.sizes.push((after, size)),
        }
    }

    /// How large the window of its terminal was then; nothing where it has none.
    pub(crate) fn size_at(&self, after: Duration) -> Option<TerminalSize> {
        let said = self.sizes.iter().rev().find(|(at, _)| *at <= after).map(|(_, size)| *size);
        self.is_terminal.then(|| said.unwrap_or_default())
    }

    /// The letters that are whole, and bytes that are part of none.
    fn take_whole(&mut self) -> String {
        let whole = match std::str::from_utf8(&self.unfinished) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.unfinished.len(),
        };
        let rest = self.unfinished.split_off(whole);
        let text = byte_text::text_of(&self.unfinished);
        self.unfinished = rest;
        text
    }

    /// Nobody says anything any more: of a letter that is never finished the bytes are heard.
    pub fn close(&mut self, after: Duration) {
        if self.closed.is_none() {
            let rest = byte_text::text_of(&std::mem::take(&mut self.unfinished));
            self.hear(after, rest);
            self.closed = Some(after);
        }
    }
}

/// How far a process has heard what was said to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeardSoFar {
    pub(crate) pieces: usize,
    pub(crate) bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_notes_that_there_is_too_much() {
        let mut input = StandardInput::new(false);
        input.pipe(Duration::ZERO, &vec![b'a'; MAX_PIPED_BYTES]);
        assert!(!input.is_over());
        input.pipe(Duration::ZERO, b"b");
        assert!(input.is_over());
        let mut closed = StandardInput::new(false);
        closed.close(Duration::ZERO);
        closed.pipe(Duration::ZERO, b"late");
        assert!(!closed.is_over());
    }

    #[test]
    fn every_byte_is_heard_also_when_no_letter_comes_of_it() {
        let heard = |parts: &[&[u8]]| {
            let mut input = StandardInput::new(false);
            parts.iter().for_each(|part| input.pipe(Duration::ZERO, part));
            let before: usize = input.pieces.iter().map(|(_, text)| byte_text::byte_count(text)).sum();
            input.close(Duration::from_secs(1));
            let all: String = input.pieces.iter().map(|(_, text)| text.as_str()).collect();
            (before, byte_text::bytes_of(&all).into_owned())
        };
        for byte in 0..=255 {
            assert_eq!(heard(&[&[byte]]).1, [byte]);
        }
        assert_eq!(heard(&[b"\xc3", b"\xa9"]), (2, "\u{e9}".into()));
        assert_eq!(heard(&[b"a\xe2", b"\x82"]), (1, b"a\xe2\x82".to_vec()), "the rest may be still to come");
    }

    #[test]
    fn a_window_has_the_size_that_was_said_last_and_of_too_many_the_rest_is_lost() {
        let size = |columns| TerminalSize { columns, lines: 9 };
        let mut input = StandardInput::new(true);
        assert_eq!(input.size_at(Duration::ZERO), Some(TerminalSize::default()));
        for at in 1..=MAX_SIZES + 5 {
            input.resize(Duration::from_secs(at as u64), size(at as u16));
        }
        assert_eq!(input.size_at(Duration::from_millis(2500)), Some(size(2)));
        assert_eq!(input.size_at(Duration::MAX), Some(size(MAX_SIZES as u16)));
        assert_eq!(StandardInput::new(false).size_at(Duration::MAX), None);
    }
}
