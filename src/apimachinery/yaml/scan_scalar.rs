//! The texts among the tokens: plain, quoted, and in blocks.

use super::scanner::{Scanner, YamlFault};

/// White between two words or lines of a text that is folded.
#[derive(Default)]
struct Fold {
    blanks: String,
    /// The break behind the last word, and those of the empty lines that follow.
    first: String,
    more: String,
    is_broken: bool,
}

impl Fold {
    /// What it becomes: one break is a space, further ones stay; behind one that is escaped all stay.
    fn flush(&mut self, into: &mut String) {
        if !self.is_broken && self.blanks.is_empty() {
            return;
        }
        if !self.is_broken {
            into.push_str(&self.blanks);
        } else if !self.first.starts_with('\n') && !self.first.is_empty() {
            into.push_str(&self.first);
            into.push_str(&self.more);
        } else if self.first.is_empty() || !self.more.is_empty() {
            into.push_str(&self.more);
        } else {
            into.push(' ');
        }
        *self = Fold::default();
    }

    fn take(&mut self, scanner: &mut Scanner) {
        if scanner.cursor.is_blank(0) {
            if self.is_broken { scanner.cursor.skip() } else { scanner.cursor.take(&mut self.blanks) }
        } else if self.is_broken {
            scanner.cursor.take_break(&mut self.more);
        } else {
            self.is_broken = true;
            scanner.cursor.take_break(&mut self.first);
        }
    }
}

/// What follows the text of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_> {
    /// Also whether it ended with its line.
    pub(super) fn scan_plain(&mut self) -> Result<(String, bool), YamlFault> {
        let mut text = String::new();
        let mut fold = Fold::default();
        let indent = self.indent + 1;
        loop {
            let is_over = self.cursor.is_document_mark(b'-') || self.cursor.is_document_mark(b'.');
            if is_over || self.cursor.byte(0) == b'#' {
                break;
            }
            while !self.cursor.is_gap(0) && !self.ends_plain() {
                fold.flush(&mut text);
                self.cursor.take(&mut text);
            }
            if !self.cursor.is_blank(0) && !self.cursor.is_break(0) {
                break;
            }
            while self.cursor.is_blank(0) || self.cursor.is_break(0) {
                let is_outside = fold.is_broken && (self.cursor.mark.column as isize) < indent;
                if is_outside && self.cursor.byte(0) == b'\t' {
                    return Err(self.fault("found a tab character that violates indentation"));
                }
                fold.take(self);
            }
            if !self.is_in_flow() && (self.cursor.mark.column as isize) < indent {
                break;
            }
        }
        Ok((text, fold.is_broken))
    }

    fn ends_plain(&self) -> bool {
        match self.cursor.byte(0) {
            b':' => self.cursor.is_gap(1),
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => self.is_in_flow(),
            _ => false,
        }
    }

    pub(super) fn scan_quoted(&mut self, is_single: bool) -> Result<String, YamlFault> {
        let mut text = String::new();
        let quote = if is_single { b'\'' } else { b'"' };
        self.cursor.skip();
        loop {
            if self.cursor.is_document_mark(b'-') || self.cursor.is_document_mark(b'.') {
                return Err(self.fault("found unexpected document indicator"));
            }
            if self.cursor.is_at_end() {
                return Err(self.fault("found unexpected end of stream"));
            }
            let mut fold = Fold { is_broken: self.quoted_words(is_single, &mut text)?, ..Fold::default() };
            if self.cursor.byte(0) == quote {
                self.cursor.skip();
                return Ok(text);
            }
            while self.cursor.is_blank(0) || self.cursor.is_break(0) {
                fold.take(self);
            }
            fold.flush(&mut text);
        }
    }

    /// Up to white or the closing quote; true behind a break that is escaped.
    fn quoted_words(&mut self, is_single: bool, text: &mut String) -> Result<bool, YamlFault> {
        while !self.cursor.is_gap(0) {
            match (self.cursor.byte(0), self.cursor.byte(1)) {
                (b'\'', b'\'') if is_single => {
                    text.push('\'');
                    self.cursor.skip_many(2);
                }
                (b'\'', _) if is_single => break,
                (b'"', _) if !is_single => break,
                (b'\\', _) if !is_single && self.cursor.is_break(1) => {
                    self.cursor.skip();
                    self.cursor.skip_break();
                    return Ok(true);
                }
                (b'\\', _) if !is_single => self.escape(text)?,
                _ => self.cursor.take(text),
            }
        }
        Ok(false)
    }

    fn escape(&mut self, text: &mut String) -> Result<(), YamlFault> {
        let digits = match self.cursor.byte(1) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            letter => {
                let plain = escaped(letter).ok_or_else(|| self.fault("found unknown escape character"))?;
                text.push(plain);
                self.cursor.skip_many(2);
                return Ok(());
            }
        };
        self.cursor.skip_many(2);
        let mut code: u32 = 0;
        for ahead in 0..digits {
            let digit = (self.cursor.byte(ahead) as char).to_digit(16);
            let digit = digit.ok_or_else(|| self.fault("did not find expected hexdecimal number"))?;
            code = code.checked_mul(16).map_or(u32::MAX, |code| code | digit);
        }
        let character = char::from_u32(code);
        text.push(character.ok_or_else(|| self.fault("found invalid Unicode character escape code"))?);
        self.cursor.skip_many(digits);
        Ok(())
    }

    pub(super) fn scan_block(&mut self, is_literal: bool) -> Result<String, YamlFault> {
        self.cursor.skip();
        let (chomping, increment) = self.block_header()?;
        let outer = self.indent.max(0) as usize;
        let mut indent = increment.map(|increment| outer + increment);
        let mut text = String::new();
        let mut first = String::new();
        let mut more = String::new();
        self.block_breaks(&mut indent, &mut more)?;
        let mut was_blank = false;
        while Some(self.cursor.mark.column) == indent && !self.cursor.is_at_end() {
            let is_blank = self.cursor.is_blank(0);
            let is_folded = !is_literal && first.starts_with('\n') && !was_blank && !is_blank;
            if !is_folded {
                text.push_str(&first);
            } else if more.is_empty() {
                text.push(' ');
            }
            text.push_str(&more);
            first.clear();
            more.clear();
            was_blank = is_blank;
            while !self.cursor.is_line_end(0) {
                self.cursor.take(&mut text);
            }
            if self.cursor.is_break(0) {
                self.cursor.take_break(&mut first);
            }
            self.block_breaks(&mut indent, &mut more)?;
        }
        if chomping != Chomping::Strip {
            text.push_str(&first);
        }
        if chomping == Chomping::Keep {
            text.push_str(&more);
        }
        Ok(text)
    }

    /// What follows the `|`: `-` or `+` and an indent, in either order.
    fn block_header(&mut self) -> Result<(Chomping, Option<usize>), YamlFault> {
        let mut chomping = self.block_chomping();
        let mut increment = None;
        if self.cursor.byte(0).is_ascii_digit() {
            if self.cursor.byte(0) == b'0' {
                return Err(self.fault("found an indentation indicator equal to 0"));
            }
            increment = Some(usize::from(self.cursor.byte(0) - b'0'));
            self.cursor.skip();
            chomping = chomping.or_else(|| self.block_chomping());
        }
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.is_line_end(0) {
            return Err(self.fault("did not find expected comment or line break"));
        }
        if self.cursor.is_break(0) {
            self.cursor.skip_break();
        }
        Ok((chomping.unwrap_or(Chomping::Clip), increment))
    }

    fn block_chomping(&mut self) -> Option<Chomping> {
        let found = match self.cursor.byte(0) {
            b'+' => Chomping::Keep,
            b'-' => Chomping::Strip,
            _ => return None,
        };
        self.cursor.skip();
        Some(found)
    }

    /// Takes empty lines and the indent of the next one, which decides the indent of all where none is given.
    fn block_breaks(&mut self, indent: &mut Option<usize>, breaks: &mut String) -> Result<(), YamlFault> {
        let mut deepest = 0;
        loop {
            let is_before = |column: usize| indent.is_none_or(|indent| column < indent);
            while is_before(self.cursor.mark.column) && self.cursor.byte(0) == b' ' {
                self.cursor.skip();
            }
            deepest = deepest.max(self.cursor.mark.column);
            if is_before(self.cursor.mark.column) && self.cursor.byte(0) == b'\t' {
                return Err(self.fault("found a tab character where an indentation space is expected"));
            }
            if !self.cursor.is_break(0) {
                break;
            }
            self.cursor.take_break(breaks);
        }
        let least = (self.indent + 1).max(1) as usize;
        indent.get_or_insert(deepest.max(least));
        Ok(())
    }
}

/// What a letter behind a backslash stands for.
fn escaped(letter: u8) -> Option<char> {
    Some(match letter {
        b'0' => '\0',
        b'a' => '\x07',
        b'b' => '\x08',
        b't' | b'\t' => '\t',
        b'n' => '\n',
        b'v' => '\x0b',
        b'f' => '\x0c',
        b'r' => '\r',
        b'e' => '\x1b',
        b' ' | b'"' | b'\'' | b'\\' => letter as char,
        b'N' => '\u{85}',
        b'_' => '\u{a0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        _ => return None,
    })
}
