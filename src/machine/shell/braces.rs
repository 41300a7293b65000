//! `{a,b}` and `{1..3}`: one word that becomes several (bash).

use super::syntax::{Part, Word};

/// So many words one becomes at most; of more it stays as it is.
const MAX_WORDS: usize = 1_000;

/// The words that a word becomes: of the first pair of braces in it that is not quoted, and so on.
pub(super) fn words(word: Word) -> Vec<Word> {
    let mut done = Vec::new();
    let mut waiting = vec![word];
    while let Some(word) = waiting.pop() {
        match expanded(&word) {
            Some(words) if words.len() + waiting.len() + done.len() <= MAX_WORDS => {
                waiting.extend(words.into_iter().rev());
            }
            _ => done.push(word),
        }
    }
    done
}

fn expanded(word: &Word) -> Option<Vec<Word>> {
    let (index, text) = word.iter().enumerate().find_map(|(index, part)| match part {
        Part::Text(text, false) if alternatives(text).is_some() => Some((index, text)),
        _ => None,
    })?;
    let (before, choices, after) = alternatives(text)?;
    let with = |choice: String| {
        let mut own = word.clone();
        own[index] = Part::Text(format!("{before}{choice}{after}"), false);
        own
    };
    Some(choices.into_iter().map(with).collect())
}

/// What stands before, between and behind the first braces that mean something.
fn alternatives(text: &str) -> Option<(&str, Vec<String>, &str)> {
    for (open, _) in text.match_indices('{') {
        let Some(close) = closing(&text[open..]) else { continue };
        let inner = &text[open + 1..open + close];
        if let Some(choices) = range(inner).or_else(|| list(inner)) {
            return Some((&text[..open], choices, &text[open + close + 1..]));
        }
    }
    None
}

fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        (depth == 0).then_some(at)
    })
}

fn list(inner: &str) -> Option<Vec<String>> {
    let mut depth = 0;
    let mut choices = vec![];
    let mut from = 0;
    for (at, c) in inner.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            choices.push(inner[from..at].to_owned());
            from = at + 1;
        }
    }
    choices.push(inner[from..].to_owned());
    Some(choices).filter(|choices| choices.len() > 1)
}

fn range(inner: &str) -> Option<Vec<String>> {
    let (first, last) = inner.split_once("..")?;
    let (from, to): (i64, i64) = (first.parse().ok()?, last.parse().ok()?);
    let count = usize::try_from(from.abs_diff(to)).ok().filter(|count| *count < MAX_WORDS)?;
    let step = if from <= to { 1 } else { -1 };
    let width = if first.starts_with('0') && first.len() > 1 { first.len() } else { 0 };
    Some((0..=count as i64).map(|at| format!("{:0width$}", from + at * step)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let plain = |word: Word| match word.as_slice() {
            [Part::Text(text, _)] => text.clone(),
            other => panic!("{other:?}"),
        };
        words(vec![Part::Text(text.into(), false)]).into_iter().map(plain).collect()
    }

    #[test]
    fn lists_and_ranges_become_words() {
        assert_eq!(shown("a{b,c}d"), ["abd", "acd"]);
        assert_eq!(shown("{1..3}"), ["1", "2", "3"]);
        assert_eq!(shown("{03..1}"), ["03", "02", "01"]);
        assert_eq!(shown("{a,b{1,2}}{x,}"), ["ax", "a", "b1x", "b1", "b2x", "b2"]);
        for plain in ["{}", "{a}", "{a,b", "{1..}", "a}", "{1..99999999}"] {
            assert_eq!(shown(plain), [plain]);
        }
        assert_eq!(words(vec![Part::Text("{a,b}".into(), true)]).len(), 1);
        assert!(shown(&"{a,b}".repeat(20)).len() <= MAX_WORDS);
    }
}
