//! `pattern`: a regular expression in Go's syntax that a text must match somewhere.

use cel::go_patterns::{BadPattern, go_regex};
use regex::Regex;

/// A pattern, and how it was written.
#[derive(Debug)]
pub struct ValuePattern {
    text: String,
    regex: Regex,
}

impl ValuePattern {
    /// Reads one.
    ///
    /// # Errors
    /// It is none, or too large, in Go's words.
    pub fn read(text: &str) -> Result<ValuePattern, BadPattern> {
        Ok(ValuePattern { text: text.to_owned(), regex: go_regex(text)? })
    }

    /// As it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_match(&self, value: &str) -> bool {
        self.regex.is_match(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_as_go_reads_them() {
        for (pattern, text, matches) in [
            // A bracket within brackets is a letter: the name of a cookie, as Contour's HTTPProxy has it.
            (r#"^[^()<>@,;:\\"\/[\]?={} \t\x7f]+$"#, "session", true),
            (r#"^[^()<>@,;:\\"\/[\]?={} \t\x7f]+$"#, "a[b", false),
            (r"^[a&&b]+$", "a&b", true),
            (r"^\d$", "٣", false),
            ("^{a}$", "{a}", true),
            ("^.{1,1000}$", "é", true),
        ] {
            assert_eq!(ValuePattern::read(pattern).unwrap().is_match(text), matches, "{pattern} {text}");
        }
        for (pattern, why) in [
            ("(a", "error parsing regexp: missing closing ): `(a`"),
            ("a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"),
        ] {
            assert_eq!(ValuePattern::read(pattern).unwrap_err().to_string(), why);
        }
    }
}
