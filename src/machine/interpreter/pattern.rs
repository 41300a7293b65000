//! Patterns of `case`, of file names and of `${NAME#...}`: `*` is any text, `?` any character, `[a-z]` one of
//! those; what a backslash stands before is itself.

use crate::bounds::MAX_MEMORY_BYTES;

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
    // Behind it no bracket is closed, and none need be looked for again and again.
    let last_end = letters.iter().rposition(|letter| *letter == ']').unwrap_or(0);
    let mut at = 0;
    while let Some(letter) = letters.get(at) {
        at += 1;
        // Several stars are as good as one.
        if *letter == '*' && pieces.last() == Some(&PatternPiece::Any) {
            continue;
        }
        pieces.push(match letter {
            '*' => PatternPiece::Any,
            '?' => PatternPiece::One,
            '\\' => {
                at += 1;
                PatternPiece::Letter(letters.get(at - 1).copied().unwrap_or('\\'))
            }
            '[' if at <= last_end => match set(&letters[at..=last_end]) {
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
    /// What it takes to compare a letter with it.
    fn cost(&self) -> usize {
        match self {
            PatternPiece::Set(_, ranges) => 1 + ranges.len(),
            _ => 1,
        }
    }

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
        compared += pattern.get(at).map_or(1, PatternPiece::cost);
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

/// The length of the shortest piece at the beginning of `text` that matches, or of the longest. All places of
/// the pattern where a letter may stand are followed at once, so that no letter is looked at twice. `pay` is
/// told what is compared, and ends it when that cannot be paid.
fn taken(
    pattern: &[PatternPiece],
    text: impl Iterator<Item = char>,
    longest: bool,
    pay: &mut dyn FnMut(usize) -> bool,
) -> Option<usize> {
    let mut places = vec![];
    enter(pattern, &mut places, 0);
    let mut end = None;
    for (at, letter) in text.map(Some).chain([None]).enumerate() {
        // They are in their order.
        if places.last() == Some(&pattern.len()) {
            end = Some(at);
            if !longest {
                break;
            }
        }
        let Some(letter) = letter.filter(|_| !places.is_empty()) else { break };
        let pieces = || places.iter().filter_map(|place| Some((*place, pattern.get(*place)?)));
        if !pay(pieces().map(|(_, piece)| piece.cost()).sum()) {
            return None;
        }
        let mut next = vec![];
        for (place, piece) in pieces().filter(|(_, piece)| piece.is(letter)) {
            enter(pattern, &mut next, if *piece == PatternPiece::Any { place } else { place + 1 });
        }
        places = next;
    }
    end
}

/// A place, and the one behind it where it is a star, which may be nothing.
fn enter(pattern: &[PatternPiece], places: &mut Vec<usize>, place: usize) {
    let is_star = pattern.get(place) == Some(&PatternPiece::Any);
    for place in place..=place + usize::from(is_star) {
        if places.last().is_none_or(|last| *last < place) {
            places.push(place);
        }
    }
}

/// What is left of `text` when what matches is taken from its beginning or its end: the shortest piece that
/// does, or the longest. `pay` is told what is compared.
pub(crate) fn trimmed<'a>(
    text: &'a str,
    pattern: &str,
    at_end: bool,
    longest: bool,
    pay: &mut dyn FnMut(usize) -> bool,
) -> &'a str {
    let mut pattern = pieces(pattern);
    if at_end {
        pattern.reverse();
        let count = taken(&pattern, text.chars().rev(), longest, pay).unwrap_or(0);
        let first = count.checked_sub(1).and_then(|last| text.char_indices().rev().nth(last));
        return &text[..first.map_or(text.len(), |(at, _)| at)];
    }
    let count = taken(&pattern, text.chars(), longest, pay).unwrap_or(0);
    &text[text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)..]
}

/// `text` with what matches replaced, once or everywhere; the longest piece each time. Nothing when that is
/// over [`MAX_MEMORY_BYTES`]; the rest stays as it is when no more can be paid for.
pub(crate) fn replaced(
    text: &str,
    pattern: &str,
    with: &str,
    everywhere: bool,
    pay: &mut dyn FnMut(usize) -> bool,
) -> Option<String> {
    let pattern = pieces(pattern);
    let mut out = String::new();
    let mut rest = text;
    let mut is_done = pattern.is_empty();
    while let Some(letter) = rest.chars().next().filter(|_| !is_done) {
        let found = taken(&pattern, rest.chars(), true, pay).filter(|count| *count > 0);
        let kept = if found.is_some() { with } else { &rest[..letter.len_utf8()] };
        out.push_str(kept);
        let end = rest.char_indices().nth(found.unwrap_or(1)).map_or(rest.len(), |(at, _)| at);
        rest = &rest[end..];
        is_done = !pay(kept.len()) || found.is_some() && !everywhere;
        if out.len() > MAX_MEMORY_BYTES {
            return None;
        }
    }
    Some(out + rest)
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
    fn what_is_compared_is_paid_for_and_no_more() {
        const ALL: usize = 20_000;
        let text = "a".repeat(1000);
        let mut paid = 0;
        let left = trimmed(&text, "*a*b", false, true, &mut |cost| {
            paid += cost;
            true
        });
        assert!(left == text && paid > 2 * text.len() && paid <= 5 * text.len(), "{paid}");
        paid = 0;
        let shown = replaced(&text, "*b", "c", true, &mut |cost| {
            paid += cost;
            paid <= ALL
        });
        assert_eq!(shown, Some(text.clone()));
        assert!((ALL..ALL + 100).contains(&paid), "it ends where no more can be paid: {paid}");
        let long = "a".repeat(MAX_MEMORY_BYTES / 10);
        assert_eq!(replaced(&text, "a", &long, true, &mut |_| true), None);
    }

    /// None of them is looked for more than once, however many there are.
    #[test]
    fn brackets_that_nothing_closes_are_letters() {
        let open = "[".repeat(100_000);
        assert!(compare(&open, &open).0);
        assert!(compare(&format!("[a]{open}"), &format!("a{open}")).0);
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
            let left = trimmed("a/b/c.tar.gz", pattern, at_end, longest, &mut |_| true);
            assert_eq!(left, wanted, "{pattern}");
        }
        for (text, pattern, at_end, longest, wanted) in [
            ("ä/ä", "/?", true, false, "ä"),
            ("aab", "*a", false, false, "ab"),
            ("aab", "*a", false, true, "b"),
            ("baa", "a*", true, true, "b"),
            ("ab[", "[", true, false, "ab"),
        ] {
            assert_eq!(trimmed(text, pattern, at_end, longest, &mut |_| true), wanted, "{pattern}");
        }
        for (text, pattern, with, everywhere, wanted) in [
            ("a.b.c", ".", "-", false, "a-b.c"),
            ("a.b.c", "[ab].", "", true, "c"),
            ("äxb, axb!", "?*b", "-", true, "-!"),
            ("aXbXc", "X**", "", true, "a"),
        ] {
            let shown = replaced(text, pattern, with, everywhere, &mut |_| true);
            assert_eq!(shown.unwrap(), wanted, "{pattern}");
        }
        assert_eq!(compare(&escaped("a[*"), "a[*"), (true, 3));
    }
}
