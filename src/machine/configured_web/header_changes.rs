//! What commands do to the headers of an answer: Caddy's `header`, and Apache's `Header` (`mod_headers`),
//! which knows two tables of them.

use crate::requests::WebAnswer;

/// Which headers are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderTable {
    /// All of any answer.
    All,
    /// Apache's `onsuccess`: those of the answer itself. One that Apache makes of its own accord and that is
    /// no success, as where it redirects, has none of them; whatever somebody behind it answers has.
    Success,
    /// Apache's `always`: a table of its own, which stands in every answer, beside the other.
    Always,
}

/// A header that is set (`=`), added (`+`), taken away (`-`), lengthened by a value (`a`), or set where there
/// is none (`?`).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HeaderChange {
    pub(super) table: HeaderTable,
    pub(super) how: char,
    pub(super) name: String,
    pub(super) value: String,
}

impl HeaderChange {
    /// Of Apache's command, without its name; nothing where it is none that is known.
    pub(super) fn of_apache(words: &[&str]) -> Option<HeaderChange> {
        let (table, words) = match words {
            ["always", words @ ..] => (HeaderTable::Always, words),
            ["onsuccess", words @ ..] => (HeaderTable::Success, words),
            words => (HeaderTable::Success, words),
        };
        let (how, name, value) = match words {
            ["set", name, value, ..] => ('=', name, *value),
            ["add", name, value, ..] => ('+', name, *value),
            ["append" | "merge", name, value, ..] => ('a', name, *value),
            ["setifempty", name, value, ..] => ('?', name, *value),
            ["unset", name, ..] => ('-', name, ""),
            _ => return None,
        };
        Some(HeaderChange { table, how, name: (*name).to_owned(), value: value.to_owned() })
    }

    /// In one table.
    fn change(&self, headers: &mut Vec<(String, String)>) {
        let is_it = |own: &(String, String)| own.0.eq_ignore_ascii_case(&self.name);
        let there = headers.iter().rposition(is_it);
        match (self.how, there) {
            ('a', Some(at)) => {
                headers[at].1.push_str(", ");
                headers[at].1.push_str(&self.value);
                return;
            }
            ('?', Some(_)) => return,
            ('=' | '-', _) => headers.retain(|own| !is_it(own)),
            _ => {}
        }
        if self.how != '-' {
            headers.push((self.name.clone(), self.value.clone()));
        }
    }
}

/// Does all of that to an answer, which is the server's own or that of somebody behind it.
pub(super) fn apply(changes: &[HeaderChange], answered: &mut WebAnswer, is_passed_on: bool) {
    let is_success = is_passed_on || answered.code < 300 || answered.code == 304;
    let mut always = vec![];
    for change in changes {
        match change.table {
            HeaderTable::Always => change.change(&mut always),
            HeaderTable::Success if !is_success => {}
            HeaderTable::All | HeaderTable::Success => {
                if change.how != '+' {
                    move_own(&change.name, answered);
                }
                change.change(&mut answered.own_headers);
            }
        }
    }
    answered.own_headers.extend(always);
}

/// What the server says of itself is among those that may be changed.
fn move_own(name: &str, answered: &mut WebAnswer) {
    let (meant, others) = std::mem::take(&mut answered.headers)
        .into_iter()
        .partition(|(own, _): &(&str, String)| own.eq_ignore_ascii_case(name));
    answered.headers = others;
    let meant: Vec<(&str, String)> = meant;
    answered.own_headers.extend(meant.into_iter().map(|(name, value)| (name.to_owned(), value)));
}
