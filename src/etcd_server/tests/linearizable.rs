//! Whether there is an order in which each answer is right: linearizability, found as Wing and Gong do, with
//! what was seen already remembered (Lowe), each key by itself.

use std::collections::HashSet;

/// What a client asks of one key, and what it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Told the value; empty: there is none.
    Read(String),
    Write(String),
    /// Writes the second if the first is there; told whether.
    Swap(String, String, bool),
    Delete(bool),
    /// What nobody was told the outcome of: done, or not, at any time after it began.
    MaybeWrite(String),
    MaybeSwap(String, String),
    MaybeDelete,
}

#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) operation: Operation,
    pub(crate) began: u64,
    /// None: never.
    pub(crate) ended: Option<u64>,
}

/// What the key holds afterwards; None if the answer cannot be.
fn step(operation: &Operation, state: &str) -> Option<String> {
    match operation {
        Operation::Read(seen) => (seen == state).then(|| state.to_owned()),
        Operation::Write(value) | Operation::MaybeWrite(value) => Some(value.clone()),
        Operation::Swap(expected, value, true) => (expected == state).then(|| value.clone()),
        Operation::Swap(expected, _, false) => (expected != state).then(|| state.to_owned()),
        Operation::MaybeSwap(expected, value) => {
            Some(if expected == state { value } else { state }.to_owned())
        }
        Operation::MaybeDelete => Some(String::new()),
        Operation::Delete(found) => (*found != state.is_empty()).then(String::new),
    }
}

/// Whether there is an order of all that fits to what was told and to what was before what.
pub(crate) fn is_linearizable(history: &[Done]) -> bool {
    assert!(history.len() <= 64, "as many as a set of bits has");
    let mut seen = HashSet::new();
    let mut open = vec![(0_u64, String::new())];
    let told = history.iter().enumerate().filter(|(_, done)| done.ended.is_some());
    let wanted = told.fold(0, |bits, (at, _)| bits | 1 << at);
    while let Some((placed, state)) = open.pop() {
        if placed & wanted == wanted {
            return true;
        }
        let waiting = || history.iter().enumerate().filter(|(at, _)| placed & 1 << at == 0);
        // Nothing comes before what had ended when it began.
        let first_end = waiting().filter_map(|(_, done)| done.ended).min().unwrap_or(u64::MAX);
        for (at, done) in waiting().filter(|(_, done)| done.began < first_end) {
            if let Some(next) = step(&done.operation, &state) {
                let found = (placed | 1 << at, next);
                if seen.insert(found.clone()) {
                    open.push(found);
                }
            }
        }
    }
    false
}

/// Each of these would pass if the search were too generous, or fail if it were too strict.
#[test]
fn the_search_finds_an_order_where_there_is_one_and_none_where_there_is_none() {
    let done = |operation, began, ended| Done { operation, began, ended: Some(ended) };
    let write = |value: &str| Operation::Write(value.to_owned());
    let read = |value: &str| Operation::Read(value.to_owned());
    let overlapping = [done(write("1"), 1, 10), done(read("1"), 2, 3), done(read("1"), 4, 5)];
    assert!(is_linearizable(&overlapping));
    let back_and_forth = [done(write("1"), 1, 10), done(read("1"), 2, 3), done(read(""), 4, 5)];
    assert!(!is_linearizable(&back_and_forth));
    let lost = [done(write("1"), 1, 2), done(read(""), 3, 4)];
    assert!(!is_linearizable(&lost));
    let swap = |told| Operation::Swap(String::new(), "2".to_owned(), told);
    assert!(!is_linearizable(&[done(swap(true), 1, 4), done(swap(true), 2, 3)]));
    assert!(is_linearizable(&[done(swap(true), 1, 4), done(swap(false), 2, 3)]));
    let unknown = Done { operation: Operation::MaybeWrite("9".to_owned()), began: 1, ended: None };
    assert!(is_linearizable(&[unknown.clone(), done(read("9"), 5, 6)]));
    assert!(is_linearizable(&[unknown.clone(), done(read(""), 5, 6)]));
    let maybe = |operation| Done { operation, began: 3, ended: None };
    let swapped = maybe(Operation::MaybeSwap("1".to_owned(), "2".to_owned()));
    for (seen, maybe, expected) in [
        ("2", &swapped, true),
        ("1", &swapped, true),
        ("", &swapped, false),
        ("", &maybe(Operation::MaybeDelete), true),
    ] {
        let history = [done(write("1"), 1, 2), maybe.clone(), done(read(seen), 5, 6)];
        assert_eq!(is_linearizable(&history), expected, "{history:?}");
    }
    assert!(!is_linearizable(&[Done { began: 7, ..unknown }, done(read("9"), 5, 6)]));
}
