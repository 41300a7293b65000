//! The order of keys (`sorter.go`): letters behind all else, and numbers within keys by their value.

use std::cmp::Ordering;

/// The keys in their order. It is none that every three keys agree on (`102a`, `10b`, `12`), which the
/// library's sorting would not stand.
pub(super) fn sorted<'k>(keys: impl Iterator<Item = &'k String>) -> Vec<&'k String> {
    let mut sorted: Vec<&String> = Vec::new();
    for key in keys {
        let at = sorted.partition_point(|other| compare(other, key) == Ordering::Less);
        sorted.insert(at, key);
    }
    sorted
}

/// Which key comes first.
fn compare(one: &str, other: &str) -> Ordering {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let Some(at) = one.iter().zip(&other).position(|(a, b)| a != b) else {
        return one.len().cmp(&other.len());
    };
    let (a, b) = (one[at], other[at]);
    match (a.is_alphabetic(), b.is_alphabetic()) {
        (true, true) => return a.cmp(&b),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero within a number counts, one before it does not.
    let is_within = (a == '0' || b == '0') && has_figure_before(&one[..at]);
    let (a_value, a_length) = number(&one[at..], is_within);
    let (b_value, b_length) = number(&other[at..], is_within);
    a_value.cmp(&b_value).then(a_length.cmp(&b_length)).then(a.cmp(&b))
}

fn has_figure_before(before: &[char]) -> bool {
    before.iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0')
}

/// The number that begins here, behind a one where that stands before it; and how long it is.
fn number(rest: &[char], is_within: bool) -> (i64, usize) {
    let figures = rest.iter().take_while(|c| c.is_ascii_digit());
    figures.fold((i64::from(is_within), 0), |(value, length), c| {
        let figure = i64::from(*c as u32) - i64::from(b'0');
        (value.wrapping_mul(10).wrapping_add(figure), length + 1)
    })
}
