//! Texts: which style suits one, and how it is written in each (libyaml's `analyze_scalar` and
//! `select_scalar_style`).

use std::fmt::Write as _;

use super::emitter::{Emitter, INDENT, WIDTH};
use super::resolve;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarStyle {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// Behind a `|`, line for line.
    Literal,
}

/// The first that a reader would take for the same text.
pub(super) fn style(text: &str, is_key: bool) -> ScalarStyle {
    let found = Findings::of(text);
    if text.contains('\n') && found.allows_literal() && !is_key {
        return ScalarStyle::Literal;
    }
    // As a key that one would merge.
    let is_merge = is_key && text == "<<";
    if text.contains('\n') || is_merge || !resolve::is_string(text) {
        return ScalarStyle::DoubleQuoted;
    }
    match () {
        () if found.allows_plain() => ScalarStyle::Plain,
        () if found.allows_single_quotes() => ScalarStyle::SingleQuoted,
        () => ScalarStyle::DoubleQuoted,
    }
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What a text has that some style cannot say.
#[derive(Default)]
struct Findings {
    indicators: bool,
    breaks: bool,
    unprintable: bool,
    /// A space or break first or last.
    white_edge: bool,
    trailing_space: bool,
    break_then_space: bool,
    space_then_break: bool,
}

impl Findings {
    fn of(text: &str) -> Findings {
        let mut found = Findings {
            indicators: text.starts_with("---") || text.starts_with("..."),
            white_edge: text.starts_with(is_edge) || text.ends_with(is_edge),
            trailing_space: text.ends_with(' '),
            ..Findings::default()
        };
        let mut before: Option<char> = None;
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            let is_before_blank = rest.as_str().chars().next().is_none_or(|next| matches!(next, ' ' | '\t'));
            found.indicators |= match before {
                None => is_indicator(c) || (matches!(c, '?' | ':' | '-') && is_before_blank),
                Some(before) => {
                    (c == ':' && is_before_blank)
                        || (c == '#' && (is_break(before) || matches!(before, ' ' | '\t' | '\0')))
                }
            };
            found.unprintable |= !is_printable(c);
            found.breaks |= is_break(c);
            found.break_then_space |= c == ' ' && before.is_some_and(is_break);
            found.space_then_break |= is_break(c) && before == Some(' ');
            before = Some(c);
        }
        found
    }

    fn allows_plain(&self) -> bool {
        !(self.indicators || self.breaks || self.white_edge) && self.allows_single_quotes()
    }

    fn allows_single_quotes(&self) -> bool {
        !(self.break_then_space || self.space_then_break || self.unprintable)
    }

    fn allows_literal(&self) -> bool {
        !(self.trailing_space || self.space_then_break || self.unprintable)
    }
}

fn is_edge(c: char) -> bool {
    c == ' ' || is_break(c)
}

/// What no plain text begins with.
fn is_indicator(c: char) -> bool {
    "#,[]{}&*!|>'\"%@`".contains(c)
}

/// libyaml's set, which ends where two UTF-16 units begin.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

impl Emitter {
    pub(super) fn plain_scalar(&mut self, text: &str, may_fold: bool) {
        if !self.is_white {
            self.put(' ');
        }
        self.folded(text, may_fold, false);
        self.is_white = false;
        self.is_indent = false;
    }

    pub(super) fn single_quoted(&mut self, text: &str, may_fold: bool) {
        self.indicator("'", true, false);
        self.folded(text, may_fold, true);
        self.indicator("'", false, false);
    }

    /// Between quotes a space at an edge is no place to fold, and a quote is written twice.
    fn folded(&mut self, text: &str, may_fold: bool, is_quoted: bool) {
        let mut after_space = false;
        let mut after_break = false;
        for (at, c) in text.char_indices() {
            if c == ' ' {
                let rest = &text[at + 1..];
                let is_edge = is_quoted && (at == 0 || rest.is_empty());
                let folds = may_fold && !after_space && self.column > WIDTH && !is_edge;
                if folds && !rest.starts_with(' ') {
                    self.line();
                } else {
                    self.put(c);
                }
                after_space = true;
            } else if is_break(c) {
                // A single one would be read as a space.
                if !after_break && c == '\n' {
                    self.line_break();
                }
                self.text_break(c);
                after_break = true;
            } else {
                if after_break {
                    self.line();
                }
                if is_quoted && c == '\'' {
                    self.put(c);
                }
                self.put(c);
                self.is_indent = false;
                (after_space, after_break) = (false, false);
            }
        }
    }

    pub(super) fn double_quoted(&mut self, text: &str, may_fold: bool) {
        // libyaml looks for the byte order mark at the beginning, whichever character it is at.
        let escapes_all = text.starts_with('\u{feff}');
        let mut after_space = false;
        self.indicator("\"", true, false);
        for (at, c) in text.char_indices() {
            if !is_printable(c) || escapes_all || is_break(c) || matches!(c, '"' | '\\') {
                self.escape(c);
                after_space = false;
            } else if c == ' ' {
                let rest = &text[at + 1..];
                if may_fold && !after_space && self.column > WIDTH && at > 0 && !rest.is_empty() {
                    self.line();
                    if rest.starts_with(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                after_space = true;
            } else {
                self.put(c);
                after_space = false;
            }
        }
        self.indicator("\"", false, false);
    }

    fn escape(&mut self, c: char) {
        let before = self.out.len();
        let code = c as u32;
        let short = match c {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0b' => 'v',
            '\x0c' => 'f',
            '\r' => 'r',
            '\x1b' => 'e',
            '"' | '\\' => c,
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => ' ',
        };
        let written = match code {
            _ if short != ' ' => write!(self.out, "\\{short}"),
            0..=0xff => write!(self.out, "\\x{code:02X}"),
            0x100..=0xffff => write!(self.out, "\\u{code:04X}"),
            _ => write!(self.out, "\\U{code:08X}"),
        };
        written.expect("a String takes everything");
        self.column += self.out.len() - before;
    }

    pub(super) fn literal(&mut self, text: &str) {
        self.indicator("|", true, false);
        if text.starts_with(is_edge) {
            self.indicator(&INDENT.to_string(), false, false);
        }
        let breaks_at_end = text.chars().rev().take(2).take_while(|c| is_break(*c)).count();
        match breaks_at_end {
            0 => self.indicator("-", false, false),
            1 if text.chars().nth(1).is_some() => {}
            _ => self.indicator("+", false, false),
        }
        self.line_break();
        self.is_indent = true;
        self.is_white = true;
        let mut after_break = true;
        for c in text.chars() {
            if is_break(c) {
                self.text_break(c);
            } else {
                if after_break {
                    self.line();
                }
                self.put(c);
                self.is_indent = false;
            }
            after_break = is_break(c);
        }
    }

    fn text_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
        self.is_indent = true;
    }
}
