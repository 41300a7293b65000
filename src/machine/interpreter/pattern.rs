//! Patterns of `case`: `*` is any text, `?` any character.

/// Whether `text` matches `pattern`, and how many characters were compared to find that out. Only the last
/// `*` is ever taken up again, so that there are at most as many as the product of their lengths.
pub(crate) fn compare(pattern: &str, text: &str) -> (bool, usize) {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let mut at = 0;
    let mut here = 0;
    let mut compared = 0;
    // Where the last `*` stands, and how far it reaches so far.
    let mut star: Option<(usize, usize)> = None;
    while here < text.len() {
        compared += 1;
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, here));
                at += 1;
            }
            Some(c) if *c == '?' || *c == text[here] => {
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
    (pattern[at..].iter().all(|c| *c == '*'), compared + pattern.len() - at)
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
}
