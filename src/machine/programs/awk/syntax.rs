//! Programs of `awk`, read: rules of a pattern and what is done with the lines that fit it.

use std::collections::BTreeMap;

use crate::bounds::MAX_DEPTH;

/// A compiled pattern is no bigger.
pub(super) const MAX_PATTERN_BYTES: usize = 1 << 18;

#[derive(Debug)]
pub(super) enum AwkRuleFor {
    Begin,
    End,
    Lines(Option<AwkValue>),
}

#[derive(Debug)]
pub(super) struct AwkRule {
    pub(super) of: AwkRuleFor,
    pub(super) body: Vec<AwkStatement>,
}

/// A program.
#[derive(Debug, Default)]
pub(super) struct AwkProgram {
    pub(super) rules: Vec<AwkRule>,
    /// Its own, by their names.
    pub(super) functions: BTreeMap<String, AwkFunction>,
}

#[derive(Debug)]
pub(super) struct AwkFunction {
    pub(super) parameters: Vec<String>,
    pub(super) body: Vec<AwkStatement>,
}

#[derive(Debug)]
pub(super) enum AwkStatement {
    Block(Vec<AwkStatement>),
    While(AwkValue, Vec<AwkStatement>),
    Do(Vec<AwkStatement>, AwkValue),
    For(Option<Box<AwkStatement>>, Option<AwkValue>, Option<Box<AwkStatement>>, Vec<AwkStatement>),
    /// A variable, and the array whose keys it is one after the other.
    ForEach(String, String, Vec<AwkStatement>),
    Break,
    Continue,
    Return(Option<AwkValue>),
    /// An array, or an element of it.
    Delete(String, Option<Vec<AwkValue>>),
    Print(Vec<AwkValue>),
    Printf(Vec<AwkValue>),
    AwkValue(AwkValue),
    If(AwkValue, Vec<AwkStatement>, Vec<AwkStatement>),
    Next,
    Exit(Option<AwkValue>),
}

#[derive(Debug)]
pub(super) enum AwkValue {
    Number(f64),
    Text(String),
    Pattern(regex::Regex),
    Variable(String),
    /// An array and the subscripts in it.
    Element(String, Vec<AwkValue>),
    /// Whether an array has an element.
    In(Vec<AwkValue>, String),
    Field(Box<AwkValue>),
    Not(Box<AwkValue>),
    Minus(Box<AwkValue>),
    /// Texts beside each other.
    Joined(Vec<AwkValue>),
    /// Both sides, with the operator.
    Two(&'static str, Box<AwkValue>, Box<AwkValue>),
    Choice(Box<AwkValue>, Box<AwkValue>, Box<AwkValue>),
    /// `name = value` and its kin; the operator stands before the sign.
    Put(Box<AwkValue>, &'static str, Box<AwkValue>),
    /// `name++`: what is added, and whether that is seen.
    Step(Box<AwkValue>, f64, bool),
    Call(&'static str, Vec<AwkValue>),
    /// A function of the program's own.
    Invoke(String, Vec<AwkValue>),
    /// `split`: the text, the array, the separator.
    Split(Box<AwkValue>, String, Option<Box<AwkValue>>),
    /// `sub`, and `gsub` when all are meant: the pattern, what takes its place, and where.
    Substitute(Box<[AwkValue; 3]>, bool),
    /// `match`: the text, the pattern.
    Match(Box<AwkValue>, Box<AwkValue>),
}

/// Words of the language that are no names.
const WORDS: [&str; 17] = [
    "for", "while", "do", "function", "func", "getline", "delete", "in", "return", "system", "else", "break",
    "continue", "nextfile", "close", "fflush", "srand",
];

const FUNCTIONS: &[&str] = &["length", "substr", "toupper", "tolower", "index", "int", "sprintf"];
/// Operators of two sides, the weakest first; in each row the longest first.
const LEVELS: &[&[&str]] = &[&["||"], &["&&"], &["!~", "~"], &["==", "!=", "<=", ">=", "<", ">"]];
/// Of the operands of `&&`, `in` is the weakest operator.
const IN_LEVEL: usize = 2;
const SUMS: &[&[&str]] = &[&["+", "-"], &["*", "/", "%"]];
const ASSIGNMENTS: &[&str] = &["+", "-", "*", "/", "%", ""];

/// Reads a program; nothing when it has what is not played: other programs, files that are written.
pub(super) fn read(text: &str) -> Option<AwkProgram> {
    let mut reader = AwkReader { text, depth: 0, invoked: Vec::new() };
    let mut program = AwkProgram::default();
    reader.skip_lines();
    while !reader.text.is_empty() {
        if reader.take_word("function") || reader.take_word("func") {
            let (name, function) = reader.function()?;
            program.functions.insert(name, function);
        } else {
            program.rules.push(reader.rule()?);
        }
        reader.skip_lines();
    }
    let are_known = reader.invoked.iter().all(|name| program.functions.contains_key(name));
    are_known.then_some(program)
}

pub(super) struct AwkReader<'t> {
    pub(super) text: &'t str,
    pub(super) depth: usize,
    /// The functions that are called by their names.
    invoked: Vec<String>,
}

impl AwkReader<'_> {
    pub(super) fn skip(&mut self) {
        self.text = self.text.trim_start_matches([' ', '\t', '\r']);
        if let Some(comment) = self.text.strip_prefix('#') {
            self.text = comment.find('\n').map_or("", |at| &comment[at..]);
        }
    }

    pub(super) fn skip_lines(&mut self) {
        loop {
            self.skip();
            match self.text.strip_prefix(['\n', ';']) {
                Some(rest) => self.text = rest,
                None => return,
            }
        }
    }

    pub(super) fn take(&mut self, token: &str) -> bool {
        self.skip();
        match self.text.strip_prefix(token) {
            Some(rest) => {
                self.text = rest;
                true
            }
            None => false,
        }
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.skip();
        let is_it = self.text.strip_prefix(word).is_some_and(|rest| name_length(rest) == 0);
        is_it && self.take(word)
    }

    fn rule(&mut self) -> Option<AwkRule> {
        let of = if self.take_word("BEGIN") {
            AwkRuleFor::Begin
        } else if self.take_word("END") {
            AwkRuleFor::End
        } else {
            self.skip();
            AwkRuleFor::Lines(if self.text.starts_with('{') { None } else { Some(self.value()?) })
        };
        let body = if self.take("{") { self.body()? } else { vec![AwkStatement::Print(vec![])] };
        Some(AwkRule { of, body })
    }

    pub(super) fn list(&mut self) -> Option<Vec<AwkValue>> {
        let mut values = vec![self.value()?];
        while self.take(",") {
            self.skip_lines();
            values.push(self.value()?);
        }
        Some(values)
    }

    pub(super) fn value(&mut self) -> Option<AwkValue> {
        self.depth += 1;
        let value = if self.depth > MAX_DEPTH { None } else { self.assigned() };
        self.depth -= 1;
        value
    }

    fn assigned(&mut self) -> Option<AwkValue> {
        let value = self.chosen()?;
        if !is_place(&value) {
            return Some(value);
        }
        self.skip();
        let is_it = |operator: &&&str| {
            let rest = self.text.strip_prefix(**operator).and_then(|rest| rest.strip_prefix('='));
            rest.is_some_and(|rest| !rest.starts_with(['=', '~']))
        };
        let Some(operator) = ASSIGNMENTS.iter().find(is_it).copied() else { return Some(value) };
        self.text = &self.text[operator.len() + 1..];
        Some(AwkValue::Put(Box::new(value), operator, Box::new(self.value()?)))
    }

    fn chosen(&mut self) -> Option<AwkValue> {
        let condition = self.level(0)?;
        if !self.take("?") {
            return Some(condition);
        }
        let first = self.value()?;
        if !self.take(":") {
            return None;
        }
        Some(AwkValue::Choice(Box::new(condition), Box::new(first), Box::new(self.value()?)))
    }

    fn level(&mut self, level: usize) -> Option<AwkValue> {
        let Some(operators) = LEVELS.get(level) else { return self.joined() };
        let mut value = self.level(level + 1)?;
        for _ in 0..MAX_DEPTH {
            if level == IN_LEVEL && self.take_word("in") {
                value = AwkValue::In(vec![value], self.name()?);
            }
            self.skip();
            let Some(operator) = operators.iter().find(|operator| self.text.starts_with(**operator)) else {
                return Some(value);
            };
            self.text = &self.text[operator.len()..];
            value = AwkValue::Two(operator, Box::new(value), Box::new(self.level(level + 1)?));
        }
        None
    }

    /// Values beside each other are one text.
    fn joined(&mut self) -> Option<AwkValue> {
        let mut values = vec![self.sum(0)?];
        loop {
            self.skip();
            let begins = |c: char| c.is_ascii_alphanumeric() || matches!(c, '"' | '$' | '(' | '_' | '.');
            if !self.text.starts_with(begins) || self.text.starts_with("in ") {
                return if values.len() == 1 { values.pop() } else { Some(AwkValue::Joined(values)) };
            }
            values.push(self.sum(0)?);
        }
    }

    fn sum(&mut self, level: usize) -> Option<AwkValue> {
        let Some(operators) = SUMS.get(level) else { return self.unary() };
        let mut value = self.sum(level + 1)?;
        for _ in 0..MAX_DEPTH {
            self.skip();
            let is_it = |operator: &&&str| {
                let rest = self.text.strip_prefix(**operator);
                rest.is_some_and(|rest| !rest.starts_with('=') && !rest.starts_with(**operator))
            };
            let Some(operator) = operators.iter().find(is_it) else { return Some(value) };
            self.text = &self.text[operator.len()..];
            value = AwkValue::Two(operator, Box::new(value), Box::new(self.sum(level + 1)?));
        }
        None
    }

    fn unary(&mut self) -> Option<AwkValue> {
        self.depth += 1;
        let value = if self.depth > MAX_DEPTH { None } else { self.prefixed() };
        self.depth -= 1;
        value
    }

    fn prefixed(&mut self) -> Option<AwkValue> {
        for (sign, by) in [("++", 1.0), ("--", -1.0)] {
            if self.take(sign) {
                return Some(AwkValue::Step(Box::new(self.place()?), by, true));
            }
        }
        if self.take("!") {
            return Some(AwkValue::Not(Box::new(self.unary()?)));
        }
        if self.take("-") {
            return Some(AwkValue::Minus(Box::new(self.unary()?)));
        }
        let value = self.primary()?;
        if is_place(&value) {
            for (sign, by) in [("++", 1.0), ("--", -1.0)] {
                if self.take(sign) {
                    return Some(AwkValue::Step(Box::new(value), by, false));
                }
            }
        }
        Some(value)
    }

    /// What may be assigned to.
    fn place(&mut self) -> Option<AwkValue> {
        self.primary().filter(is_place)
    }

    fn primary(&mut self) -> Option<AwkValue> {
        self.skip();
        match self.text.chars().next()? {
            '"' => self.quoted().map(AwkValue::Text),
            '/' => self.pattern(),
            '$' => {
                self.text = &self.text[1..];
                Some(AwkValue::Field(Box::new(self.unary_field()?)))
            }
            '(' => {
                self.take("(");
                let mut values = self.list()?;
                if !self.take(")") {
                    return None;
                }
                if values.len() == 1 {
                    return values.pop();
                }
                let array = if self.take_word("in") { self.name()? } else { return None };
                Some(AwkValue::In(values, array))
            }
            c if c.is_ascii_digit() || c == '.' => self.number(),
            _ => self.named(),
        }
    }

    /// `$1`, `$NF`, `$(NF - 1)`
    fn unary_field(&mut self) -> Option<AwkValue> {
        self.depth += 1;
        let value = if self.depth > MAX_DEPTH { None } else { self.primary() };
        self.depth -= 1;
        value
    }

    fn number(&mut self) -> Option<AwkValue> {
        let end = self.text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.text.len());
        let (digits, rest) = self.text.split_at(end);
        self.text = rest;
        digits.parse().ok().map(AwkValue::Number)
    }

    fn named(&mut self) -> Option<AwkValue> {
        let name = self.name()?;
        if self.text.starts_with('[') {
            self.text = &self.text[1..];
            return Some(AwkValue::Element(name, self.subscripts()?));
        }
        if let Some(function) = FUNCTIONS.iter().find(|function| **function == name) {
            return Some(AwkValue::Call(function, self.arguments()?));
        }
        let is_called = self.text.starts_with('(');
        match name.as_str() {
            "split" | "sub" | "gsub" | "match" => self.of_places(&name),
            name if WORDS.contains(&name) => None,
            _ if is_called => {
                self.invoked.push(name.clone());
                Some(AwkValue::Invoke(name, self.arguments()?))
            }
            _ => Some(AwkValue::Variable(name)),
        }
    }

    fn arguments(&mut self) -> Option<Vec<AwkValue>> {
        if !self.take("(") || self.take(")") {
            return Some(Vec::new());
        }
        let arguments = self.list()?;
        self.take(")").then_some(arguments)
    }

    /// Functions that do something to what they are given.
    fn of_places(&mut self, name: &str) -> Option<AwkValue> {
        let mut arguments = self.arguments()?.into_iter();
        let first = Box::new(arguments.next()?);
        let second = arguments.next()?;
        let third = arguments.next();
        match (name, second) {
            ("split", AwkValue::Variable(array)) => Some(AwkValue::Split(first, array, third.map(Box::new))),
            ("match", pattern) => Some(AwkValue::Match(first, Box::new(pattern))),
            ("sub" | "gsub", replacement) => {
                let line = || AwkValue::Field(Box::new(AwkValue::Number(0.0)));
                let place = third.unwrap_or_else(line);
                let is_right = is_place(&place);
                let all = Box::new([*first, replacement, place]);
                is_right.then_some(AwkValue::Substitute(all, name == "gsub"))
            }
            _ => None,
        }
    }

    fn quoted(&mut self) -> Option<String> {
        let mut out = String::new();
        let mut letters = self.text.char_indices().skip(1);
        while let Some((at, c)) = letters.next() {
            match c {
                '"' => {
                    self.text = &self.text[at + 1..];
                    return Some(out);
                }
                '\\' => match letters.next()?.1 {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    other => out.push(other),
                },
                c => out.push(c),
            }
        }
        None
    }

    fn pattern(&mut self) -> Option<AwkValue> {
        let mut pattern = String::new();
        let mut letters = self.text.char_indices().skip(1);
        while let Some((at, c)) = letters.next() {
            match c {
                '/' => {
                    self.text = &self.text[at + 1..];
                    let built = regex::RegexBuilder::new(&pattern).size_limit(MAX_PATTERN_BYTES).build();
                    return built.ok().map(AwkValue::Pattern);
                }
                '\\' => match letters.next()?.1 {
                    '/' => pattern.push('/'),
                    other => pattern.extend(['\\', other]),
                },
                c => pattern.push(c),
            }
        }
        None
    }
}

/// Whether it may be assigned to.
fn is_place(value: &AwkValue) -> bool {
    matches!(value, AwkValue::Variable(_) | AwkValue::Field(_) | AwkValue::Element(..))
}

pub(super) fn name_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}
