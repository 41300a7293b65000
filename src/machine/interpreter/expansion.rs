//! Filling in words: variables, substitutions and sums of the shell, and the kubelet's own `$(NAME)`.

use super::player::{Flow, Player};
use crate::bounds::MAX_WORD_BYTES;
use crate::shell::{Part, Word};

/// What a part of a word, or a field, is counted as beside its text.
const BYTES_OF_PART: usize = 32;

/// The kubelet's expansion of `$(NAME)` (`third_party/forked/golang/expansion`): `$$` is a dollar sign,
/// and what `lookup` does not know stays as it is. What becomes longer than [`MAX_WORD_BYTES`] is cut off
/// somewhere behind that: no process could be started with it.
pub fn expand(text: &str, mut lookup: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut may_close = true;
    while let Some(at) = rest.find('$').filter(|_| out.len() <= MAX_WORD_BYTES) {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) =
            rest.strip_prefix('(').filter(|_| may_close).and_then(|inner| inner.split_once(')'))
        {
            out.push_str(&lookup(name).unwrap_or_else(|| format!("$({name})")));
            rest = after;
        } else {
            // What nothing closes here nothing closes further on, and need not be looked for again.
            may_close &= !rest.starts_with('(');
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

impl Player<'_> {
    /// A word as one text.
    pub(crate) fn text(&mut self, word: &Word) -> String {
        let mut text = String::new();
        for part in word {
            text.push_str(&self.part(part));
        }
        text
    }

    /// A word as the words that it becomes: what is filled in without quotes is split.
    pub(crate) fn fields(&mut self, word: &Word) -> Vec<String> {
        let (mut fields, mut is_open) = (Vec::<String>::new(), false);
        if let [Part::Variable(name, None, true)] = word.as_slice()
            && name == "@"
        {
            self.handle(self.arguments.iter().map(|argument| argument.len() + BYTES_OF_PART).sum());
            return self.arguments.clone();
        }
        for part in word {
            let is_quoted = match part {
                Part::Text(_, _) => true,
                Part::Variable(_, _, quoted) | Part::Output(_, quoted) => *quoted,
                Part::Sum(_) => true,
            };
            let text = self.part(part);
            if is_quoted {
                if !is_open {
                    fields.push(String::new());
                }
                fields.last_mut().into_iter().for_each(|field| field.push_str(&text));
                is_open = true;
                continue;
            }
            for (at, piece) in text.split_whitespace().enumerate() {
                if !self.handle(BYTES_OF_PART) {
                    break;
                }
                let joins = at == 0 && is_open && !text.starts_with(char::is_whitespace);
                match fields.last_mut() {
                    Some(field) if joins => field.push_str(piece),
                    _ => fields.push(piece.to_owned()),
                }
                is_open = true;
            }
            is_open &= !text.ends_with(char::is_whitespace);
        }
        fields
    }

    /// Nothing when there are no steps left to make it.
    fn part(&mut self, part: &Part) -> String {
        let text = match part {
            Part::Text(text, _) => text.clone(),
            Part::Sum(text) => {
                self.handle(2 * text.len());
                self.sum(text).to_string()
            }
            Part::Output(script, _) => {
                let variables = self.variables.clone();
                let (said, flow) = self.gather(|player| player.list(&script.list));
                self.variables = variables;
                if let Flow::Exit(code) = flow {
                    self.status = code;
                }
                said.trim_end_matches('\n').to_owned()
            }
            Part::Variable(name, operator, _) => {
                let value = self.variable(name);
                self.handle(value.len());
                match operator {
                    Some((operator, word)) if operator == "-" && value.is_empty() => self.text(word),
                    Some((operator, word)) if operator == "+" && !value.is_empty() => self.text(word),
                    Some((operator, _)) if operator == "+" => String::new(),
                    _ => value,
                }
            }
        };
        if self.handle(text.len() + BYTES_OF_PART) { text } else { String::new() }
    }

    pub(crate) fn variable(&self, name: &str) -> String {
        match name {
            "?" => self.status.to_string(),
            "$" => "1".into(),
            "#" => self.arguments.len().to_string(),
            "@" | "*" => self.arguments.join(" "),
            "0" => "sh".into(),
            "!" => "2".into(),
            digit if digit.len() == 1 && digit.chars().all(|c| c.is_ascii_digit()) => {
                let at: usize = digit.parse().unwrap_or_default();
                self.arguments.get(at.saturating_sub(1)).cloned().unwrap_or_default()
            }
            "PWD" => self.folder.clone(),
            name => self.variables.get(name).cloned().unwrap_or_default(),
        }
    }

    fn number(&self, name: &str) -> i64 {
        match name {
            "?" => self.status.into(),
            "#" => i64::try_from(self.arguments.len()).unwrap_or_default(),
            name => self.variables.get(name).and_then(|value| value.parse().ok()).unwrap_or(0),
        }
    }

    /// Of numbers and variables, with `+ - * / %`.
    pub(crate) fn sum(&self, text: &str) -> i64 {
        let mut spaced = text.replace(['$', '{', '}'], "");
        for operator in ["+", "-", "*", "/", "%"] {
            spaced = spaced.replace(operator, &format!(" {operator} "));
        }
        let value = |term: &str| -> i64 { term.parse().unwrap_or_else(|_| self.number(term)) };
        let mut total = 0i64;
        let mut product = 0i64;
        let mut sign = 1i64;
        let mut operator = "+";
        for part in spaced.split_whitespace() {
            if matches!(part, "+" | "-" | "*" | "/" | "%") {
                operator = part;
                continue;
            }
            match operator {
                "*" => product = product.saturating_mul(value(part)),
                "/" => product = product.checked_div(value(part)).unwrap_or(0),
                "%" => product = product.checked_rem(value(part)).unwrap_or(0),
                _ => {
                    total = total.saturating_add(product.saturating_mul(sign));
                    (product, sign) = (value(part), if operator == "-" { -1 } else { 1 });
                }
            }
        }
        total.saturating_add(product.saturating_mul(sign))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_parentheses_are_filled_in() {
        let lookup = |name: &str| (name == "A").then(|| "a".to_owned());
        for (text, wanted) in [
            ("$(A)-$(B)", "a-$(B)"),
            ("$$(A)$", "$(A)$"),
            ("$A $(A", "$A $(A"),
            ("$$$(A)", "$a"),
            ("plain", "plain"),
        ] {
            assert_eq!(expand(text, lookup), wanted);
        }
    }
}
