//! What a process says, as it says it: pieces of its two outputs, which need not be lines.

use std::collections::VecDeque;
use std::time::Duration;

use crate::bounds::MAX_LOG_BYTES;

/// What was said at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidPiece {
    /// After the start of the process.
    pub after: Duration,
    /// Whether it is of the standard error.
    pub is_error: bool,
    /// As it was said.
    pub text: String,
}

/// Pieces in their order. Bound: [`MAX_LOG_BYTES`]; of more the older ones are gone.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// So many bytes are gone.
    gone: usize,
    bytes: usize,
    pieces: VecDeque<SaidPiece>,
}

impl Transcript {
    /// Adds what is said now.
    pub fn add(&mut self, after: Duration, is_error: bool, text: &str) {
        if text.is_empty() {
            return;
        }
        self.bytes += text.len();
        // What is said in the background comes later than what was not heard yet.
        let at = self.pieces.iter().rposition(|piece| piece.after <= after).map_or(0, |at| at + 1);
        match at.checked_sub(1).and_then(|before| self.pieces.get_mut(before)) {
            Some(last) if last.after == after && last.is_error == is_error => last.text.push_str(text),
            _ => self.pieces.insert(at, SaidPiece { after, is_error, text: text.to_owned() }),
        }
        while self.bytes > MAX_LOG_BYTES
            && let Some(SaidPiece { text, .. }) = self.pieces.pop_front()
        {
            self.bytes -= text.len();
            self.gone += text.len();
        }
    }

    /// All that are left.
    pub fn pieces(&self) -> impl Iterator<Item = &SaidPiece> {
        self.pieces.iter()
    }

    /// How many bytes were said by `until`.
    pub fn said_by(&self, until: Duration) -> usize {
        let by_then = self.pieces.iter().take_while(|piece| piece.after <= until);
        self.gone + by_then.map(|piece| piece.text.len()).sum::<usize>()
    }

    /// What was said by `until` behind the first `count` bytes, and whether as an error.
    pub fn behind(&self, count: usize, until: Duration) -> Vec<(bool, String)> {
        let mut at = self.gone;
        let mut said = Vec::new();
        for piece in self.pieces.iter().take_while(|piece| piece.after <= until) {
            let skipped = count.saturating_sub(at).min(piece.text.len());
            at += piece.text.len();
            if let Some(rest) = piece.text.get(skipped..).filter(|rest| !rest.is_empty()) {
                said.push((piece.is_error, rest.to_owned()));
            }
        }
        said
    }

    /// When more is said, behind what was said by `until`.
    pub fn next_after(&self, until: Duration) -> Option<Duration> {
        self.pieces.iter().map(|piece| piece.after).find(|after| *after > until)
    }

    /// The line that has no end yet.
    pub fn open_line(&self, until: Duration) -> String {
        let mut open = String::new();
        for piece in self.pieces.iter().take_while(|piece| piece.after <= until) {
            match piece.text.rsplit_once('\n') {
                Some((_, rest)) => rest.clone_into(&mut open),
                None => open.push_str(&piece.text),
            }
        }
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_by_bytes() {
        let at = Duration::from_secs;
        let mut transcript = Transcript::default();
        transcript.add(at(1), false, "a\n");
        transcript.add(at(1), false, "/ # ");
        transcript.add(at(2), true, "no\n$ ");
        assert_eq!(transcript.said_by(at(1)), 6);
        assert_eq!(transcript.behind(2, at(2)), [(false, "/ # ".into()), (true, "no\n$ ".into())]);
        assert_eq!(transcript.behind(8, at(2)), [(true, "\n$ ".into())]);
        assert_eq!((transcript.open_line(at(1)), transcript.open_line(at(2))), ("/ # ".into(), "$ ".into()));
    }

    #[test]
    fn what_is_said_in_the_background_comes_when_it_is_said() {
        let at = Duration::from_secs;
        let mut transcript = Transcript::default();
        for (after, text) in [(1, "a"), (5, "late"), (1, "b"), (2, "c"), (5, "r")] {
            transcript.add(at(after), false, text);
        }
        let said: Vec<&str> = transcript.pieces().map(|piece| piece.text.as_str()).collect();
        assert_eq!(said, ["ab", "c", "later"]);
        assert_eq!(transcript.said_by(at(2)), 3);
    }

    #[test]
    fn the_oldest_is_gone_when_it_is_too_much() {
        let mut transcript = Transcript::default();
        transcript.add(Duration::ZERO, false, "first");
        transcript.add(Duration::ZERO, true, &"x".repeat(MAX_LOG_BYTES));
        assert_eq!(transcript.pieces().count(), 1);
        assert_eq!(transcript.said_by(Duration::ZERO), MAX_LOG_BYTES + 5);
        assert_eq!(transcript.behind(0, Duration::ZERO)[0].1.len(), MAX_LOG_BYTES);
    }
}
