//! Variables that Apache's configuration gives a request: `SetEnv`, `SetEnvIf` and their kin.

use std::collections::BTreeMap;

use super::apache_expression_reader;
use super::apache_expressions::{ApacheCondition, RequestFacts};
use super::apache_patterns::{ApacheMisreading, ApachePattern, PatternCount};

/// Commands with a condition.
const IF_COMMANDS: &[&str] =
    &["SetEnvIf", "SetEnvIfNoCase", "BrowserMatch", "BrowserMatchNoCase", "SetEnvIfExpr"];

/// What a command does to the variables.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EnvironmentChange {
    Set(String, String),
    Unset(Vec<String>),
    /// Where this of the request fits.
    Fits(String, ApachePattern, Vec<Assignment>),
    Holds(ApacheCondition, Vec<Assignment>),
}

/// A variable, and its value; without one it is taken away.
type Assignment = (String, Option<String>);

impl EnvironmentChange {
    /// Of a command of this name; nothing where it is none of these. `own` are the variables of the server
    /// itself.
    pub(super) fn read(
        name: &str,
        words: &[&str],
        own: &BTreeMap<String, String>,
        patterns: &mut PatternCount,
    ) -> Result<Option<EnvironmentChange>, ApacheMisreading> {
        let refused = |why: &str| Err(ApacheMisreading::Refused(why.to_owned()));
        let mut fits = |attribute: &str, pattern: &str, ignores_case: bool, rest: &[&str]| {
            let pattern = patterns.compiled(pattern, ignores_case)?;
            Ok(Some(EnvironmentChange::Fits(attribute.to_owned(), pattern, assignments(rest))))
        };
        match (name, words) {
            ("setenv", [name]) => Ok(Some(EnvironmentChange::Set((*name).to_owned(), String::new()))),
            ("setenv", [name, value]) => {
                Ok(Some(EnvironmentChange::Set((*name).to_owned(), (*value).to_owned())))
            }
            ("setenv", _) => refused(
                "SetEnv takes one or two arguments, an environment variable name and optional value to pass to CGI.",
            ),
            ("unsetenv", names) => {
                Ok(Some(EnvironmentChange::Unset(names.iter().map(ToString::to_string).collect())))
            }
            // One that the server has not is told in its log, and not set.
            ("passenv", [name]) => {
                Ok(own.get(*name).map(|value| EnvironmentChange::Set((*name).to_owned(), value.clone())))
            }
            ("setenvif", [attribute, pattern, rest @ ..]) if !rest.is_empty() => {
                fits(attribute, pattern, false, rest)
            }
            ("setenvifnocase", [attribute, pattern, rest @ ..]) if !rest.is_empty() => {
                fits(attribute, pattern, true, rest)
            }
            ("browsermatch", [pattern, rest @ ..]) if !rest.is_empty() => {
                fits("User-Agent", pattern, false, rest)
            }
            ("browsermatchnocase", [pattern, rest @ ..]) if !rest.is_empty() => {
                fits("User-Agent", pattern, true, rest)
            }
            ("setenvifexpr", [expression, rest @ ..]) if !rest.is_empty() => {
                let read = apache_expression_reader::read(expression, patterns);
                Ok(Some(EnvironmentChange::Holds(read?, assignments(rest))))
            }
            (name, words) => match IF_COMMANDS.iter().find(|own| own.eq_ignore_ascii_case(name)) {
                Some(own) => refused(&format!("Missing {} for {own}", missing(own, words.len()))),
                None => Ok(None),
            },
        }
    }

    /// Whether it is done before all others, wherever it stands: those of a request come before fixed ones.
    pub(super) fn is_early(&self) -> bool {
        matches!(self, EnvironmentChange::Fits(..) | EnvironmentChange::Holds(..))
    }

    /// The variables after it.
    pub(super) fn change(&self, facts: &RequestFacts<'_>) -> BTreeMap<String, String> {
        let mut environment = facts.environment.clone();
        match self {
            EnvironmentChange::Set(name, value) => drop(environment.insert(name.clone(), value.clone())),
            EnvironmentChange::Unset(names) => names.iter().for_each(|name| drop(environment.remove(name))),
            EnvironmentChange::Fits(attribute, pattern, all) => {
                let text = attribute_of(attribute, facts);
                for (name, value) in all.iter().filter(|_| pattern.is_match(&text)) {
                    let value = value.as_ref().and_then(|value| pattern.filled(&text, value));
                    assign(&mut environment, name, value);
                }
            }
            EnvironmentChange::Holds(expression, all) => {
                for (name, value) in all.iter().filter(|_| expression.holds(facts)) {
                    assign(&mut environment, name, value.clone());
                }
            }
        }
        environment
    }
}

/// What one of [`IF_COMMANDS`] lacks that has so many words.
fn missing(command: &str, words: usize) -> &'static str {
    match (command, words) {
        ("SetEnvIf" | "SetEnvIfNoCase", 0) => "header-field name",
        ("SetEnvIf" | "SetEnvIfNoCase", 1) | ("BrowserMatch" | "BrowserMatchNoCase", 0) => {
            "regular expression"
        }
        _ => "envariable expression",
    }
}

fn assign(environment: &mut BTreeMap<String, String>, name: &str, value: Option<String>) {
    match value {
        Some(value) => environment.insert(name.to_owned(), value),
        None => environment.remove(name),
    };
}

/// `[!]NAME[=VALUE]`: 1 where none is said.
fn assignments(words: &[&str]) -> Vec<Assignment> {
    let assignment = |word: &&str| match (word.strip_prefix('!'), word.split_once('=')) {
        (Some(name), _) => (name.to_owned(), None),
        (None, Some((name, value))) => (name.to_owned(), Some(value.to_owned())),
        (None, None) => ((*word).to_owned(), Some("1".to_owned())),
    };
    words.iter().map(assignment).collect()
}

/// What `SetEnvIf` looks at: a part of the request, a header of it, or else a variable that is set already.
fn attribute_of(attribute: &str, facts: &RequestFacts<'_>) -> String {
    match attribute.to_ascii_lowercase().as_str() {
        "remote_host" | "remote_addr" => facts.variable("REMOTE_ADDR"),
        "request_method" => facts.variable("REQUEST_METHOD"),
        "request_protocol" => facts.variable("SERVER_PROTOCOL"),
        "request_uri" => facts.variable("REQUEST_URI"),
        header => match facts.asked.header(header) {
            Some(value) => value.to_owned(),
            None => facts.environment.get(attribute).cloned().unwrap_or_default(),
        },
    }
}
