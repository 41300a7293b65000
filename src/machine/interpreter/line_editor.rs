//! A line that is typed at a shell's prompt: letters, keys that move in it, and lines of before, as bash and
//! BusyBox' shell edit it. What a terminal shows of each key is said back.

/// So many lines are remembered; of more the oldest are forgotten.
const MAX_HISTORY: usize = 500;
/// A line is no longer than so; of a longer one the rest is lost.
const MAX_LETTERS: usize = 4095;
/// What is read of one key's sequence.
const MAX_SEQUENCE: usize = 16;

const ESCAPE: char = '\u{1b}';
/// All behind the cursor goes.
const ERASE_BEHIND: &str = "\u{1b}[K";
const CLEAR_SCREEN: &str = "\u{1b}[H\u{1b}[J";

/// Lines that were entered, the oldest first. Bound: [`MAX_HISTORY`].
#[derive(Clone, Debug, Default)]
pub(crate) struct TypedLines(Vec<String>);

impl TypedLines {
    /// Remembers a line that is neither empty nor what the last one was.
    pub(super) fn add(&mut self, line: &str) {
        let line = line.trim_end_matches('\n');
        if line.trim().is_empty() || self.0.last().is_some_and(|last| last == line) {
            return;
        }
        if self.0.len() == MAX_HISTORY {
            self.0.remove(0);
        }
        self.0.push(line.to_owned());
    }

    pub(crate) fn lines(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// What became of a line with a key.
#[derive(Debug, PartialEq)]
pub(super) enum KeyEffect {
    /// It goes on, and the terminal shows this.
    Shows(String),
    Entered,
    /// Of an empty line: the end of all that is typed.
    Ends,
}

/// One line on its way.
#[derive(Debug, Default)]
pub(super) struct LineEditor {
    letters: Vec<char>,
    at: usize,
    /// The beginning of a key that is several letters.
    sequence: Option<String>,
    /// How many lines up, and what was typed before.
    back: usize,
    draft: Vec<char>,
}

impl LineEditor {
    /// The line as it is.
    pub(super) fn line(&self) -> String {
        self.letters.iter().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.sequence.is_none()
    }

    /// Takes the next letter. `prompt` stands before the line.
    pub(super) fn key(&mut self, letter: char, history: &TypedLines, prompt: &str) -> KeyEffect {
        if let Some(sequence) = self.sequence.take() {
            return KeyEffect::Shows(self.continued(sequence, letter, history));
        }
        KeyEffect::Shows(match letter {
            '\r' | '\n' => return KeyEffect::Entered,
            '\u{4}' if self.letters.is_empty() => return KeyEffect::Ends,
            ESCAPE => {
                self.sequence = Some(String::new());
                String::new()
            }
            '\u{1}' => self.go(0),
            '\u{2}' => self.go(self.at.saturating_sub(1)),
            '\u{4}' => self.remove(self.at, self.at + 1),
            '\u{5}' => self.go(usize::MAX),
            '\u{6}' => self.go(self.at + 1),
            '\u{7f}' | '\u{8}' => self.remove(self.at.saturating_sub(1), self.at),
            '\u{b}' => self.remove(self.at, usize::MAX),
            '\u{c}' => {
                let behind = "\u{8}".repeat(self.letters.len() - self.at);
                format!("{CLEAR_SCREEN}{prompt}{}{behind}", self.line())
            }
            '\u{e}' => self.recall(history, false),
            '\u{10}' => self.recall(history, true),
            '\u{15}' => self.remove(0, self.at),
            '\u{17}' => self.remove(self.word_before(), self.at),
            letter if letter.is_control() || self.letters.len() >= MAX_LETTERS => String::new(),
            letter => self.insert(letter),
        })
    }

    /// Goes on with a key that began with escape.
    fn continued(&mut self, sequence: String, letter: char, history: &TypedLines) -> String {
        let is_open = match sequence.chars().next() {
            None => matches!(letter, '[' | 'O'),
            Some(_) => !('@'..='~').contains(&letter) && sequence.len() < MAX_SEQUENCE,
        };
        let sequence = format!("{sequence}{letter}");
        if is_open {
            self.sequence = Some(sequence);
            return String::new();
        }
        match sequence.as_str() {
            "[A" | "OA" => self.recall(history, true),
            "[B" | "OB" => self.recall(history, false),
            "[C" | "OC" => self.go(self.at + 1),
            "[D" | "OD" => self.go(self.at.saturating_sub(1)),
            "[H" | "OH" | "[1~" | "[7~" => self.go(0),
            "[F" | "OF" | "[4~" | "[8~" => self.go(usize::MAX),
            "[3~" => self.remove(self.at, self.at + 1),
            "b" | "[1;5D" | "[1;3D" => self.go(self.word_before()),
            "f" | "[1;5C" | "[1;3C" => self.go(self.word_behind()),
            _ => String::new(),
        }
    }

    fn insert(&mut self, letter: char) -> String {
        self.letters.insert(self.at, letter);
        let shown: String = self.letters[self.at..].iter().collect();
        self.at += 1;
        shown + &"\u{8}".repeat(self.letters.len() - self.at)
    }

    fn go(&mut self, to: usize) -> String {
        let to = to.min(self.letters.len());
        let from = std::mem::replace(&mut self.at, to);
        if to < from { "\u{8}".repeat(from - to) } else { self.letters[from..to].iter().collect() }
    }

    fn remove(&mut self, from: usize, to: usize) -> String {
        let to = to.min(self.letters.len());
        if from >= to {
            return String::new();
        }
        let shown = self.go(from);
        self.letters.drain(from..to);
        let behind = &self.letters[from..];
        let erased = if to - from == 1 && behind.is_empty() { " \u{8}" } else { ERASE_BEHIND };
        let rest: String = behind.iter().collect();
        format!("{shown}{rest}{erased}{}", "\u{8}".repeat(behind.len()))
    }

    /// A line of before in place of this one, or one that is newer again.
    fn recall(&mut self, history: &TypedLines, is_older: bool) -> String {
        let lines = history.lines();
        let back = if is_older { self.back + 1 } else { self.back.saturating_sub(1) };
        if back == self.back || back > lines.len() {
            return String::new();
        }
        if self.back == 0 {
            self.draft = self.letters.clone();
        }
        self.back = back;
        let shown = self.go(0);
        self.letters = match back {
            0 => std::mem::take(&mut self.draft),
            back => lines[lines.len() - back].chars().collect(),
        };
        self.at = self.letters.len();
        format!("{shown}{}{ERASE_BEHIND}", self.line())
    }

    fn word_before(&self) -> usize {
        let before = &self.letters[..self.at];
        let end = before.iter().rposition(|letter| *letter != ' ').unwrap_or(0);
        before[..end].iter().rposition(|letter| *letter == ' ').map_or(0, |at| at + 1)
    }

    fn word_behind(&self) -> usize {
        let behind = &self.letters[self.at..];
        let begin = behind.iter().position(|letter| *letter != ' ').unwrap_or(behind.len());
        let word = &behind[begin..];
        self.at + begin + word.iter().position(|letter| *letter == ' ').unwrap_or(word.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line that is entered, or all that is shown until there is none.
    fn typed(keys: &str, history: &TypedLines) -> Result<String, String> {
        let mut editor = LineEditor::default();
        let mut shown = String::new();
        for letter in keys.chars() {
            match editor.key(letter, history, "$ ") {
                KeyEffect::Shows(more) => shown.push_str(&more),
                KeyEffect::Entered => return Ok(editor.line()),
                KeyEffect::Ends => return Err(shown + "END"),
            }
        }
        Err(shown)
    }

    #[test]
    fn keys_move_in_a_line_and_change_it() {
        let line = |keys: &str| typed(&format!("{keys}\r"), &TypedLines::default()).unwrap();
        for (keys, wanted) in [
            ("ehco\u{1b}[D\u{1b}[D\u{1b}[D\u{1b}[3~\u{1b}[Ch", "echo"),
            ("bc\u{1}a\u{5}d", "abcd"),
            ("b\u{1b}[Ha\u{1b}OFc", "abc"),
            ("one two\u{17}three", "one three"),
            ("one two\u{1b}b\u{b}x", "one x"),
            ("one two\u{1b}[1;5D\u{1b}[1;5D\u{1b}fs", "ones two"),
            ("abc\u{15}d", "d"),
            ("ab\u{2}\u{4}c", "ac"),
            ("a\u{1b}[99;99xb\u{1b}qc\td", "abcd"),
        ] {
            assert_eq!(line(keys), wanted, "{keys:?}");
        }
        assert_eq!(line(&"x".repeat(MAX_LETTERS + 9)).len(), MAX_LETTERS);
    }

    #[test]
    fn what_changes_is_shown() {
        let shown = |keys: &str| typed(keys, &TypedLines::default()).unwrap_err();
        assert_eq!(shown("ab\u{7f}"), "ab\u{8} \u{8}");
        assert_eq!(shown("ac\u{1b}[Db"), "ac\u{8}bc\u{8}");
        assert_eq!(shown("abc\u{1b}[D\u{7f}"), "abc\u{8}\u{8}c\u{1b}[K\u{8}");
        assert_eq!(shown("ab\u{c}"), "ab\u{1b}[H\u{1b}[J$ ab");
        assert_eq!(shown("\u{4}"), "END");
    }

    #[test]
    fn lines_of_before_come_back() {
        let mut history = TypedLines::default();
        for line in ["one", "two", "two", " ", "three\n"] {
            history.add(line);
        }
        assert_eq!(history.lines(), ["one", "two", "three"]);
        let up = "\u{1b}[A";
        let down = "\u{1b}[B";
        let line = |keys: String| typed(&(keys + "\r"), &history).unwrap();
        assert_eq!(line(up.into()), "three");
        assert_eq!(line(format!("{up}{up}s")), "twos");
        assert_eq!(line(up.repeat(9)), "one");
        assert_eq!(line(format!("x{up}{up}{down}")), "three");
        assert_eq!(line(format!("x{up}{down}{down}")), "x");
        assert_eq!(typed(up, &history).unwrap_err(), "three\u{1b}[K");
        (0..MAX_HISTORY + 2).for_each(|number| history.add(&number.to_string()));
        assert_eq!((history.lines().len(), &*history.lines()[0]), (MAX_HISTORY, "2"));
        history.clear();
        assert!(history.lines().is_empty());
    }
}
