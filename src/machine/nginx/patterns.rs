//! Patterns of nginx's configuration: compiled when that is read, so that a request only matches them.

use regex::{Regex, RegexBuilder};

/// So many patterns are read of all files together; of more the later ones fit nothing.
const MAX_PATTERNS: usize = 256;
/// A pattern that takes more than this when it is compiled is none.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// A pattern, and what it is compiled to; nothing for what the regex crate does not read.
#[derive(Clone, Debug)]
pub(super) struct ConfPattern {
    text: String,
    ignores_case: bool,
    compiled: Option<Regex>,
}

impl PartialEq for ConfPattern {
    fn eq(&self, other: &ConfPattern) -> bool {
        (&self.text, self.ignores_case) == (&other.text, other.ignores_case)
    }
}

impl ConfPattern {
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.compiled.as_ref().is_some_and(|own| own.is_match(text))
    }

    pub(super) fn compiled(&self) -> Option<&Regex> {
        self.compiled.as_ref()
    }
}

/// All patterns of a configuration, counted, and what is wrong with some.
#[derive(Debug, Default)]
pub(super) struct PatternBook {
    count: usize,
    pub(super) problems: Vec<String>,
}

impl PatternBook {
    /// A pattern that stands at a place of the configuration.
    pub(super) fn read(&mut self, text: &str, ignores_case: bool, place: &str) -> ConfPattern {
        self.count += 1;
        let compiled = match self.count {
            ..=MAX_PATTERNS => self.compile(text, ignores_case, place),
            count if count == MAX_PATTERNS + 1 => {
                self.problems
                    .push(format!("[emerg] 1#1: more than {MAX_PATTERNS} patterns are not simulated"));
                None
            }
            _ => None,
        };
        ConfPattern { text: text.to_owned(), ignores_case, compiled }
    }

    fn compile(&mut self, text: &str, ignores_case: bool, place: &str) -> Option<Regex> {
        let mut builder = RegexBuilder::new(text);
        builder
            .case_insensitive(ignores_case)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES);
        let compiled = builder.build();
        if compiled.is_err() {
            let why = "is not simulated, and fits nothing";
            self.problems.push(format!("[warn] 1#1: pattern \"{text}\" {why} in {place}"));
        }
        compiled.ok()
    }
}

/// `~pattern`, and `~*pattern` that ignores case: what is behind the sign.
pub(super) fn signed(word: &str) -> Option<(&str, bool)> {
    let own = word.strip_prefix('~')?;
    Some(own.strip_prefix('*').map_or((own, false), |own| (own, true)))
}
