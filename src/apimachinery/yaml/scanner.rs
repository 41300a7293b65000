//! From text to tokens (`scannerc.go`): where blocks begin and end by their indents, and which scalars turn
//! out to be keys once their colon is met.

use std::collections::VecDeque;

use super::cursor::{Mark, YamlCursor};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum YamlToken {
    /// `%YAML 1.1`
    Version(u8, u8),
    /// `%TAG handle prefix`
    TagDirective(String, String),
    DocumentStart,
    DocumentEnd,
    StreamEnd,
    BlockSequence,
    BlockMapping,
    BlockEnd,
    FlowSequence,
    FlowSequenceEnd,
    FlowMapping,
    FlowMappingEnd,
    FlowEntry,
    /// The dash of an item.
    BlockEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    /// Handle and suffix.
    Tag(String, String),
    Scalar {
        text: String,
        is_plain: bool,
    },
}

/// A token and its line, from zero.
pub(super) struct Located {
    pub(super) token: YamlToken,
    pub(super) line: usize,
}

/// What is wrong with a text; its line is what Go shows, and no line is shown for zero.
#[derive(Debug)]
pub(super) struct YamlFault {
    pub(super) problem: String,
    pub(super) line: usize,
}

/// What begins here may be a key, if its colon follows.
#[derive(Clone, Copy, Default)]
struct SimpleKey {
    is_possible: bool,
    /// Nothing else can stand at this indent.
    is_required: bool,
    token: usize,
    mark: Mark,
}

/// How many characters a key that no question mark announces may have.
const MAX_KEY_CHARACTERS: usize = 1024;

pub(super) struct Scanner<'t> {
    pub(super) cursor: YamlCursor<'t>,
    queue: VecDeque<Located>,
    /// Tokens that were taken.
    taken: usize,
    /// The column of the block that is open; -1 outside of any.
    pub(super) indent: isize,
    indents: Vec<isize>,
    may_be_key: bool,
    /// One for each open flow collection, and one for the block around them.
    keys: Vec<SimpleKey>,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Scanner<'t> {
        Scanner {
            cursor: YamlCursor::new(text.strip_prefix('\u{feff}').unwrap_or(text)),
            queue: VecDeque::new(),
            taken: 0,
            indent: -1,
            indents: Vec::new(),
            may_be_key: true,
            keys: vec![SimpleKey::default()],
        }
    }

    /// The next token; at the end it is [`YamlToken::StreamEnd`], again and again.
    pub(super) fn peek(&mut self) -> Result<&Located, YamlFault> {
        while self.is_undecided()? {
            self.fetch()?;
        }
        Ok(&self.queue[0])
    }

    pub(super) fn next(&mut self) -> Result<Located, YamlFault> {
        self.peek()?;
        self.taken += 1;
        Ok(self.queue.pop_front().expect("it was peeked at"))
    }

    /// Whether there is no token, or the first may yet turn out to be a key.
    fn is_undecided(&mut self) -> Result<bool, YamlFault> {
        if self.queue.is_empty() {
            return Ok(true);
        }
        match self.keys.iter().rposition(|key| key.is_possible && key.token == self.taken) {
            Some(at) => self.is_still_possible(at),
            None => Ok(false),
        }
    }

    /// A key is one line, and not long.
    fn is_still_possible(&mut self, at: usize) -> Result<bool, YamlFault> {
        let (key, now) = (self.keys[at], self.cursor.mark);
        if !key.is_possible {
            return Ok(false);
        }
        let is_past = key.mark.line < now.line || key.mark.index + MAX_KEY_CHARACTERS < now.index;
        if is_past && key.is_required {
            return Err(self.fault("could not find expected ':'"));
        }
        self.keys[at].is_possible = !is_past;
        Ok(!is_past)
    }

    pub(super) fn fault(&self, problem: &str) -> YamlFault {
        let line = self.cursor.mark.line;
        // The scanner's lines are counted from one, and the first is never named.
        YamlFault { problem: problem.to_owned(), line: if line == 0 { 0 } else { line + 1 } }
    }

    pub(super) fn is_in_flow(&self) -> bool {
        self.keys.len() > 1
    }

    fn push(&mut self, token: YamlToken, line: usize) {
        self.queue.push_back(Located { token, line });
    }

    fn fetch(&mut self) -> Result<(), YamlFault> {
        self.skip_to_token();
        self.unroll(self.cursor.mark.column as isize);
        if self.cursor.is_at_end() {
            return self.stream_end();
        }
        if self.cursor.mark.column == 0 && self.cursor.byte(0) == b'%' {
            return self.directive();
        }
        if self.cursor.is_document_mark(b'-') {
            return self.document_mark(YamlToken::DocumentStart);
        }
        if self.cursor.is_document_mark(b'.') {
            return self.document_mark(YamlToken::DocumentEnd);
        }
        self.fetch_content()
    }

    fn fetch_content(&mut self) -> Result<(), YamlFault> {
        let ends_here = self.is_in_flow() || self.cursor.is_gap(1);
        match self.cursor.byte(0) {
            b'[' => self.flow_start(YamlToken::FlowSequence),
            b'{' => self.flow_start(YamlToken::FlowMapping),
            b']' => self.flow_end(YamlToken::FlowSequenceEnd),
            b'}' => self.flow_end(YamlToken::FlowMappingEnd),
            b',' => self.flow_entry(),
            b'-' if self.cursor.is_gap(1) => self.block_entry(),
            b'?' if ends_here => self.key(),
            b':' if ends_here => self.value(),
            b'*' | b'&' => self.anchor(),
            b'!' => self.tag(),
            style @ (b'|' | b'>') if !self.is_in_flow() => self.block_scalar(style == b'|'),
            quote @ (b'\'' | b'"') => {
                self.begin_content()?;
                let line = self.cursor.mark.line;
                let text = self.scan_quoted(quote == b'\'')?;
                self.push(YamlToken::Scalar { text, is_plain: false }, line);
                Ok(())
            }
            _ if self.begins_plain() => self.plain_scalar(),
            _ => Err(self.fault("found character that cannot start any token")),
        }
    }

    /// Past blanks, comments and line breaks. A tab does not indent.
    fn skip_to_token(&mut self) {
        loop {
            let takes_tabs = self.is_in_flow() || !self.may_be_key;
            while self.cursor.byte(0) == b' ' || takes_tabs && self.cursor.byte(0) == b'\t' {
                self.cursor.skip();
            }
            self.cursor.skip_comment();
            if !self.cursor.is_break(0) {
                return;
            }
            self.cursor.skip_break();
            if !self.is_in_flow() {
                self.may_be_key = true;
            }
        }
    }

    fn begins_plain(&self) -> bool {
        let first = self.cursor.byte(0);
        let is_indicator = self.cursor.is_gap(0) || b"-?:,[]{}#&*!|>'\"%@`".contains(&first);
        !is_indicator
            || first == b'-' && !self.cursor.is_blank(1)
            || !self.is_in_flow() && matches!(first, b'?' | b':') && !self.cursor.is_gap(1)
    }

    /// Opens a block at a column that is further in than the one around it; before the token of a number.
    fn roll(&mut self, column: usize, before: Option<usize>, token: YamlToken, line: usize) {
        let column = column as isize;
        if self.is_in_flow() || self.indent >= column {
            return;
        }
        self.indents.push(self.indent);
        self.indent = column;
        let at = before.map_or(self.queue.len(), |number| number - self.taken);
        self.queue.insert(at, Located { token, line });
    }

    /// Closes the blocks that are further in than a column.
    fn unroll(&mut self, column: isize) {
        if self.is_in_flow() {
            return;
        }
        while self.indent > column {
            self.push(YamlToken::BlockEnd, self.cursor.mark.line);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    /// Notes that what begins here may be a key.
    fn save_key(&mut self) -> Result<(), YamlFault> {
        if !self.may_be_key {
            return Ok(());
        }
        let mark = self.cursor.mark;
        let is_required = !self.is_in_flow() && self.indent == mark.column as isize;
        self.drop_key()?;
        let token = self.taken + self.queue.len();
        *self.last_key() = SimpleKey { is_possible: true, is_required, token, mark };
        Ok(())
    }

    fn drop_key(&mut self) -> Result<(), YamlFault> {
        let key = *self.last_key();
        if key.is_possible && key.is_required {
            return Err(self.fault("could not find expected ':'"));
        }
        self.last_key().is_possible = false;
        Ok(())
    }

    fn last_key(&mut self) -> &mut SimpleKey {
        self.keys.last_mut().expect("the block has one")
    }

    /// Before a scalar, anchor, alias or tag.
    pub(super) fn begin_content(&mut self) -> Result<(), YamlFault> {
        self.save_key()?;
        self.may_be_key = false;
        Ok(())
    }

    fn stream_end(&mut self) -> Result<(), YamlFault> {
        let mark = &mut self.cursor.mark;
        if mark.column != 0 {
            mark.column = 0;
            mark.line += 1;
        }
        self.unroll(-1);
        self.drop_key()?;
        self.may_be_key = false;
        self.push(YamlToken::StreamEnd, self.cursor.mark.line);
        Ok(())
    }

    fn document_mark(&mut self, token: YamlToken) -> Result<(), YamlFault> {
        self.unroll(-1);
        self.drop_key()?;
        self.may_be_key = false;
        self.push(token, self.cursor.mark.line);
        self.cursor.skip_many(3);
        Ok(())
    }

    fn directive(&mut self) -> Result<(), YamlFault> {
        self.unroll(-1);
        self.drop_key()?;
        self.may_be_key = false;
        let line = self.cursor.mark.line;
        let token = self.scan_directive()?;
        self.push(token, line);
        Ok(())
    }

    fn flow_start(&mut self, token: YamlToken) -> Result<(), YamlFault> {
        self.save_key()?;
        self.keys.push(SimpleKey::default());
        self.may_be_key = true;
        self.indicator(token);
        Ok(())
    }

    fn flow_end(&mut self, token: YamlToken) -> Result<(), YamlFault> {
        self.drop_key()?;
        if self.is_in_flow() {
            self.keys.pop();
        }
        self.may_be_key = false;
        self.indicator(token);
        Ok(())
    }

    fn flow_entry(&mut self) -> Result<(), YamlFault> {
        self.drop_key()?;
        self.may_be_key = true;
        self.indicator(YamlToken::FlowEntry);
        Ok(())
    }

    fn indicator(&mut self, token: YamlToken) {
        self.push(token, self.cursor.mark.line);
        self.cursor.skip();
    }

    fn block_entry(&mut self) -> Result<(), YamlFault> {
        self.open_block(YamlToken::BlockSequence, "block sequence entries are not allowed in this context")?;
        self.drop_key()?;
        self.may_be_key = true;
        self.indicator(YamlToken::BlockEntry);
        Ok(())
    }

    /// Within a flow collection nothing is opened.
    fn open_block(&mut self, token: YamlToken, refusal: &str) -> Result<(), YamlFault> {
        if self.is_in_flow() {
            return Ok(());
        }
        if !self.may_be_key {
            return Err(self.fault(refusal));
        }
        let mark = self.cursor.mark;
        self.roll(mark.column, None, token, mark.line);
        Ok(())
    }

    fn key(&mut self) -> Result<(), YamlFault> {
        self.open_block(YamlToken::BlockMapping, "mapping keys are not allowed in this context")?;
        self.drop_key()?;
        self.may_be_key = !self.is_in_flow();
        self.indicator(YamlToken::Key);
        Ok(())
    }

    /// A colon: what was noted before it was a key.
    fn value(&mut self) -> Result<(), YamlFault> {
        if self.is_still_possible(self.keys.len() - 1)? {
            let SimpleKey { token, mark, .. } = *self.last_key();
            self.queue.insert(token - self.taken, Located { token: YamlToken::Key, line: mark.line });
            self.roll(mark.column, Some(token), YamlToken::BlockMapping, mark.line);
            self.last_key().is_possible = false;
            self.may_be_key = false;
        } else {
            self.open_block(YamlToken::BlockMapping, "mapping values are not allowed in this context")?;
            self.may_be_key = !self.is_in_flow();
        }
        self.indicator(YamlToken::Value);
        Ok(())
    }

    fn anchor(&mut self) -> Result<(), YamlFault> {
        self.begin_content()?;
        let line = self.cursor.mark.line;
        let token = self.scan_anchor()?;
        self.push(token, line);
        Ok(())
    }

    fn tag(&mut self) -> Result<(), YamlFault> {
        self.begin_content()?;
        let line = self.cursor.mark.line;
        let token = self.scan_tag()?;
        self.push(token, line);
        Ok(())
    }

    fn block_scalar(&mut self, is_literal: bool) -> Result<(), YamlFault> {
        self.drop_key()?;
        self.may_be_key = true;
        let line = self.cursor.mark.line;
        let text = self.scan_block(is_literal)?;
        self.push(YamlToken::Scalar { text, is_plain: false }, line);
        Ok(())
    }

    fn plain_scalar(&mut self) -> Result<(), YamlFault> {
        self.begin_content()?;
        let line = self.cursor.mark.line;
        let (text, ends_line) = self.scan_plain()?;
        self.may_be_key |= ends_line;
        self.push(YamlToken::Scalar { text, is_plain: true }, line);
        Ok(())
    }
}
