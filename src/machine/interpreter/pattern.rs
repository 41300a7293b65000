//! Patterns of `case`, of file names and of `${NAME#...}`: `*` is any text, `?` any character, `[a-z]` one of
//! those; what a backslash stands before is itself.

/// What it costs at worst to look for a pattern everywhere in a text.
pub(crate) fn cost(pattern: &str, text: &str) -> usize {
    if pattern.contains('*') {
        text.len().saturating_mul(text.len())
    } else {
        text.len().saturating_mul(pattern.len().min(16))
    }
}

/// One place of a pattern.
#[derive(Clone, Debug, PartialEq)]
enum PatternPiece {
    Any,
    One,
    Letter(char),
    /// Whether it is none of these ranges.
    Set(bool, Vec<(char, char)>),
}

fn pieces(pattern: &str) -> Vec<PatternPiece> {
    let letters: Vec<char> = pattern.chars().collect();
    let mut pieces = Vec::with_capacity(letters.len());
    let mut at = 0;
    while let Some(letter) = letters.get(at) {
        at += 1;
        pieces.push(match letter {
            '*' => PatternPiece::Any,
            '?' => PatternPiece::One,
            '\\' => {
                at += 1;
                PatternPiece::Letter(letters.get(at - 1).copied().unwrap_or('\\'))
            }
            '[' => match set(&letters[at..]) {
                Some((set, length)) => {
                    at += length;
                    set
                }
                None => PatternPiece::Letter('['),
            },
            letter => PatternPiece::Letter(*letter),
        });
    }
    pieces
}

/// What stands behind a bracket, and its length with the one that closes it.
fn set(letters: &[char]) -> Option<(PatternPiece, usize)> {
    let is_negated = matches!(letters.first(), Some('!' | '^'));
    let first = usize::from(is_negated);
    let end = first + 1 + letters.get(first + 1..)?.iter().position(|letter| *letter == ']')?;
    let text: String = letters[first..end].iter().collect();
    if let Some(class) = text.strip_prefix("[:") {
        // `[[:digit:]]` ends with two brackets.
        let name = class.strip_suffix(":").or_else(|| class.strip_suffix(":]")).unwrap_or(class);
        let closes = usize::from(letters.get(end + 1) == Some(&']'));
        return Some((PatternPiece::Set(is_negated, class_of(name)), end + 1 + closes));
    }
    let inner: Vec<char> = letters[first..end].iter().copied().filter(|letter| *letter != '\\').collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < inner.len() {
        if inner.get(at + 1) == Some(&'-') && at + 2 < inner.len() {
            ranges.push((inner[at], inner[at + 2]));
            at += 3;
        } else {
            ranges.push((inner[at], inner[at]));
            at += 1;
        }
    }
    Some((PatternPiece::Set(is_negated, ranges), end + 1))
}

/// The ranges of `[:digit:]` and its kin; of a name that is none, none.
pub(crate) fn class_of(name: &str) -> Vec<(char, char)> {
    match name {
        "digit" => vec![('0', '9')],
        "lower" => vec![('a', 'z')],
        "upper" => vec![('A', 'Z')],
        "alpha" => vec![('a', 'z'), ('A', 'Z')],
        "alnum" => vec![('a', 'z'), ('A', 'Z'), ('0', '9')],
        "space" => vec![(' ', ' '), ('\t', '\r')],
        "blank" => vec![(' ', ' '), ('\t', '\t')],
        "xdigit" => vec![('0', '9'), ('a', 'f'), ('A', 'F')],
        "punct" => vec![('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "cntrl" => vec![('\0', '\u{1f}'), ('\u{7f}', '\u{7f}')],
        "print" => vec![(' ', '~')],
        "graph" => vec![('!', '~')],
        _ => vec![],
    }
}

impl PatternPiece {
    fn is(&self, letter: char) -> bool {
        match self {
            PatternPiece::Any | PatternPiece::One => true,
            PatternPiece::Letter(own) => *own == letter,
            PatternPiece::Set(is_negated, ranges) => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&letter)) != *is_negated
            }
        }
    }
}

/// Whether `text` matches `pattern`, and how many characters were compared to find that out. Only the last
/// `*` is ever taken up again, so that there are at most as many as the product of their lengths.
pub(crate) fn compare(pattern: &str, text: &str) -> (bool, usize) {
    let (pattern, text): (Vec<PatternPiece>, Vec<char>) = (pieces(pattern), text.chars().collect());
    compare_pieces(&pattern, &text)
}

fn compare_pieces(pattern: &[PatternPiece], text: &[char]) -> (bool, usize) {
    let mut at = 0;
    let mut here = 0;
    let mut compared = 0;
    // Where the last `*` stands, and how far it reaches so far.
    let mut star: Option<(usize, usize)> = None;
    while here < text.len() {
        compared += 1;
        match pattern.get(at) {
            Some(PatternPiece::Any) => {
                star = Some((at, here));
                at += 1;
            }
            Some(piece) if piece.is(text[here]) => {
                at += 1;
                here += 1;
            }
            _ => {
                let Some((star_at, reach)) = &mut star else { return (false, compared) };
                *reach += 1;
                (at, here) = (*star_at + 1, *reach);
            }
        }
    }
    let is_like = pattern[at..].iter().all(|piece| *piece == PatternPiece::Any);
    (is_like, compared + pattern.len() - at)
}

/// What is left of `text` when what matches is taken from its beginning or its end: the shortest piece that
/// does, or the longest. How much is compared for that is for the caller to count.
pub(crate) fn trimmed<'a>(text: &'a str, pattern: &str, at_end: bool, longest: bool) -> &'a str {
    let pattern = pieces(pattern);
    let mut places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    // From the shortest piece to the longest.
    if at_end != longest {
        places.reverse();
    }
    for at in places {
        let (taken, left) = if at_end { (&text[at..], &text[..at]) } else { (&text[..at], &text[at..]) };
        let letters: Vec<char> = taken.chars().collect();
        if compare_pieces(&pattern, &letters).0 {
            return left;
        }
    }
    text
}

/// `text` with what matches replaced, once or everywhere; the longest piece each time.
pub(crate) fn replaced(text: &str, pattern: &str, with: &str, everywhere: bool) -> String {
    let pattern = pieces(pattern);
    let letters: Vec<char> = text.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    let mut is_done = pattern.is_empty();
    let fixed = Some(pattern.len()).filter(|_| !pattern.contains(&PatternPiece::Any));
    while at < letters.len() {
        // Without a star there is but one length.
        let ends = match fixed {
            Some(length) => (at + length)..=(at + length).min(letters.len()),
            None => at + 1..=letters.len(),
        };
        let end = ends.rev().find(|end| compare_pieces(&pattern, &letters[at..*end]).0);
        match end.filter(|_| !is_done) {
            Some(end) => {
                out.push_str(with);
                at = end;
                is_done = !everywhere;
            }
            None => {
                out.push(letters[at]);
                at += 1;
            }
        }
    }
    out
}

/// A text that a pattern matches as it is.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | '\\') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_are_filled() {
        let cases = [
            ("", "", true),
            ("*", "", true),
            ("a*", "abc", true),
            ("a*c", "abcbc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*b*d", "abcd", true),
            ("*b*e", "abcd", false),
            ("ä*?", "äöü", true),
            ("abc", "ab", false),
            ("ab", "abc", false),
            ("**a**", "a", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[[:digit:]]*", "4you", true),
            ("[]]", "]", true),
            ("[ab", "[ab", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
        ];
        for (pattern, text, wanted) in cases {
            assert_eq!(compare(pattern, text).0, wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_cost_no_more_than_one() {
        let (text, pattern) = ("a".repeat(60), "*a".repeat(40) + "b");
        let (is_like, compared) = compare(&pattern, &text);
        assert!(!is_like && compared <= pattern.len() * text.len(), "{compared}");
    }

    #[test]
    fn pieces_are_taken_and_replaced() {
        for (at_end, longest, pattern, wanted) in [
            (false, false, "*/", "b/c.tar.gz"),
            (false, true, "*/", "c.tar.gz"),
            (true, false, ".*", "a/b/c.tar"),
            (true, true, ".*", "a/b/c"),
            (true, true, "x", "a/b/c.tar.gz"),
        ] {
            assert_eq!(trimmed("a/b/c.tar.gz", pattern, at_end, longest), wanted, "{pattern}");
        }
        assert_eq!(replaced("a.b.c", ".", "-", false), "a-b.c");
        assert_eq!(replaced("a.b.c", "[ab].", "", true), "c");
        assert_eq!(compare(&escaped("a[*"), "a[*"), (true, 3));
    }
}
