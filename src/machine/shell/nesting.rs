//! Where what is opened in a script is closed: parentheses, braces and sums, with whatever stands in them.

use crate::bounds::MAX_DEPTH;

/// What a scan goes through.
#[derive(Default)]
struct NestingScan {
    /// Of each parenthesis that is open how many `case` are in it, whose patterns close one of their own.
    levels: Vec<usize>,
    /// Braces of variables.
    braces: usize,
    word: String,
}

impl NestingScan {
    /// A word is over.
    fn end_word(&mut self) {
        match (self.word.as_str(), self.levels.last_mut()) {
            ("case", Some(cases)) => *cases += 1,
            ("esac", Some(cases)) => *cases = cases.saturating_sub(1),
            _ => {}
        }
        self.word.clear();
    }
}

/// The index of the parenthesis that closes the one at `from`.
pub(super) fn closing_parenthesis(text: &str, from: usize) -> Option<usize> {
    parenthesis(text, from, 0)
}

/// Quotations within quotations are looked into [`MAX_DEPTH`] deep; of what is deeper nobody finds the end.
fn parenthesis(text: &str, from: usize, depth: usize) -> Option<usize> {
    let mut scan = NestingScan::default();
    let mut letters = text.char_indices().skip_while(|(at, _)| *at < from).peekable();
    let mut before = ' ';
    while let Some((at, c)) = letters.next() {
        match c {
            '\\' => drop(letters.next()),
            '\'' => drop(letters.find(|(_, c)| *c == '\'')),
            '"' => {
                let end = closing_quote(text, at, depth)?;
                while letters.next_if(|(at, _)| *at <= end).is_some() {}
            }
            '#' if before.is_whitespace() || before == ';' => {
                while letters.next_if(|(_, c)| *c != '\n').is_some() {}
            }
            '{' if before == '$' => scan.braces += 1,
            '}' if scan.braces > 0 => scan.braces -= 1,
            '(' => {
                scan.end_word();
                scan.levels.push(0);
            }
            ')' if scan.braces == 0 => {
                scan.end_word();
                // Behind a pattern.
                if scan.levels.last().is_some_and(|cases| *cases > 0) {
                    before = c;
                    continue;
                }
                scan.levels.pop();
                if scan.levels.is_empty() {
                    return Some(at);
                }
            }
            c if c.is_ascii_alphanumeric() || c == '_' => scan.word.push(c),
            _ => scan.end_word(),
        }
        before = c;
    }
    None
}

/// The index of the quote that ends the one at `from`; what is filled in may have quotes of its own.
fn closing_quote(text: &str, from: usize, depth: usize) -> Option<usize> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut at = from + 1;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' => return Some(at),
            '\\' => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '$' if text[at + 1..].starts_with('(') => at = parenthesis(text, at + 1, depth + 1)? + 1,
            '$' if text[at + 1..].starts_with('{') => at = brace(text, at + 1, depth + 1)? + 1,
            c => at += c.len_utf8(),
        }
    }
    None
}

/// The index of the brace that closes the one at `from`.
pub(super) fn closing_brace(text: &str, from: usize) -> Option<usize> {
    brace(text, from, 0)
}

fn brace(text: &str, from: usize, depth: usize) -> Option<usize> {
    let mut open = 0;
    let mut at = from;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '\\' => at += text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '\'' => at += 1 + text[at + 1..].find('\'')?,
            '"' => at = closing_quote(text, at, depth)?,
            '$' if text[at + 1..].starts_with('(') => at = parenthesis(text, at + 1, depth + 1)?,
            '{' => open += 1,
            '}' => {
                open -= 1;
                if open == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += text[at..].chars().next().map_or(1, char::len_utf8);
    }
    None
}

/// Where `))` ends that closes what is opened just before `from`; none when it is no sum.
pub(super) fn sum_end(text: &str, from: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < from) {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ')' if text[at + 1..].starts_with(')') => return Some(at + 2),
            ')' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_closes_is_found_behind_whatever_looks_like_it() {
        for text in [
            "(a)",
            "(a $(b) c)",
            "(echo ')')",
            "(echo \")\")",
            "(echo \"$(echo \")\")\")",
            "(case a in a) b;; (c) d;; esac)",
            "(echo \\))",
            "(a # it's )\n)",
            "(echo ${x%)})",
            "(echo $# a)",
        ] {
            assert_eq!(closing_parenthesis(&format!("{text} rest )"), 0), Some(text.len() - 1), "{text}");
        }
        assert_eq!(closing_parenthesis("(a", 0), None);
        assert_eq!(closing_parenthesis(&"(echo \"$".repeat(100_000), 0), None);
        for text in ["{a}", "{a:-${b}}", "{a:-\"}\"}", "{a#'}'}", "{a:-$(echo })}"] {
            assert_eq!(closing_brace(&format!("{text}}}"), 0), Some(text.len() - 1), "{text}");
        }
        assert_eq!(sum_end("$((1 + (2)))", 3), Some(12));
        assert_eq!(sum_end("$((a); b)", 3), None);
    }
}
