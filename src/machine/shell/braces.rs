//! `{a,b}` and `{1..3}`: one word that becomes several (bash).

use std::cell::Cell;

use super::syntax::{ShellWordPart, Word};

/// So many words one becomes at most; of more it stays as it is.
const MAX_WORDS: usize = 1_000;
/// What all braces of a script may make, in bytes: for each word [`BYTES_OF_WORD`] and its length eight
/// times, as what it is made of takes more than its text. A word for which that is too little stays as it is.
pub(super) const MAX_MADE_BYTES: usize = 4 << 20;
const BYTES_OF_WORD: usize = 64;
/// To so many digits a number is filled up with zeros, which is what the library can show; braces that ask
/// for more stay as they are.
const MAX_DIGITS: usize = u16::MAX as usize;
/// As long as any number is that is not filled up.
const NUMBER_BYTES: usize = 20;

/// A brace that nothing has closed yet.
struct OpenBrace {
    at: usize,
    is_list: bool,
    has_inner: bool,
}

/// The words that a word becomes: of the first pair of braces in it that is not quoted, and so on. It takes
/// up `length` bytes, with what was made of the braces in its substitutions; in `left` is what all may still
/// make.
pub(super) fn words(word: Word, length: usize, left: &Cell<usize>) -> Vec<Word> {
    let mut done = Vec::new();
    let mut waiting = vec![word];
    let mut whole = None;
    while let Some(word) = waiting.pop() {
        let Some((index, open, close)) = first_braces(&word) else {
            done.push(word);
            continue;
        };
        let most = MAX_WORDS.saturating_sub(waiting.len() + done.len());
        let made = made(&word, (index, open, close), length, most, left);
        let whole = whole.get_or_insert(word);
        let Some(made) = made else { return vec![std::mem::take(whole)] };
        waiting.extend(made.into_iter().rev());
    }
    done
}

/// The words that these braces make; nothing when that is too much.
fn made(
    word: &Word,
    (index, open, close): (usize, usize, usize),
    length: usize,
    most: usize,
    left: &Cell<usize>,
) -> Option<Vec<Word>> {
    let ShellWordPart::Text(text, _) = &word[index] else { return None };
    let inner = &text[open + 1..close];
    let range = range(inner);
    let pieces = list(inner);
    let (count, width) = match range {
        Some((from, to, width)) => (from.abs_diff(to) as usize + 1, width.max(NUMBER_BYTES)),
        None => (pieces.len(), 0),
    };
    let each = BYTES_OF_WORD.saturating_add(length.saturating_add(width).saturating_mul(8));
    left.set(left.get().checked_sub(count.saturating_mul(each)).filter(|_| count <= most)?);
    let with = |choice: &str| {
        let mut own = word.clone();
        own[index] = ShellWordPart::Text(format!("{}{choice}{}", &text[..open], &text[close + 1..]), false);
        own
    };
    Some(match range {
        Some((from, to, width)) => numbers(from, to).map(|at| with(&format!("{at:0width$}"))).collect(),
        None => pieces.into_iter().map(with).collect(),
    })
}

/// In which part of a word, and where in it, the first braces are that mean something.
fn first_braces(word: &Word) -> Option<(usize, usize, usize)> {
    word.iter().enumerate().find_map(|(index, part)| match part {
        ShellWordPart::Text(text, false) => alternatives(text).map(|(open, close)| (index, open, close)),
        _ => None,
    })
}

/// Where the first braces are that mean something. Each letter is looked at once, and once more within the
/// innermost braces.
fn alternatives(text: &str) -> Option<(usize, usize)> {
    let mut waiting: Vec<OpenBrace> = vec![];
    let mut first: Option<(usize, usize)> = None;
    for (at, letter) in text.bytes().enumerate() {
        match letter {
            b'{' => {
                waiting.iter_mut().next_back().into_iter().for_each(|outer| outer.has_inner = true);
                waiting.push(OpenBrace { at, is_list: false, has_inner: false });
            }
            b',' => waiting.iter_mut().next_back().into_iter().for_each(|own| own.is_list = true),
            b'}' => {
                let Some(own) = waiting.pop() else { continue };
                let is_range = || !own.has_inner && range(&text[own.at + 1..at]).is_some();
                if first.is_none_or(|(open, _)| own.at < open) && (own.is_list || is_range()) {
                    first = Some((own.at, at));
                }
            }
            _ => {}
        }
        if first.is_some() && waiting.is_empty() {
            break;
        }
    }
    first
}

/// What stands between the commas that are in no braces within these.
fn list(inner: &str) -> Vec<&str> {
    let mut depth = 0;
    let between = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    inner.split(between).collect()
}

/// From where to where a range goes, and how many digits it shows at least.
fn range(inner: &str) -> Option<(i64, i64, usize)> {
    let (first, last) = inner.split_once("..")?;
    let (from, to): (i64, i64) = (first.parse().ok()?, last.parse().ok()?);
    let width = if first.starts_with('0') && first.len() > 1 { first.len() } else { 0 };
    let is_short = from.abs_diff(to) < MAX_WORDS as u64 && width <= MAX_DIGITS;
    is_short.then_some((from, to, width))
}

fn numbers(from: i64, to: i64) -> impl Iterator<Item = i64> {
    let step = if from <= to { 1 } else { -1 };
    (0..=from.abs_diff(to) as i64).map(move |at| from + at * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let plain = |word: Word| match word.as_slice() {
            [ShellWordPart::Text(text, _)] => text.clone(),
            other => panic!("{other:?}"),
        };
        let left = Cell::new(MAX_MADE_BYTES);
        words(vec![ShellWordPart::Text(text.into(), false)], text.len(), &left)
            .into_iter()
            .map(plain)
            .collect()
    }

    #[test]
    fn what_is_too_much_stays_as_it_is() {
        let zeros = "0".repeat(MAX_DIGITS);
        assert_eq!(shown(&format!("{{{zeros}..1}}")), [zeros.clone(), zeros[1..].to_owned() + "1"]);
        for plain in [
            format!("{{0{zeros}..2}}"),
            "{".repeat(120_000),
            "{a".repeat(30_000) + &"}".repeat(30_000),
            format!("{}{{1..999}}", "a".repeat(120_000)),
            "{a,b}".repeat(20),
            format!("{{{}}}", ",".repeat(MAX_WORDS)),
        ] {
            assert_eq!(shown(&plain), [plain.as_str()], "{}", &plain[..20]);
        }
        let left = Cell::new(MAX_MADE_BYTES);
        let counts =
            (0..100).map(|_| words(vec![ShellWordPart::Text("{1..999}".into(), false)], 8, &left).len());
        let counts: Vec<usize> = counts.collect();
        assert_eq!((counts[0], counts[99]), (999, 1), "all of a script count together: {counts:?}");
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
        assert_eq!(shown("}{a{b,c}{d}"), ["}{ab{d}", "}{ac{d}"]);
        let quoted = vec![ShellWordPart::Text("{a,b}".into(), true)];
        assert_eq!(words(quoted, 7, &Cell::new(MAX_MADE_BYTES)).len(), 1);
        assert!(shown(&"{a,b}".repeat(20)).len() <= MAX_WORDS);
    }
}
