//! Commands of a script.

use super::lexer::Token;
use super::{Action, Command, List, Node, Part, Redirect, Target, When, Word};
use crate::kubelet::commands;

/// Words that begin or end what is more than a simple command, where a command may stand.
const RESERVED: [&str; 15] = [
    "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac", "{", "}", "in",
];

/// Reads all of them; nothing when anything is not understood.
pub(super) fn parse(tokens: &[Token]) -> Option<List> {
    let mut parser = Parser { tokens };
    let list = parser.list(&[])?;
    parser.tokens.is_empty().then_some(list)
}

struct Parser<'a> {
    tokens: &'a [Token],
}

impl Parser<'_> {
    /// Commands up to one of the words or operators `ends`, which is left standing.
    fn list(&mut self, ends: &[&str]) -> Option<List> {
        let (mut nodes, mut when) = (Vec::new(), When::Always);
        loop {
            self.skip_separators();
            if self.tokens.is_empty() || self.is_at(ends) {
                return (when == When::Always).then_some(nodes);
            }
            nodes.push(self.pipeline(when)?);
            when = match self.tokens.first() {
                Some(Token::Operator("&&")) => When::IfSucceeded,
                Some(Token::Operator("||")) => When::IfFailed,
                Some(Token::Operator(";" | "\n")) | None => When::Always,
                Some(_) if self.is_at(ends) => return Some(nodes),
                Some(_) => return None,
            };
            self.tokens = self.tokens.get(1..).unwrap_or_default();
        }
    }

    fn pipeline(&mut self, when: When) -> Option<Node> {
        let is_negated = self.take_word("!").is_some();
        let mut commands = vec![self.command()?];
        while self.take_operator("|").is_some() {
            self.skip_lines();
            commands.push(self.command()?);
        }
        Some(Node { when, is_negated, commands })
    }

    fn command(&mut self) -> Option<Command> {
        let action = match self.tokens.first()? {
            Token::Operator("(") => {
                self.take_operator("(")?;
                let list = self.list(&[")"])?;
                self.take_operator(")")?;
                Some(Action::Subshell(list))
            }
            Token::Word(word) => match bare(word) {
                Some("if") => Some(self.branches()?),
                Some("while") => Some(self.repeated("while")?),
                Some("until") => Some(self.repeated("until")?),
                Some("for") => Some(self.for_each()?),
                Some("case") => Some(self.case()?),
                Some("{") => {
                    self.take_word("{")?;
                    let list = self.list(&["}"])?;
                    self.take_word("}")?;
                    Some(Action::Group(list))
                }
                Some(word) if RESERVED.contains(&word) => return None,
                _ => None,
            },
            _ => None,
        };
        let mut redirects = Vec::new();
        let action = match action {
            Some(action) => action,
            None => self.simple(&mut redirects)?,
        };
        while self.redirect(&mut redirects)?.is_some() {}
        Some(Command { action, redirects })
    }

    /// Assignments, a program with its arguments, and redirections among them.
    fn simple(&mut self, redirects: &mut Vec<Redirect>) -> Option<Action> {
        let (mut assignments, mut words) = (Vec::new(), Vec::<Word>::new());
        loop {
            if self.redirect(redirects)?.is_some() {
                continue;
            }
            let Some((Token::Word(word), rest)) = self.tokens.split_first() else { break };
            self.tokens = rest;
            match assignment(word) {
                Some(assignment) if words.is_empty() => assignments.push(assignment),
                _ => words.push(word.clone()),
            }
        }
        let is_known = match words.first() {
            None => !assignments.is_empty() || !redirects.is_empty(),
            Some(program) => super::plain(program).is_some_and(commands::is_known),
        };
        is_known.then_some(Action::Simple(assignments, words))
    }

    /// Whether a redirection stood here; nothing when it is not understood.
    fn redirect(&mut self, redirects: &mut Vec<Redirect>) -> Option<Option<()>> {
        let (descriptor, rest) = match self.tokens {
            [Token::Descriptor(digit), rest @ ..] => (Some(*digit), rest),
            rest => (None, rest),
        };
        let [Token::Operator(operator), after @ ..] = rest else { return Some(None) };
        if !matches!(*operator, ">" | ">>" | ">&" | "&>" | "<" | "<<<" | "<<") {
            return Some(None);
        }
        let [Token::Word(word), after @ ..] = after else { return None };
        let target = match *operator {
            ">" | "&>" => Target::Write(word.clone()),
            ">>" => Target::Append(word.clone()),
            "<" => Target::Read(word.clone()),
            "<<<" => Target::Text(word.clone()),
            ">&" => Target::Descriptor(super::plain(word)?.parse().ok()?),
            _ => return None,
        };
        let default = u8::from(!operator.starts_with('<'));
        redirects.push(Redirect { descriptor: descriptor.unwrap_or(default), target });
        if *operator == "&>" {
            redirects.push(Redirect { descriptor: 2, target: Target::Descriptor(1) });
        }
        self.tokens = after;
        Some(Some(()))
    }

    /// `if ...; then ...; elif ...; then ...; else ...; fi`
    fn branches(&mut self) -> Option<Action> {
        let mut branches = Vec::new();
        while self.take_word("if").or_else(|| self.take_word("elif")).is_some() {
            let condition = self.list(&["then"])?;
            self.take_word("then")?;
            branches.push((condition, self.list(&["elif", "else", "fi"])?));
        }
        if self.take_word("else").is_some() {
            branches.push((vec![], self.list(&["fi"])?));
        }
        self.take_word("fi")?;
        Some(Action::If(branches))
    }

    fn repeated(&mut self, kind: &str) -> Option<Action> {
        self.take_word(kind)?;
        let condition = self.list(&["do"])?;
        Some(Action::While { condition, wanted: kind == "while", body: self.body()? })
    }

    fn for_each(&mut self) -> Option<Action> {
        self.take_word("for")?;
        let variable = bare(&self.take_any_word()?)?.to_owned();
        self.take_word("in")?;
        let mut values = Vec::new();
        while let Some(word) = self.take_any_word() {
            values.push(word);
        }
        self.skip_separators();
        Some(Action::For(variable, values, self.body()?))
    }

    /// `do ... done`
    fn body(&mut self) -> Option<List> {
        self.skip_separators();
        self.take_word("do")?;
        let body = self.list(&["done"])?;
        self.take_word("done")?;
        Some(body)
    }

    /// `case word in a|b) ... ;; esac`
    fn case(&mut self) -> Option<Action> {
        self.take_word("case")?;
        let subject = self.take_any_word()?;
        self.skip_lines();
        self.take_word("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_separators();
            if self.take_word("esac").is_some() {
                return Some(Action::Case(subject, arms));
            }
            self.take_operator("(");
            let mut patterns = vec![self.take_any_word()?];
            while self.take_operator("|").is_some() {
                patterns.push(self.take_any_word()?);
            }
            self.take_operator(")")?;
            arms.push((patterns, self.list(&[";;", "esac"])?));
            self.take_operator(";;");
        }
    }

    fn take_any_word(&mut self) -> Option<Word> {
        let (Token::Word(word), rest) = self.tokens.split_first()? else { return None };
        self.tokens = rest;
        Some(word.clone())
    }

    fn take_word(&mut self, wanted: &str) -> Option<()> {
        matches!(self.tokens.first()?, Token::Word(word) if bare(word) == Some(wanted))
            .then(|| self.tokens = &self.tokens[1..])
    }

    fn take_operator(&mut self, wanted: &str) -> Option<()> {
        matches!(self.tokens.first()?, Token::Operator(operator) if *operator == wanted)
            .then(|| self.tokens = &self.tokens[1..])
    }

    fn skip_separators(&mut self) {
        while let Some((Token::Operator(";" | "\n"), rest)) = self.tokens.split_first() {
            self.tokens = rest;
        }
    }

    fn skip_lines(&mut self) {
        while self.take_operator("\n").is_some() {}
    }

    fn is_at(&self, ends: &[&str]) -> bool {
        match self.tokens.first() {
            Some(Token::Word(word)) => bare(word).is_some_and(|word| ends.contains(&word)),
            Some(Token::Operator(operator)) => ends.contains(operator),
            _ => false,
        }
    }
}

/// The text of a word in which nothing is quoted or filled in.
fn bare(word: &Word) -> Option<&str> {
    match word.as_slice() {
        [Part::Text(text, false)] => Some(text),
        _ => None,
    }
}

/// `NAME=word`
fn assignment(word: &Word) -> Option<(String, Word)> {
    let (Part::Text(text, false), rest) = word.split_first()? else { return None };
    let (name, value) = text.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name) {
        return None;
    }
    let mut parts = vec![Part::Text(value.to_owned(), true)];
    parts.extend(rest.iter().cloned());
    Some((name.to_owned(), parts))
}
