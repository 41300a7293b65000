//! How the generated parser of CEL's grammar goes on after a mistake (ANTLR's `DefaultErrorStrategy`).
//!
//! A mistake in a rule is told, and what cannot follow is skipped; while nothing was matched since, further
//! mistakes are not told.

use super::error::Issue;
use super::syntax_tokens::*;

/// A set of kinds.
pub(super) type TokenKinds = u64;

/// What may follow a rule where it is called, and whether what called it may end there, too.
#[derive(Clone, Copy)]
pub(super) struct Follow {
    pub(super) kinds: TokenKinds,
    pub(super) may_end: bool,
}

/// A mistake that ends a rule, and where the rule was.
pub(super) struct Stopped {
    message: String,
    /// How many tokens further on.
    ahead: usize,
    state: &'static str,
}

pub(super) type SyntaxRule = Result<(), Stopped>;

/// How deep rules may call each other before the rest is not looked at.
const MAX_DEPTH: usize = 2_000;

pub(super) const fn kinds(list: &[TokenKind]) -> TokenKinds {
    let mut set = 0;
    let mut at = 0;
    while at < list.len() {
        set |= 1 << list[at];
        at += 1;
    }
    set
}

pub(super) struct Syntax<'s> {
    source: &'s str,
    tokens: Vec<Lexeme>,
    at: usize,
    /// What may follow each rule that is being read, outermost first.
    calls: Vec<Follow>,
    /// Nothing was matched since the last mistake.
    is_lost: bool,
    /// Where the last mistake ended rules, and which.
    last: Option<(usize, Vec<&'static str>)>,
    pub(super) issues: Vec<Issue>,
}

impl<'s> Syntax<'s> {
    pub(super) fn new(source: &'s str, tokens: Vec<Lexeme>) -> Syntax<'s> {
        Syntax { source, tokens, at: 0, calls: vec![], is_lost: false, last: None, issues: vec![] }
    }

    pub(super) fn ahead(&self, by: usize) -> Lexeme {
        self.tokens[(self.at + by).min(self.tokens.len() - 1)]
    }

    pub(super) fn next(&self) -> TokenKind {
        self.ahead(0).kind
    }

    pub(super) fn is_in(&self, kinds: TokenKinds) -> bool {
        kinds & 1 << self.next() != 0
    }

    pub(super) fn consume(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    /// Reads a rule; a mistake in it ends it, but not what called it.
    pub(super) fn rule(&mut self, follow: Follow, read: impl FnOnce(&mut Self) -> SyntaxRule) {
        if self.calls.len() >= MAX_DEPTH {
            self.at = self.tokens.len() - 1;
            return;
        }
        self.calls.push(follow);
        let outcome = super::on_enough_stack(|| read(self));
        if let Err(stopped) = outcome {
            self.tell(&stopped.message, stopped.ahead);
            self.recover(stopped.state);
        }
        self.calls.pop();
    }

    pub(super) fn tell(&mut self, message: &str, ahead: usize) {
        if !self.is_lost {
            self.is_lost = true;
            let at = self.ahead(ahead).start;
            self.issues.push(Issue { at, message: format!("Syntax error: {message}") });
        }
    }

    /// Skips what can follow none of the rules that are being read; at least something, the second time.
    pub(super) fn recover(&mut self, state: &'static str) {
        match &mut self.last {
            Some((at, states)) if *at == self.at => {
                if states.contains(&state) {
                    self.consume();
                    self.last = None;
                } else {
                    states.push(state);
                }
            }
            last => *last = Some((self.at, vec![state])),
        }
        let follow = self.calls.iter().fold(kinds(&[END]), |set, call| set | call.kinds);
        while !self.is_in(follow) {
            self.consume();
        }
    }

    pub(super) fn shown(&self, token: Lexeme) -> String {
        match token.kind {
            END => "'<EOF>'".to_owned(),
            _ => format!("'{}'", escape_white(&self.source[token.start..token.end])),
        }
    }

    pub(super) fn mismatch(&self, expected: TokenKinds, state: &'static str) -> Stopped {
        let message = format!("mismatched input {} expecting {}", self.shown(self.ahead(0)), list(expected));
        Stopped { message, ahead: 0, state }
    }

    /// No way goes on behind the first so many tokens.
    pub(super) fn no_way(&self, count: usize, state: &'static str) -> Stopped {
        let first = self.ahead(0);
        // The end is no part of the text.
        let last = (0..=count).rev().map(|ahead| self.ahead(ahead)).find(|token| token.kind != END);
        let text = last.map_or("<EOF>", |last| &self.source[first.start..last.end]);
        let message = format!("no viable alternative at input '{}'", escape_white(text));
        Stopped { message, ahead: count, state }
    }

    /// Whether the next token was too many: what should be there follows it.
    pub(super) fn drops_one(&mut self, expected: TokenKinds) -> bool {
        if expected & 1 << self.ahead(1).kind == 0 {
            return false;
        }
        let message = format!("extraneous input {} expecting {}", self.shown(self.ahead(0)), list(expected));
        self.tell(&message, 0);
        self.consume();
        self.is_lost = false;
        true
    }

    /// Before one of several ways: the next token is one of theirs.
    pub(super) fn sync(&mut self, expected: TokenKinds, state: &'static str) -> SyntaxRule {
        if self.is_lost || self.is_in(expected) || self.drops_one(expected) {
            return Ok(());
        }
        Err(self.mismatch(expected, state))
    }

    /// Takes a token that must be there. It is thought there where what follows it is.
    pub(super) fn expect(&mut self, kind: TokenKind, follow: Follow, state: &'static str) -> SyntaxRule {
        if self.next() == kind {
            self.is_lost = false;
            self.consume();
            return Ok(());
        }
        if self.drops_one(1 << kind) {
            self.consume();
            return Ok(());
        }
        if self.is_in(self.in_context(follow)) {
            let message = format!("missing {} at {}", NAMES[kind as usize], self.shown(self.ahead(0)));
            self.tell(&message, 0);
            return Ok(());
        }
        Err(self.mismatch(1 << kind, state))
    }

    /// With what may follow the rules that may end there.
    pub(super) fn in_context(&self, follow: Follow) -> TokenKinds {
        let mut set = follow.kinds;
        let mut may_end = follow.may_end;
        for call in self.calls.iter().rev() {
            if !may_end {
                break;
            }
            set |= call.kinds;
            may_end = call.may_end;
        }
        set
    }

    pub(super) fn take(&mut self) {
        self.is_lost = false;
        self.consume();
    }

    /// Within a repetition: what does not go on is skipped.
    pub(super) fn unwanted(&mut self, expected: TokenKinds) {
        if self.is_lost {
            return;
        }
        let message = format!("extraneous input {} expecting {}", self.shown(self.ahead(0)), list(expected));
        self.tell(&message, 0);
        let follow = self.calls.iter().fold(expected | kinds(&[END]), |set, call| set | call.kinds);
        while !self.is_in(follow) {
            self.consume();
        }
    }
}

/// What follows, when something must.
pub(super) const fn must(kinds: TokenKinds) -> Follow {
    Follow { kinds, may_end: false }
}

/// What may follow, when nothing must.
pub(super) const fn may(kinds: TokenKinds) -> Follow {
    Follow { kinds, may_end: true }
}

/// One as it is, several in braces.
fn list(kinds: TokenKinds) -> String {
    let names: Vec<&str> =
        NAMES.iter().enumerate().filter(|(at, _)| kinds & 1 << at != 0).map(|(_, name)| *name).collect();
    match names[..] {
        [one] => one.to_owned(),
        _ => format!("{{{}}}", names.join(", ")),
    }
}

pub(super) fn escape_white(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}
