//! Where in a text a reader is: by character, line and column, with the line breaks of YAML 1.1.

/// A place.
#[derive(Clone, Copy, Default)]
pub(super) struct Mark {
    /// Characters before it.
    pub(super) index: usize,
    /// From zero.
    pub(super) line: usize,
    /// Characters of its line before it.
    pub(super) column: usize,
}

pub(super) struct YamlCursor<'t> {
    text: &'t str,
    at: usize,
    pub(super) mark: Mark,
}

impl<'t> YamlCursor<'t> {
    pub(super) fn new(text: &'t str) -> YamlCursor<'t> {
        YamlCursor { text, at: 0, mark: Mark::default() }
    }

    /// The byte so many behind the next one; zero behind the end, as no text has a zero byte.
    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Whether a space or tab stands there.
    pub(super) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t')
    }

    /// Whether a line ends there.
    pub(super) fn is_break(&self, ahead: usize) -> bool {
        self.break_width(ahead) > 0
    }

    /// Whether a line or the text ends there.
    pub(super) fn is_line_end(&self, ahead: usize) -> bool {
        self.byte(ahead) == 0 || self.is_break(ahead)
    }

    /// Whether a word ends there.
    pub(super) fn is_gap(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_line_end(ahead)
    }

    /// How many bytes the line break there has, `\r\n` being one; zero where none is.
    fn break_width(&self, ahead: usize) -> usize {
        match (self.byte(ahead), self.byte(ahead + 1), self.byte(ahead + 2)) {
            (b'\r', b'\n', _) | (0xc2, 0x85, _) => 2,
            (b'\r' | b'\n', ..) => 1,
            (0xe2, 0x80, 0xa8 | 0xa9) => 3,
            _ => 0,
        }
    }

    /// `---` or `...` alone at the beginning of a line.
    pub(super) fn is_document_mark(&self, with: u8) -> bool {
        self.mark.column == 0 && (0..3).all(|ahead| self.byte(ahead) == with) && self.is_gap(3)
    }

    /// Goes past one character, which is no line break.
    pub(super) fn skip(&mut self) {
        let width = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        self.at += width;
        self.mark.index += 1;
        self.mark.column += 1;
    }

    pub(super) fn skip_many(&mut self, count: usize) {
        (0..count).for_each(|_| self.skip());
    }

    /// Goes past one line break.
    pub(super) fn skip_break(&mut self) {
        let width = self.break_width(0);
        self.mark.index += if width == 2 && self.byte(0) == b'\r' { 2 } else { 1 };
        self.at += width;
        self.mark.line += 1;
        self.mark.column = 0;
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.skip();
        }
    }

    /// To the end of the line, if a comment begins here.
    pub(super) fn skip_comment(&mut self) {
        if self.byte(0) == b'#' {
            while !self.is_line_end(0) {
                self.skip();
            }
        }
    }

    /// Takes one character.
    pub(super) fn take(&mut self, into: &mut String) {
        into.extend(self.text[self.at..].chars().next());
        self.skip();
    }

    /// Takes one line break: all are written as `\n` but those that YAML knows as separators.
    pub(super) fn take_break(&mut self, into: &mut String) {
        if self.break_width(0) == 3 {
            into.extend(self.text[self.at..].chars().next());
        } else {
            into.push('\n');
        }
        self.skip_break();
    }

    /// Takes letters, digits, `_` and `-`.
    pub(super) fn take_word(&mut self) -> String {
        let mut word = String::new();
        while self.byte(0).is_ascii_alphanumeric() || matches!(self.byte(0), b'_' | b'-') {
            self.take(&mut word);
        }
        word
    }
}
