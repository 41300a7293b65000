//! What the rewrite module does with a request.

use super::exchange::NginxExchange;
use super::patterns::ConfPattern;
use super::rewrite::{RewriteCondition, RewriteStep, ThingOfPath};

/// What comes of actions.
pub(super) enum RewriteEnd {
    /// Nothing that ends it.
    Goes,
    /// A location is looked for again.
    Again,
    /// This is answered: a code, and a text or a place.
    Returns(u16, Option<String>),
}

impl NginxExchange<'_> {
    /// What the rewrite module does.
    pub(super) fn act(&mut self, actions: &[RewriteStep]) -> RewriteEnd {
        for action in actions {
            let acted = match action {
                RewriteStep::Set(name, value) => {
                    let value = self.filled(value);
                    self.set.insert(name.clone(), value);
                    RewriteEnd::Goes
                }
                RewriteStep::Return(words) => self.returned(words),
                RewriteStep::Rewrite(pattern, to, flag) => match self.rewritten(pattern, to, flag) {
                    Some(acted) => acted,
                    // `break`
                    None => return RewriteEnd::Goes,
                },
                RewriteStep::If(condition, inner) if self.holds(condition) => {
                    if inner.contains(&RewriteStep::Break) {
                        self.act(inner);
                        return RewriteEnd::Goes;
                    }
                    self.act(inner)
                }
                RewriteStep::If(..) => RewriteEnd::Goes,
                RewriteStep::Break => return RewriteEnd::Goes,
            };
            if !matches!(acted, RewriteEnd::Goes) {
                return acted;
            }
        }
        RewriteEnd::Goes
    }

    fn returned(&self, words: &[String]) -> RewriteEnd {
        match words {
            [one] => match one.parse() {
                Ok(code) => RewriteEnd::Returns(code, None),
                Err(_) => RewriteEnd::Returns(302, Some(self.filled(one))),
            },
            [code, text, ..] => RewriteEnd::Returns(code.parse().unwrap_or(500), Some(self.filled(text))),
            [] => RewriteEnd::Goes,
        }
    }

    /// Nothing where the others are not looked at.
    fn rewritten(&mut self, pattern: &ConfPattern, to: &str, flag: &str) -> Option<RewriteEnd> {
        let path = self.path.clone();
        if !self.capture(pattern, &path) {
            return Some(RewriteEnd::Goes);
        }
        let code = match flag {
            "permanent" => Some(301),
            "redirect" => Some(302),
            _ if ["http://", "https://", "$scheme"].iter().any(|start| to.starts_with(start)) => Some(302),
            _ => None,
        };
        let mut target = self.filled(to);
        // The query stays, unless the text ends with a question mark.
        if let Some(whole) = target.strip_suffix('?') {
            target = whole.to_owned();
            self.args.clear();
        } else if !self.args.is_empty() && code.is_some() {
            let sign = if target.contains('?') { '&' } else { '?' };
            target = format!("{target}{sign}{}", self.args);
        }
        if let Some(code) = code {
            return Some(RewriteEnd::Returns(code, Some(target)));
        }
        self.go_to(&target);
        match flag {
            "last" => Some(RewriteEnd::Again),
            "break" => None,
            _ => Some(RewriteEnd::Goes),
        }
    }

    fn holds(&mut self, condition: &RewriteCondition) -> bool {
        match condition {
            RewriteCondition::IsSet(text) => !matches!(self.filled(text).as_str(), "" | "0"),
            RewriteCondition::Equals(left, right, is_wanted) => {
                (self.filled(left) == self.filled(right)) == *is_wanted
            }
            RewriteCondition::Fits(left, pattern, is_wanted) => {
                let left = self.filled(left);
                self.capture(pattern, &left) == *is_wanted
            }
            RewriteCondition::Exists(thing, path, is_wanted) => {
                let path = self.filled(path);
                self.is_there(*thing, &path) == *is_wanted
            }
        }
    }

    fn is_there(&self, thing: ThingOfPath, path: &str) -> bool {
        match thing {
            ThingOfPath::File => self.file(path).is_some(),
            ThingOfPath::Folder => self.is_folder(path),
            ThingOfPath::Any => self.file(path).is_some() || self.is_folder(path),
            ThingOfPath::Program => self.file(path).is_some_and(|file| file.may_run) || self.is_folder(path),
        }
    }
}
