//! What somebody says to a process whose standard input is open (`attach`).
//!
//! All that was said so far is kept with its times, and the process is played again with it: so it says the
//! same to everybody who is attached, and to its log.

use std::time::Duration;

/// So much is taken that somebody says to one run of a process; it does not hear more.
pub const MAX_SAID_BYTES: usize = 1 << 20;

/// What was said to a process so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandardInput {
    /// Whether it is a terminal.
    pub is_terminal: bool,
    /// Whether anybody was attached so far: the first one hears all from the start.
    pub was_attached: bool,
    /// What came, and when; after the start of the process.
    pub(crate) pieces: Vec<(Duration, String)>,
    /// How much that is.
    bytes: usize,
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

    /// Somebody says this; what is over [`MAX_SAID_BYTES`] nobody hears, nor what comes after its end.
    pub fn say(&mut self, after: Duration, bytes: &[u8]) {
        let is_heard = self.closed.is_none() && self.bytes + bytes.len() <= MAX_SAID_BYTES;
        if !is_heard {
            return;
        }
        self.bytes += bytes.len();
        self.unfinished.extend_from_slice(bytes);
        let text = self.take_whole();
        match self.pieces.last_mut() {
            Some((at, last)) if *at == after => last.push_str(&text),
            _ if text.is_empty() => {}
            _ => self.pieces.push((after, text)),
        }
    }

    /// The letters that are whole; bytes that are none are replaced.
    fn take_whole(&mut self) -> String {
        let whole = match std::str::from_utf8(&self.unfinished) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.unfinished.len(),
        };
        let rest = self.unfinished.split_off(whole);
        let text = String::from_utf8_lossy(&self.unfinished).into_owned();
        self.unfinished = rest;
        text
    }

    /// Nobody says anything any more.
    pub fn close(&mut self, after: Duration) {
        self.closed.get_or_insert(after);
    }
}

/// How far a process has heard what was said to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeardSoFar {
    pub(crate) pieces: usize,
    pub(crate) bytes: usize,
}
