//! Filling in words: variables, substitutions and sums of the shell, and the kubelet's own `$(NAME)`.

use super::dialect::Dialect;
use super::player::{AfterCommand, Player};
use super::{globs, pattern};
use crate::bounds::{MAX_WORD_BYTES, ScriptFault};
use crate::shell::{ShellWordPart, ValueOperation, Word, assignment, plain};

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

/// Programs of the shell whose operands are read as assignments.
fn is_declaration(program: &str) -> bool {
    matches!(program, "export" | "readonly" | "local" | "declare" | "typeset")
}

impl Player<'_> {
    /// A word as one text.
    pub(crate) fn text(&mut self, word: &Word) -> String {
        let mut text = String::new();
        for (at, part) in word.iter().enumerate() {
            let piece = self.part(part);
            match part {
                ShellWordPart::Text(_, false) if at == 0 => text.push_str(&self.at_home(&piece)),
                _ => text.push_str(&piece),
            }
        }
        text
    }

    /// A word as a pattern: what is quoted in it stands for itself.
    pub(crate) fn pattern(&mut self, word: &Word) -> String {
        let mut all = String::new();
        for part in word {
            let piece = self.part(part);
            let is_quoted = is_quoted(part);
            all.push_str(&if is_quoted { pattern::escaped(&piece) } else { piece });
        }
        all
    }

    /// `~/x`
    fn at_home(&self, text: &str) -> String {
        match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => self.home() + rest,
            _ => text.to_owned(),
        }
    }

    /// The words of a command. What a declaration assigns (`local name=$1`) is one word, as in an assignment
    /// without one: POSIX's declaration utilities.
    pub(crate) fn command_words(&mut self, words: &[Word]) -> Vec<String> {
        let declares = words.first().and_then(|word| plain(word)).is_some_and(is_declaration);
        let mut all = Vec::new();
        for word in words {
            if declares && assignment(word).is_some() {
                all.push(self.text(word));
            } else {
                all.extend(self.fields(word));
            }
        }
        all
    }

    /// A word as the words that it becomes: what is filled in without quotes is split, and patterns become
    /// names of files.
    pub(crate) fn fields(&mut self, word: &Word) -> Vec<String> {
        let mut fields = WordFields::default();
        for (at, part) in word.iter().enumerate() {
            match part {
                ShellWordPart::Variable(name, None, is_quoted) if matches!(name.as_str(), "@" | "*") => {
                    self.all_arguments(&mut fields, *is_quoted && name == "@", *is_quoted);
                }
                ShellWordPart::Text(text, false) => {
                    let text = if at == 0 { self.at_home(text) } else { text.clone() };
                    if self.handle(text.len() + BYTES_OF_PART) {
                        fields.push(&text, false);
                    }
                }
                _ if is_quoted(part) || matches!(part, ShellWordPart::Sum(_)) => {
                    let text = self.part(part);
                    fields.push(&text, true);
                }
                _ => {
                    let text = self.part(part);
                    self.split_into(&mut fields, &text);
                }
            }
        }
        let mut words = Vec::new();
        for WordField { text, pattern } in fields.done {
            let names = match globs::is_pattern(&pattern) && !self.options.is_plain {
                true if self.handle(pattern.len()) => self.names_like(&pattern),
                _ => vec![],
            };
            if names.is_empty() { words.push(text) } else { words.extend(names) }
        }
        words
    }

    fn all_arguments(&mut self, fields: &mut WordFields, each_is_one: bool, is_quoted: bool) {
        let arguments = self.arguments.clone();
        if !self.handle(arguments.iter().map(|argument| argument.len() + BYTES_OF_PART).sum()) {
            return;
        }
        if is_quoted && !each_is_one {
            fields.push(&arguments.join(" "), true);
            return;
        }
        for (at, argument) in arguments.iter().enumerate() {
            fields.is_open &= at == 0;
            if is_quoted { fields.push(argument, true) } else { self.split_into(fields, argument) }
        }
    }

    /// Splits at blanks, or at what `IFS` says.
    fn split_into(&mut self, fields: &mut WordFields, text: &str) {
        let separators = self.variables.get("IFS").cloned().unwrap_or_else(|| " \t\n".into());
        if separators.is_empty() {
            return fields.push(text, false);
        }
        let is_blank = |c: char| c.is_whitespace() && separators.contains(c);
        let mut rest = text;
        if rest.starts_with(is_blank) {
            fields.is_open = false;
            rest = rest.trim_start_matches(is_blank);
        }
        while !rest.is_empty() {
            if !self.handle(BYTES_OF_PART) {
                return;
            }
            let end = rest.find(|c| separators.contains(c));
            fields.push(&rest[..end.unwrap_or(rest.len())], false);
            let Some(end) = end else { return };
            fields.is_open = false;
            rest = rest[end..].trim_start_matches(is_blank);
            if let Some(hard) = rest.chars().next().filter(|c| separators.contains(*c)) {
                rest = rest[hard.len_utf8()..].trim_start_matches(is_blank);
            }
        }
    }

    /// Nothing when there are no steps left to make it.
    fn part(&mut self, part: &ShellWordPart) -> String {
        let text = match part {
            ShellWordPart::Text(text, _) => text.clone(),
            ShellWordPart::Sum(word) => {
                let text = self.text(word);
                self.handle(2 * text.len());
                self.sum(&text).to_string()
            }
            ShellWordPart::Output(script, _) => {
                let (said, flow) = self.gather(|player| player.isolated(|player| player.list(&script.list)));
                self.pending = matches!(flow, AfterCommand::OutOfTime).then_some(flow).or(self.pending);
                said.trim_end_matches('\n').to_owned()
            }
            ShellWordPart::Variable(name, None, _) => {
                let value = self.variable(name);
                if value.is_empty() && self.options.unset_fails && !self.is_set(name) {
                    let why = match self.dialect {
                        Dialect::Bash => format!("{name}: unbound variable"),
                        Dialect::Ash | Dialect::Dash => format!("{name}: parameter not set"),
                    };
                    self.give_up(&why, if self.dialect == Dialect::Bash { 1 } else { 2 });
                }
                value
            }
            ShellWordPart::Variable(name, Some(operation), _) => self.operated(name, operation),
        };
        if self.handle(text.len() + BYTES_OF_PART) { text } else { String::new() }
    }

    /// `${NAME...}`
    fn operated(&mut self, name: &str, operation: &ValueOperation) -> String {
        let value = self.variable(name);
        self.handle(value.len());
        let ValueOperation { operator, word, other } = operation;
        let is_there = if operator.starts_with(':') { !value.is_empty() } else { self.is_set(name) };
        match *operator {
            ":-" | "-" if !is_there => self.text(word),
            ":+" | "+" => {
                if is_there {
                    self.text(word)
                } else {
                    String::new()
                }
            }
            ":=" | "=" if !is_there => {
                let value = self.text(word);
                self.set(name, value.clone());
                value
            }
            ":?" | "?" if !is_there => {
                let why = self.text(word);
                let why = if why.is_empty() { "parameter null or not set".to_owned() } else { why };
                self.give_up(&format!("{name}: {why}"), 1);
                value
            }
            "length" if matches!(name, "@" | "*") => self.arguments.len().to_string(),
            "length" => value.chars().count().to_string(),
            ":" => self.piece(&value, word, other.as_ref()),
            "^^" => value.to_uppercase(),
            "^" => {
                let mut letters = value.chars();
                letters.next().map(|c| c.to_uppercase().chain(letters).collect()).unwrap_or_default()
            }
            ",," => value.to_lowercase(),
            operator if operator.starts_with(['#', '%', '/']) => {
                self.without(operator, value, word, other.as_ref())
            }
            _ => value,
        }
    }

    /// `${NAME#pattern}` and its kin.
    fn without(&mut self, operator: &str, value: String, word: &Word, other: Option<&Word>) -> String {
        let wanted = self.pattern(word);
        let with = match other {
            Some(other) => self.text(other),
            None => String::new(),
        };
        let pay = &mut |bytes| self.handle(bytes);
        match operator {
            "/" | "//" => {
                let replaced = pattern::replaced(&value, &wanted, &with, operator == "//", pay);
                replaced.unwrap_or_else(|| {
                    self.stop(ScriptFault::Memory);
                    String::new()
                })
            }
            "/#" => match pattern::trimmed(&value, &wanted, false, true, pay) {
                left if left.len() < value.len() => with + left,
                _ => value,
            },
            "/%" => match pattern::trimmed(&value, &wanted, true, true, pay) {
                left if left.len() < value.len() => left.to_owned() + &with,
                _ => value,
            },
            _ => {
                let (at_end, longest) = (operator.starts_with('%'), operator.len() == 2);
                pattern::trimmed(&value, &wanted, at_end, longest, pay).to_owned()
            }
        }
    }

    /// `${NAME:from:length}`; what is below zero is counted from the end.
    fn piece(&mut self, value: &str, from: &Word, length: Option<&Word>) -> String {
        let letters: Vec<char> = value.chars().collect();
        let count = i64::try_from(letters.len()).unwrap_or(i64::MAX);
        let text = self.text(from);
        let from = match self.sum(&text) {
            from if from < 0 => count.saturating_add(from).max(0),
            from => from.min(count),
        };
        let end = match length {
            None => count,
            Some(length) => {
                let text = self.text(length);
                match self.sum(&text) {
                    length if length < 0 => count.saturating_add(length),
                    length => from.saturating_add(length).min(count),
                }
            }
        };
        let place = |at: i64| usize::try_from(at).unwrap_or_default();
        letters.get(place(from)..place(end.max(from))).unwrap_or_default().iter().collect()
    }

    pub(crate) fn variable(&self, name: &str) -> String {
        match name {
            "?" => self.status.to_string(),
            "$" => self.pid.to_string(),
            "#" => self.arguments.len().to_string(),
            "@" | "*" => self.arguments.join(" "),
            "0" => self.name.clone(),
            "!" => self.jobs.last_pid().map(|pid| pid.to_string()).unwrap_or_default(),
            "-" => self.options.letters(),
            "LINENO" => self.line.to_string(),
            digits if digits.bytes().all(|c| c.is_ascii_digit()) => {
                let at: usize = digits.parse().unwrap_or(usize::MAX);
                self.arguments.get(at.saturating_sub(1)).cloned().unwrap_or_default()
            }
            "PWD" => self.folder.clone(),
            name => self.variables.get(name).cloned().unwrap_or_default(),
        }
    }

    fn is_set(&self, name: &str) -> bool {
        match name {
            "@" | "*" => !self.arguments.is_empty(),
            "!" => self.jobs.last_pid().is_some(),
            "?" | "$" | "#" | "0" | "-" | "PWD" | "LINENO" => true,
            digits if digits.bytes().all(|c| c.is_ascii_digit()) => {
                digits.parse::<usize>().is_ok_and(|at| at <= self.arguments.len())
            }
            name => self.variables.get(name).is_some(),
        }
    }
}

fn is_quoted(part: &ShellWordPart) -> bool {
    match part {
        ShellWordPart::Text(_, quoted)
        | ShellWordPart::Variable(_, _, quoted)
        | ShellWordPart::Output(_, quoted) => *quoted,
        ShellWordPart::Sum(_) => true,
    }
}

/// A word, and the same as a pattern.
#[derive(Default)]
struct WordField {
    text: String,
    pattern: String,
}

/// The words that a word becomes, so far.
#[derive(Default)]
struct WordFields {
    done: Vec<WordField>,
    /// Whether what comes next belongs to the last one.
    is_open: bool,
}

impl WordFields {
    fn push(&mut self, text: &str, is_quoted: bool) {
        if !self.is_open {
            self.done.push(WordField::default());
        }
        self.is_open = true;
        let Some(field) = self.done.last_mut() else { return };
        field.text.push_str(text);
        field.pattern.push_str(&if is_quoted { pattern::escaped(text) } else { text.to_owned() });
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
