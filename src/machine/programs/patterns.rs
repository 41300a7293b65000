//! Regular expressions, as POSIX' basic ones are written.

/// A basic expression as an extended one: there `\(`, `\{`, `\+`, `\?` and `\|` have a meaning, and what
/// stands without a backslash is itself.
pub(super) fn basic(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars().peekable();
    let mut in_set = false;
    while let Some(c) = letters.next() {
        match c {
            '[' if !in_set => {
                in_set = true;
                out.push(c);
                out.extend(letters.next_if_eq(&'^'));
                // The first bracket is itself.
                if letters.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ']' if in_set => {
                in_set = false;
                out.push(c);
            }
            '[' if letters.peek() != Some(&':') => out.push_str("\\["),
            '[' => {
                // `[:digit:]` within a set.
                out.push(c);
                for inner in letters.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            c if in_set => out.push(c),
            '\\' => match letters.next() {
                Some(special @ ('(' | ')' | '{' | '}' | '+' | '?' | '|')) => out.push(special),
                Some('<' | '>') => out.push_str("\\b"),
                Some(other) => out.extend(['\\', other]),
                None => out.push_str("\\\\"),
            },
            '(' | ')' | '{' | '}' | '+' | '?' | '|' => out.extend(['\\', c]),
            '*' if out.is_empty() || out == "^" => out.push_str("\\*"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_mean_the_other_thing() {
        for (pattern, wanted) in [
            ("\\(a\\)\\{2\\}", "(a){2}"),
            ("a+(b)?|c", "a\\+\\(b\\)\\?\\|c"),
            ("a\\+b\\|c", "a+b|c"),
            ("*a*", "\\*a*"),
            ("[^]a(]", "[^\\]a(]"),
            ("[[:digit:]]\\+", "[[:digit:]]+"),
            ("a\\.b", "a\\.b"),
        ] {
            assert_eq!(basic(pattern), wanted, "{pattern}");
        }
    }
}
