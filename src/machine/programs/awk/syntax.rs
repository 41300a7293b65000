//! Programs of `awk`, read: rules of a pattern and what is done with the lines that fit it.

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

#[derive(Debug)]
pub(super) enum AwkStatement {
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
}

const FUNCTIONS: &[&str] = &["length", "substr", "toupper", "tolower", "index", "int", "sprintf"];
/// Operators of two sides, the weakest first; in each row the longest first.
const LEVELS: &[&[&str]] = &[&["||"], &["&&"], &["!~", "~"], &["==", "!=", "<=", ">=", "<", ">"]];
const SUMS: &[&[&str]] = &[&["+", "-"], &["*", "/", "%"]];
const ASSIGNMENTS: &[&str] = &["+", "-", "*", "/", "%", ""];

/// Reads a program; nothing when it has what is not played: arrays, loops, functions of its own.
pub(super) fn read(text: &str) -> Option<Vec<AwkRule>> {
    let mut reader = AwkReader { text, depth: 0 };
    let mut rules = Vec::new();
    reader.skip_lines();
    while !reader.text.is_empty() {
        rules.push(reader.rule()?);
        reader.skip_lines();
    }
    Some(rules)
}

struct AwkReader<'t> {
    text: &'t str,
    depth: usize,
}

impl AwkReader<'_> {
    fn skip(&mut self) {
        self.text = self.text.trim_start_matches([' ', '\t', '\r']);
        if let Some(comment) = self.text.strip_prefix('#') {
            self.text = comment.find('\n').map_or("", |at| &comment[at..]);
        }
    }

    fn skip_lines(&mut self) {
        loop {
            self.skip();
            match self.text.strip_prefix(['\n', ';']) {
                Some(rest) => self.text = rest,
                None => return,
            }
        }
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip();
        match self.text.strip_prefix(token) {
            Some(rest) => {
                self.text = rest;
                true
            }
            None => false,
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
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

    /// Up to the brace that closes it.
    fn body(&mut self) -> Option<Vec<AwkStatement>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut statements = Vec::new();
        loop {
            self.skip_lines();
            if self.take("}") {
                self.depth -= 1;
                return Some(statements);
            }
            statements.push(self.statement()?);
        }
    }

    fn block(&mut self) -> Option<Vec<AwkStatement>> {
        self.skip_lines();
        if self.take("{") { self.body() } else { Some(vec![self.statement()?]) }
    }

    fn statement(&mut self) -> Option<AwkStatement> {
        if self.take_word("if") {
            self.depth += 1;
            if self.depth > MAX_DEPTH || !self.take("(") {
                return None;
            }
            let condition = self.value()?;
            if !self.take(")") {
                return None;
            }
            let then = self.block()?;
            self.skip_lines();
            let other = if self.take_word("else") { self.block()? } else { vec![] };
            self.depth -= 1;
            return Some(AwkStatement::If(condition, then, other));
        }
        let statement = if self.take_word("print") {
            AwkStatement::Print(self.values()?)
        } else if self.take_word("printf") {
            AwkStatement::Printf(self.values()?)
        } else if self.take_word("next") {
            AwkStatement::Next
        } else if self.take_word("exit") {
            AwkStatement::Exit(if self.is_over() { None } else { Some(self.value()?) })
        } else {
            AwkStatement::AwkValue(self.value()?)
        };
        self.is_over().then_some(statement)
    }

    fn is_over(&mut self) -> bool {
        self.skip();
        self.text.is_empty() || self.text.starts_with([';', '\n', '}'])
    }

    /// What `print` prints, perhaps in parentheses.
    fn values(&mut self) -> Option<Vec<AwkValue>> {
        let mut values = Vec::new();
        if self.is_over() {
            return Some(values);
        }
        let before = self.text;
        if self.take("(") {
            let inner = self.list();
            if let Some(inner) = inner.filter(|_| self.take(")") && self.is_over()) {
                return Some(inner);
            }
            self.text = before;
        }
        values.extend(self.list()?);
        Some(values)
    }

    fn list(&mut self) -> Option<Vec<AwkValue>> {
        let mut values = vec![self.value()?];
        while self.take(",") {
            self.skip_lines();
            values.push(self.value()?);
        }
        Some(values)
    }

    fn value(&mut self) -> Option<AwkValue> {
        self.depth += 1;
        let value = if self.depth > MAX_DEPTH { None } else { self.assigned() };
        self.depth -= 1;
        value
    }

    fn assigned(&mut self) -> Option<AwkValue> {
        let value = self.chosen()?;
        if !matches!(value, AwkValue::Variable(_) | AwkValue::Field(_)) {
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
        if matches!(value, AwkValue::Variable(_) | AwkValue::Field(_)) {
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
        self.primary().filter(|value| matches!(value, AwkValue::Variable(_) | AwkValue::Field(_)))
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
                let value = self.value()?;
                self.take(")").then_some(value)
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
        let length = name_length(self.text);
        let (name, rest) = self.text.split_at(length);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with('[') {
            return None;
        }
        self.text = rest;
        if let Some(function) = FUNCTIONS.iter().find(|function| **function == name) {
            let mut arguments = vec![];
            if self.take("(") && !self.take(")") {
                arguments = self.list()?;
                if !self.take(")") {
                    return None;
                }
            }
            return Some(AwkValue::Call(function, arguments));
        }
        let is_word = matches!(
            name,
            "for"
                | "while"
                | "do"
                | "function"
                | "getline"
                | "delete"
                | "split"
                | "gsub"
                | "sub"
                | "match"
                | "in"
                | "return"
                | "system"
                | "else"
        );
        (!is_word && !rest.starts_with('(')).then(|| AwkValue::Variable(name.to_owned()))
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

fn name_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}
