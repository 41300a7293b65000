//! What commands do to the headers of an answer: Caddy's `header`, and Apache's `Header` (`mod_headers`),
//! which knows two tables of them.

use std::sync::Arc;

use super::apache_expression_reader;
use super::apache_expressions::{ApacheCondition, RequestFacts};
use super::apache_patterns::{ApacheMisreading, PatternCount};
use crate::requests::WebAnswer;

/// What Apache says where `env=` names nothing.
const NO_NAME: &str = "error: missing environment variable name. envclause should be in the form env=envar ";
/// What Apache says of an action that it does not know.
const ACTIONS: &str = "first argument must be 'add', 'set', 'setifempty', 'append', 'merge', 'unset', 'echo', 'note', 'edit', or 'edit*'.";

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
    /// All of it has to hold.
    pub(super) when: Vec<HeaderWhen>,
}

/// When a header is changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HeaderWhen {
    /// A variable of the request is set, or is not.
    Set(String, bool),
    Holds(Arc<ApacheCondition>),
}

impl HeaderWhen {
    /// `env=[!]NAME` or `expr=...`
    fn read(clause: &str, patterns: &mut PatternCount) -> Result<HeaderWhen, ApacheMisreading> {
        let lower = clause.to_ascii_lowercase();
        if lower == "early" {
            return Err(ApacheMisreading::Unknown("Header ... early".to_owned()));
        }
        if lower.starts_with("env=") {
            let (name, is_set) = match clause[4..].strip_prefix('!') {
                Some(name) => (name, false),
                None => (&clause[4..], true),
            };
            return if name.is_empty() {
                Err(ApacheMisreading::Refused(NO_NAME.to_owned()))
            } else {
                Ok(HeaderWhen::Set(name.to_owned(), is_set))
            };
        }
        if lower.starts_with("expr=") {
            let told = |why| match why {
                ApacheMisreading::Refused(why) => {
                    ApacheMisreading::Refused(format!("Can't parse envclause/expression: {why}"))
                }
                unknown => unknown,
            };
            let read = apache_expression_reader::read(&clause[5..], patterns).map_err(told)?;
            return Ok(HeaderWhen::Holds(Arc::new(read)));
        }
        Err(ApacheMisreading::Refused(format!("Unknown parameter: {clause}")))
    }
}

impl HeaderChange {
    /// Of Apache's command, without its name.
    ///
    /// # Errors
    /// What Apache says of it, or what of it is not followed.
    pub(super) fn of_apache(
        words: &[&str],
        patterns: &mut PatternCount,
    ) -> Result<HeaderChange, ApacheMisreading> {
        let refused = |why: &str| Err(ApacheMisreading::Refused(why.to_owned()));
        let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let (table, words) = match lower.first().map(String::as_str) {
            Some("always") => (HeaderTable::Always, &words[1..]),
            Some("onsuccess") => (HeaderTable::Success, &words[1..]),
            _ => (HeaderTable::Success, words),
        };
        let [action, name, values @ ..] = words else { return refused("Header requires three arguments") };
        let how = match action.to_ascii_lowercase().as_str() {
            "set" => '=',
            "add" => '+',
            "append" | "merge" => 'a',
            "setifempty" => '?',
            "unset" => '-',
            other @ ("echo" | "note" | "edit" | "edit*") => {
                return Err(ApacheMisreading::Unknown(format!("Header {other}")));
            }
            _ => return refused(ACTIONS),
        };
        let (value, clauses) = match values {
            values if how == '-' => ("", values),
            [value, clauses @ ..] => (*value, clauses),
            [] => return refused("Header requires three arguments"),
        };
        let when = match clauses {
            [] => vec![],
            [clause] => vec![HeaderWhen::read(clause, patterns)?],
            _ if how == '-' => return refused("header unset takes two arguments"),
            [_, _] => return refused("Too many arguments to directive"),
            _ => return refused("Header has too many arguments"),
        };
        let name = name.split(':').next().unwrap_or(name).to_owned();
        Ok(HeaderChange { table, how, name, value: value.to_owned(), when })
    }

    /// Whether it is made to the answer of such a request.
    pub(super) fn holds(&self, facts: &RequestFacts<'_>) -> bool {
        self.when.iter().all(|when| match when {
            HeaderWhen::Set(name, is_set) => facts.environment.contains_key(name) == *is_set,
            HeaderWhen::Holds(expression) => expression.holds(facts),
        })
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
