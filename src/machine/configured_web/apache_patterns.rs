//! Patterns of Apache's configuration: compiled when that is read, so that a request only matches them.

use regex::{Regex, RegexBuilder};

/// So many patterns are read of all files together; more are not followed.
const MAX_PATTERNS: usize = 256;
/// A pattern that takes more than this when it is compiled is not followed.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// Why a part of a configuration is not read.
#[derive(Debug, PartialEq)]
pub(super) enum ApacheMisreading {
    /// Apache does not read it either, and says this.
    Refused(String),
    /// Apache has it, and it is not followed here.
    Unknown(String),
}

/// A pattern, and what it is compiled to.
#[derive(Clone, Debug)]
pub(super) struct ApachePattern {
    text: String,
    ignores_case: bool,
    compiled: Regex,
}

impl PartialEq for ApachePattern {
    fn eq(&self, other: &ApachePattern) -> bool {
        (&self.text, self.ignores_case) == (&other.text, other.ignores_case)
    }
}

impl ApachePattern {
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }

    /// With `$0` to `$9` as the parts of the text that it fits; nothing where it does not.
    pub(super) fn filled(&self, text: &str, value: &str) -> Option<String> {
        let parts = self.compiled.captures(text)?;
        let mut filled = String::new();
        let mut letters = value.chars().peekable();
        while let Some(letter) = letters.next() {
            match letters.peek().and_then(|next| next.to_digit(10)).filter(|_| letter == '$') {
                Some(number) => {
                    letters.next();
                    filled.push_str(parts.get(number as usize).map_or("", |part| part.as_str()));
                }
                None => filled.push(letter),
            }
        }
        Some(filled)
    }
}

/// How many patterns there are so far.
#[derive(Debug, Default)]
pub(super) struct PatternCount(usize);

impl PatternCount {
    /// Compiles one more.
    ///
    /// # Errors
    /// What is not followed.
    pub(super) fn compiled(
        &mut self,
        text: &str,
        ignores_case: bool,
    ) -> Result<ApachePattern, ApacheMisreading> {
        self.0 += 1;
        if self.0 > MAX_PATTERNS {
            return Err(ApacheMisreading::Unknown(format!("more than {MAX_PATTERNS} patterns")));
        }
        let compiled =
            RegexBuilder::new(text).case_insensitive(ignores_case).size_limit(MAX_PATTERN_BYTES).build();
        let compiled = compiled.map_err(|_| ApacheMisreading::Unknown(format!("the pattern {text:?}")))?;
        Ok(ApachePattern { text: text.to_owned(), ignores_case, compiled })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_bounded_in_size_and_number() {
        let mut count = PatternCount::default();
        assert!(count.compiled("(a{1000}){1000}", false).is_err());
        let all = (1..MAX_PATTERNS).map(|_| count.compiled("A", true).unwrap()).count();
        assert_eq!(all, MAX_PATTERNS - 1);
        assert!(count.compiled("a", false).is_err());
    }

    #[test]
    fn parts_of_what_fits_are_filled_in() {
        let pattern = PatternCount::default().compiled("(b)(c)?", false).unwrap();
        assert_eq!(pattern.filled("abd", "$0-$1$2$x$").as_deref(), Some("b-b$x$"));
        assert_eq!(pattern.filled("x", "$0"), None);
    }
}
