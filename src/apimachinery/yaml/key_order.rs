//! The order of keys (`sorter.go`): letters behind all else, and numbers within keys by their value.

use std::cmp::Ordering;

/// The keys in their order. It is none that every three keys agree on (`102a`, `10b`, `12`), which the
/// library's sorting would not stand: it may panic.
pub(super) fn sorted<'k>(keys: impl Iterator<Item = &'k String>) -> Vec<&'k String> {
    merge_sorted(keys.collect())
}

/// Sorts by merging: it ends with every key in its place, or in some place, whatever the comparison says, and
/// compares a key as often as the halves can be halved.
fn merge_sorted(mut keys: Vec<&String>) -> Vec<&String> {
    if keys.len() < 2 {
        return keys;
    }
    let behind = keys.split_off(keys.len() / 2);
    merged(merge_sorted(keys), merge_sorted(behind))
}

/// Two sorted lists as one; of equal keys that of the first comes first.
fn merged<'k>(before: Vec<&'k String>, behind: Vec<&'k String>) -> Vec<&'k String> {
    let mut all = Vec::with_capacity(before.len() + behind.len());
    let mut behind = behind.into_iter().peekable();
    for key in before {
        while let Some(earlier) = behind.next_if(|other| compare(other, key) == Ordering::Less) {
            all.push(earlier);
        }
        all.push(key);
    }
    all.extend(behind);
    all
}

/// Which key comes first.
fn compare(one: &str, other: &str) -> Ordering {
    let mut pairs = one.char_indices().zip(other.chars());
    let Some(((at, a), b)) = pairs.find(|((_, a), b)| a != b) else {
        return one.len().cmp(&other.len());
    };
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

fn has_figure_before(before: &str) -> bool {
    before.bytes().rev().take_while(u8::is_ascii_digit).any(|byte| byte != b'0')
}

/// The number that begins here, behind a one where that stands before it; and how long it is.
fn number(rest: &str, is_within: bool) -> (i64, usize) {
    let figures = rest.bytes().take_while(u8::is_ascii_digit);
    figures.fold((i64::from(is_within), 0), |(value, length), byte| {
        let figure = i64::from(byte - b'0');
        (value.wrapping_mul(10).wrapping_add(figure), length + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_in_the_order_of_go() {
        for wanted in
            ["_ 1 a a2 a10 ab b", "a20 a100 a1000 é9 é10", "0 1 01 2 10 a-b a.b ab", "a100 a101 a110 b"]
        {
            let mut keys: Vec<String> = wanted.split(' ').map(str::to_owned).collect();
            for _ in 0..keys.len() {
                keys.rotate_left(1);
                let order: Vec<&str> = sorted(keys.iter()).into_iter().map(String::as_str).collect();
                assert_eq!(order.join(" "), wanted);
            }
        }
    }

    /// Of three keys each comes before the next one, and the last before the first.
    #[test]
    fn an_order_that_contradicts_itself_loses_no_key() {
        let circle = ["102a", "10b", "12"];
        let keys: Vec<String> = (0..300_000).map(|at| format!("{}{at}", circle[at % 3])).collect();
        let mut order = sorted(keys.iter());
        order.sort_unstable();
        let mut all: Vec<&String> = keys.iter().collect();
        all.sort_unstable();
        assert_eq!(order, all);
    }
}
