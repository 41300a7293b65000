//! What the configuration says of the rewrite module: `set`, `return`, `rewrite`, `if` and `break`.

use super::patterns::{ConfPattern, PatternBook};
use super::syntax::Directive;

/// Of the rewrite module, in their order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RewriteStep {
    Set(String, String),
    Return(Vec<String>),
    /// The pattern, what the path becomes, and the flag.
    Rewrite(ConfPattern, String, String),
    If(RewriteCondition, Vec<RewriteStep>),
    Break,
}

/// What an `if` asks.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RewriteCondition {
    /// Neither empty nor 0.
    IsSet(String),
    /// Whether they are alike, or are to be unlike.
    Equals(String, String, bool),
    /// Whether it fits, or is not to.
    Fits(String, ConfPattern, bool),
    /// Whether such a thing is there, or is not to be.
    Exists(ThingOfPath, String, bool),
}

/// What may be at a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ThingOfPath {
    File,
    Folder,
    Any,
    Program,
}

impl RewriteStep {
    /// What a directive says; nothing where it is not known what it means.
    pub(super) fn of(own: &Directive, book: &mut PatternBook) -> Option<RewriteStep> {
        let words = own.words.as_slice();
        Some(match (own.name.as_str(), words) {
            ("set", [name, value]) => {
                RewriteStep::Set(name.trim_start_matches('$').to_owned(), value.clone())
            }
            ("return", _) => RewriteStep::Return(words.to_vec()),
            ("rewrite", [pattern, to, flags @ ..]) => {
                let pattern = book.read(pattern, false, &own.place());
                RewriteStep::Rewrite(pattern, to.clone(), flags.first().cloned().unwrap_or_default())
            }
            ("break", _) => RewriteStep::Break,
            ("if", _) => {
                let condition = RewriteCondition::of(&words.join(" "), book, &own.place())?;
                let mut steps = Vec::new();
                for inner in own.block.iter().flatten() {
                    steps.push(RewriteStep::of(inner, book)?);
                }
                RewriteStep::If(condition, steps)
            }
            _ => return None,
        })
    }
}

impl RewriteCondition {
    fn of(text: &str, book: &mut PatternBook, place: &str) -> Option<RewriteCondition> {
        let unquoted = |word: &str| word.trim_matches(['"', '\'']).to_owned();
        let inner = text.strip_prefix('(')?.strip_suffix(')')?;
        let words: Vec<&str> = inner.split_whitespace().collect();
        Some(match words.as_slice() {
            [one] => RewriteCondition::IsSet((*one).to_owned()),
            [sign, path] if sign.trim_start_matches('!').starts_with('-') => {
                let thing = match sign.trim_start_matches('!') {
                    "-f" => ThingOfPath::File,
                    "-d" => ThingOfPath::Folder,
                    "-e" => ThingOfPath::Any,
                    "-x" => ThingOfPath::Program,
                    _ => return None,
                };
                RewriteCondition::Exists(thing, unquoted(path), !sign.starts_with('!'))
            }
            [left, sign, rest @ ..] => {
                let left = (*left).to_owned();
                let right = unquoted(&rest.join(" "));
                let is_wanted = !sign.starts_with('!');
                match *sign {
                    "=" | "!=" => RewriteCondition::Equals(left, right, is_wanted),
                    "~" | "!~" => RewriteCondition::Fits(left, book.read(&right, false, place), is_wanted),
                    "~*" | "!~*" => RewriteCondition::Fits(left, book.read(&right, true, place), is_wanted),
                    _ => return None,
                }
            }
            [] => return None,
        })
    }
}
