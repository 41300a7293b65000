//! Commands of a script.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::lexer::Token;
use super::syntax::{
    self, CommandList, PipelineNode, Redirect, ShellAction, ShellCommand, ShellWordPart, Target, Unplayable,
    When, Word,
};
use crate::bounds::{MAX_DEPTH, ScriptFault};

/// Words that begin or end what is more than a simple command, where a command may stand.
const RESERVED: [&str; 17] = [
    "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac", "{", "}",
    "in", "select", "coproc",
];
/// Of those, and of the operators, what no shell takes where a command should begin.
const ENDS: [&str; 14] =
    ["then", "elif", "else", "fi", "do", "done", "esac", "}", ")", ";;", "|", "&&", "||", "&"];

type ShellRead<T> = Result<T, Unplayable>;

/// Reads all of them; also how deeply they are nested.
pub(crate) fn parse(
    tokens: &[Token],
    knows: Option<fn(&str, &[Word]) -> bool>,
    functions: &BTreeSet<String>,
) -> ShellRead<(CommandList, usize)> {
    let mut parser =
        ShellParser { all: tokens, tokens, knows, functions, depth: 0, deepest: 0, line: (0, 1) };
    let list = parser.list(&[])?;
    if parser.tokens.is_empty() { Ok((list, parser.deepest)) } else { Err(parser.unexpected(None)) }
}

struct ShellParser<'a> {
    all: &'a [Token],
    tokens: &'a [Token],
    /// Whether a program with these arguments is one that is played; without, any may be named.
    knows: Option<fn(&str, &[Word]) -> bool>,
    /// What the script itself defines, before or behind.
    functions: &'a BTreeSet<String>,
    depth: usize,
    deepest: usize,
    /// Up to which token lines were counted, and which line that is in.
    line: (usize, usize),
}

impl ShellParser<'_> {
    /// The line of what stands here.
    fn line(&mut self) -> usize {
        let at = self.all.len() - self.tokens.len();
        let passed = self.all.get(self.line.0..at).unwrap_or_default();
        let lines = passed.iter().filter(|token| **token == Token::Operator("\n")).count();
        self.line = (at.max(self.line.0), self.line.1 + lines);
        self.line.1
    }

    /// Commands up to one of the words or operators `ends`, or to what cannot begin one, which is left
    /// standing.
    fn list(&mut self, ends: &[&str]) -> ShellRead<CommandList> {
        self.depth += 1;
        self.note_depth(0)?;
        let list = self.nodes(ends);
        self.depth -= 1;
        list
    }

    fn nodes(&mut self, ends: &[&str]) -> ShellRead<CommandList> {
        let (mut nodes, mut when) = (Vec::new(), When::Always);
        loop {
            self.skip_separators();
            if self.tokens.is_empty() || self.is_at(ends) || self.is_at(&ENDS) {
                return if when == When::Always { Ok(nodes) } else { Err(self.unexpected(None)) };
            }
            nodes.push(self.pipeline(when)?);
            when = match self.tokens.first() {
                Some(Token::Operator("&&")) => When::IfSucceeded,
                Some(Token::Operator("||")) => When::IfFailed,
                Some(Token::Operator(";" | "\n")) | None => When::Always,
                Some(_) if self.is_at(ends) => return Ok(nodes),
                Some(Token::Operator("&")) => {
                    send_back(&mut nodes);
                    When::Always
                }
                Some(_) => return Err(self.unexpected(None)),
            };
            self.tokens = self.tokens.get(1..).unwrap_or_default();
        }
    }

    fn pipeline(&mut self, when: When) -> ShellRead<PipelineNode> {
        let mut is_negated = false;
        while self.take_word("!").is_some() {
            is_negated = !is_negated;
        }
        let mut commands = vec![self.command()?];
        loop {
            if self.take_operator("|&").is_some() {
                let both = Redirect { descriptor: 2, target: Target::Descriptor(1) };
                commands
                    .iter_mut()
                    .next_back()
                    .into_iter()
                    .for_each(|last| last.redirects.push(both.clone()));
            } else if self.take_operator("|").is_none() {
                break;
            }
            self.skip_lines();
            commands.push(self.command()?);
        }
        Ok(PipelineNode { when, is_negated, is_background: false, commands })
    }

    fn command(&mut self) -> ShellRead<ShellCommand> {
        let mut redirects = Vec::new();
        let line = self.line();
        let action = match self.function()? {
            Some(action) => action,
            None => match self.compound()? {
                Some(action) => action,
                None => self.simple(&mut redirects)?,
            },
        };
        while self.redirect(&mut redirects)? {}
        Ok(ShellCommand { action, redirects, line })
    }

    /// `name() { ...; }`, and `function name { ...; }`
    fn function(&mut self) -> ShellRead<Option<ShellAction>> {
        let (name, rest) = match self.tokens {
            [Token::Word(name, _), Token::Operator("("), Token::Operator(")"), rest @ ..] => (name, rest),
            [Token::Word(word, _), Token::Word(name, _), rest @ ..] if bare(word) == Some("function") => {
                (name, rest.strip_prefix(&[Token::Operator("("), Token::Operator(")")]).unwrap_or(rest))
            }
            _ => return Ok(None),
        };
        let name = bare(name).ok_or(Unplayable::Unknown)?.to_owned();
        self.tokens = rest;
        self.skip_lines();
        self.depth += 1;
        self.note_depth(0)?;
        let body = self.command()?;
        self.depth -= 1;
        Ok(Some(ShellAction::Function(name, Arc::new(body))))
    }

    /// What is more than a simple command.
    fn compound(&mut self) -> ShellRead<Option<ShellAction>> {
        if let [Token::Sum(parts), rest @ ..] = self.tokens {
            let [sum] = parts.as_slice() else { return Err(Unplayable::Unknown) };
            self.tokens = rest;
            return Ok(Some(ShellAction::Sum(sum.clone())));
        }
        let word = match self.tokens.first() {
            Some(Token::Operator("(")) => "(",
            Some(Token::Word(word, _)) => bare(word).unwrap_or_default(),
            Some(_) => return Ok(None),
            None => return Err(self.unexpected(None)),
        };
        match word {
            "(" => Ok(Some(ShellAction::Subshell(self.enclosed(")")?))),
            "{" => Ok(Some(ShellAction::Group(self.enclosed("}")?))),
            "if" => self.branches().map(Some),
            "while" | "until" => self.repeated().map(Some),
            "for" => self.for_each().map(Some),
            "case" => self.case().map(Some),
            "[[" => self.conditional().map(Some),
            "select" | "coproc" => Err(Unplayable::Unknown),
            word if RESERVED.contains(&word) => Err(self.unexpected(None)),
            _ => Ok(None),
        }
    }

    /// Between the parenthesis or brace that stands here and `close`.
    fn enclosed(&mut self, close: &str) -> ShellRead<CommandList> {
        self.tokens = &self.tokens[1..];
        let list = self.list(&[close])?;
        match close {
            ")" => self.expect_operator(close)?,
            _ => self.expect_word(close)?,
        }
        Ok(list)
    }

    /// Assignments, a program with its arguments, and redirections among them.
    fn simple(&mut self, redirects: &mut Vec<Redirect>) -> ShellRead<ShellAction> {
        let (mut assignments, mut words) = (Vec::new(), Vec::<Word>::new());
        loop {
            if self.redirect(redirects)? {
                continue;
            }
            let Some(word) = self.next_word()? else { break };
            match assignment(&word) {
                Some(assignment) if words.is_empty() => assignments.push(assignment),
                _ => words.push(word),
            }
        }
        // Arrays are not known.
        let is_array = self.tokens.first() == Some(&Token::Operator("("))
            && (words.is_empty() || words.last().is_some_and(|word| assignment(word).is_some()));
        let is_known = match words.split_first() {
            None if assignments.is_empty() && redirects.is_empty() => return Err(self.unexpected(None)),
            None => true,
            Some((program, arguments)) => self.knows.is_none_or(|knows| {
                let knows = |program: &str| self.functions.contains(program) || knows(program, arguments);
                syntax::plain(program).is_some_and(knows)
            }),
        };
        if is_known && !is_array {
            Ok(ShellAction::Simple(assignments, words))
        } else {
            Err(Unplayable::Unknown)
        }
    }

    /// `[[ ... ]]`: what parts commands elsewhere is a word there.
    fn conditional(&mut self) -> ShellRead<ShellAction> {
        let mut words = Vec::new();
        self.tokens = &self.tokens[1..];
        loop {
            let word = match self.tokens.split_first() {
                None => return Err(self.unexpected(Some("]]"))),
                Some((Token::Operator("\n"), _)) => None,
                Some((Token::Operator(operator), _))
                    if matches!(*operator, "&&" | "||" | "(" | ")" | "<" | ">") =>
                {
                    Some(vec![ShellWordPart::Text((*operator).to_owned(), false)])
                }
                Some((Token::Word(word, depth), _)) => {
                    self.note_depth(*depth)?;
                    Some(word.clone())
                }
                Some(_) => return Err(Unplayable::Unknown),
            };
            self.tokens = &self.tokens[1..];
            match word {
                Some(word) if bare(&word) == Some("]]") => return Ok(ShellAction::Conditional(words)),
                word => words.extend(word),
            }
        }
    }

    /// Whether a redirection stood here.
    fn redirect(&mut self, redirects: &mut Vec<Redirect>) -> ShellRead<bool> {
        let (descriptor, rest) = match self.tokens {
            [Token::Descriptor(digit), rest @ ..] => (Some(*digit), rest),
            rest => (None, rest),
        };
        let [Token::Operator(operator), after @ ..] = rest else { return Ok(false) };
        let operator = *operator;
        if !matches!(
            operator,
            ">" | ">>" | ">|" | ">&" | "&>" | "&>>" | "<" | "<>" | "<&" | "<<<" | "<<" | "<<-"
        ) {
            return Ok(false);
        }
        self.tokens = after;
        let word = self.next_word()?.ok_or_else(|| self.unexpected(None))?;
        let target = match operator {
            ">" | "&>" | ">|" => Target::Write(word),
            ">>" | "&>>" => Target::Append(word),
            "<" | "<>" => Target::Read(word),
            "<<<" => Target::Text(word),
            "<<" | "<<-" => Target::Here(word),
            _ => match (syntax::plain(&word), descriptor_of(&word)) {
                (_, Some(other)) => Target::Descriptor(other),
                (Some("-"), _) => Target::Closed,
                _ => Target::Anything(word),
            },
        };
        // `>& file` is for both outputs.
        let is_both = operator.starts_with('&')
            || operator == ">&" && descriptor.is_none() && matches!(target, Target::Anything(_));
        let default = u8::from(!operator.starts_with('<'));
        redirects.push(Redirect { descriptor: descriptor.unwrap_or(default), target });
        if is_both {
            redirects.push(Redirect { descriptor: 2, target: Target::Descriptor(1) });
        }
        Ok(true)
    }

    /// `if ...; then ...; elif ...; then ...; else ...; fi`
    fn branches(&mut self) -> ShellRead<ShellAction> {
        let mut branches = Vec::new();
        while self.take_word("if").or_else(|| self.take_word("elif")).is_some() {
            let condition = self.list(&["then"])?;
            self.expect_word("then")?;
            branches.push((condition, self.list(&["elif", "else", "fi"])?));
        }
        if self.take_word("else").is_some() {
            branches.push((vec![], self.list(&["fi"])?));
        }
        self.expect_word("fi")?;
        Ok(ShellAction::If(branches))
    }

    fn repeated(&mut self) -> ShellRead<ShellAction> {
        let wanted = self.take_word("while").is_some();
        if !wanted {
            self.expect_word("until")?;
        }
        let condition = self.list(&["do"])?;
        let body = self.body()?;
        let is_endless = wanted && syntax::always_holds(&condition) && !syntax::has_way_out(&body);
        Ok(ShellAction::While { condition, wanted, body, is_endless })
    }

    fn for_each(&mut self) -> ShellRead<ShellAction> {
        self.expect_word("for")?;
        if let [Token::Sum(parts), rest @ ..] = self.tokens {
            let parts: &[Word; 3] = parts.as_slice().try_into().map_err(|_| Unplayable::Unknown)?;
            self.tokens = rest;
            self.skip_separators();
            return Ok(ShellAction::Count(parts.clone(), self.body()?));
        }
        let variable = self.expect_any_word()?;
        self.skip_lines();
        let variable = bare(&variable).ok_or(Unplayable::Unknown)?.to_owned();
        let mut values = Vec::new();
        if self.take_word("in").is_none() {
            // Without them it is about the arguments.
            self.skip_separators();
            let all = vec![ShellWordPart::Variable("@".into(), None, true)];
            return Ok(ShellAction::For(variable, vec![all], self.body()?));
        }
        while let Some(word) = self.next_word()? {
            values.push(word);
        }
        self.skip_separators();
        Ok(ShellAction::For(variable, values, self.body()?))
    }

    /// `do ... done`
    fn body(&mut self) -> ShellRead<CommandList> {
        self.skip_separators();
        self.expect_word("do")?;
        let body = self.list(&["done"])?;
        self.expect_word("done")?;
        Ok(body)
    }

    /// `case word in a|b) ... ;; esac`
    fn case(&mut self) -> ShellRead<ShellAction> {
        self.expect_word("case")?;
        let subject = self.expect_any_word()?;
        self.skip_lines();
        self.expect_word("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_separators();
            if self.take_word("esac").is_some() {
                return Ok(ShellAction::Case(subject, arms));
            }
            self.take_operator("(");
            let mut patterns = vec![self.expect_any_word()?];
            while self.take_operator("|").is_some() {
                patterns.push(self.expect_any_word()?);
            }
            self.expect_operator(")")?;
            arms.push((patterns, self.list(&[";;", "esac"])?));
            self.take_operator(";;");
        }
    }

    /// A word that stands here, if one does.
    fn next_word(&mut self) -> ShellRead<Option<Word>> {
        let Some((Token::Word(word, depth), rest)) = self.tokens.split_first() else { return Ok(None) };
        self.tokens = rest;
        self.note_depth(*depth)?;
        Ok(Some(word.clone()))
    }

    /// That something is nested `further` where the parser stands.
    fn note_depth(&mut self, further: usize) -> ShellRead<()> {
        self.deepest = self.deepest.max(self.depth + further);
        if self.deepest > MAX_DEPTH { Err(Unplayable::Faulty(ScriptFault::Depth)) } else { Ok(()) }
    }

    fn expect_any_word(&mut self) -> ShellRead<Word> {
        let word = self.next_word()?;
        word.ok_or_else(|| self.unexpected(None))
    }

    fn expect_word(&mut self, wanted: &str) -> ShellRead<()> {
        self.take_word(wanted).ok_or_else(|| self.unexpected(Some(wanted)))
    }

    fn expect_operator(&mut self, wanted: &str) -> ShellRead<()> {
        self.take_operator(wanted).ok_or_else(|| self.unexpected(Some(wanted)))
    }

    fn take_word(&mut self, wanted: &str) -> Option<()> {
        matches!(self.tokens.first()?, Token::Word(word, _) if bare(word) == Some(wanted))
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
        self.tokens.first().and_then(shown).is_some_and(|shown| ends.contains(&shown))
    }

    /// What stands here cannot: as a shell says it, where every shell would, and else it is something that
    /// is not known here.
    fn unexpected(&self, wanted: Option<&str>) -> Unplayable {
        let found = match self.tokens.first() {
            None => "end of file".to_owned(),
            Some(token) => match shown(token).filter(|shown| ENDS.contains(shown)) {
                Some(shown) => format!("{shown:?}"),
                None => return Unplayable::Unknown,
            },
        };
        let wanted = wanted.map(|wanted| format!(" (expecting {wanted:?})")).unwrap_or_default();
        Unplayable::Faulty(ScriptFault::Syntax(format!("unexpected {found}{wanted}")))
    }
}

/// What stands last goes on in the background, with all that it depends on.
fn send_back(nodes: &mut CommandList) {
    let first = nodes.iter().rposition(|node| node.when == When::Always).unwrap_or_default();
    let mut together = nodes.split_off(first);
    if let [node] = together.as_mut_slice() {
        node.is_background = true;
        nodes.append(&mut together);
        return;
    }
    let line = together.first().and_then(|node| node.commands.first()).map_or(1, |command| command.line);
    let command = ShellCommand { action: ShellAction::Subshell(together), redirects: vec![], line };
    nodes.push(PipelineNode {
        when: When::Always,
        is_negated: false,
        is_background: true,
        commands: vec![command],
    });
}

/// An operator, or a word in which nothing is quoted or filled in.
fn shown(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word, _) => bare(word),
        Token::Operator(operator) => Some(operator),
        Token::Descriptor(_) | Token::Sum(_) => None,
    }
}

fn bare(word: &Word) -> Option<&str> {
    match word.as_slice() {
        [ShellWordPart::Text(text, false)] => Some(text),
        _ => None,
    }
}

fn descriptor_of(word: &Word) -> Option<u8> {
    syntax::plain(word)?.parse().ok()
}

/// `NAME=word`
pub(crate) fn assignment(word: &Word) -> Option<(String, Word)> {
    let (ShellWordPart::Text(text, false), rest) = word.split_first()? else { return None };
    let (name, value) = text.split_once('=')?;
    if let Some(name) = name.strip_suffix('+').filter(|name| syntax::is_name(name)) {
        let mut parts = vec![
            ShellWordPart::Variable(name.to_owned(), None, true),
            ShellWordPart::Text(value.to_owned(), true),
        ];
        parts.extend(rest.iter().cloned());
        return Some((name.to_owned(), parts));
    }
    if !syntax::is_name(name) {
        return None;
    }
    let mut parts = vec![ShellWordPart::Text(value.to_owned(), true)];
    parts.extend(rest.iter().cloned());
    Some((name.to_owned(), parts))
}
