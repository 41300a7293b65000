//! The page that is being written: where the next character goes, and what a new line begins with.

/// Spaces of an indent.
pub(super) const INDENT: usize = 2;
/// A text breaks at the next space behind this column.
pub(super) const WIDTH: usize = 80;

pub(super) struct Emitter {
    pub(super) out: String,
    pub(super) column: usize,
    /// Columns; none above the root.
    pub(super) indent: Option<usize>,
    /// What was written last needs no space behind it.
    pub(super) is_white: bool,
    /// The line holds only indents and indicators so far.
    pub(super) is_indent: bool,
}

impl Emitter {
    pub(super) fn new() -> Emitter {
        Emitter { out: String::new(), column: 0, indent: None, is_white: true, is_indent: true }
    }

    /// A new line at the indent, unless one has just begun.
    pub(super) fn line(&mut self) {
        let indent = self.indent.unwrap_or_default();
        if !self.is_indent || self.column > indent || (self.column == indent && !self.is_white) {
            self.line_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.is_white = true;
        self.is_indent = true;
    }

    pub(super) fn indicator(&mut self, indicator: &str, needs_space: bool, keeps_indent: bool) {
        if needs_space && !self.is_white {
            self.put(' ');
        }
        self.out.push_str(indicator);
        self.column += indicator.len();
        self.is_white = false;
        self.is_indent &= keeps_indent;
    }

    pub(super) fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    pub(super) fn line_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }
}
