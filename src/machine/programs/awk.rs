//! `awk`, as far as charts and examples use it: fields, patterns, sums, `printf`, arrays, loops, functions of
//! its own; no other programs, and no files that it writes.

mod arrays;
mod elements;
mod functions;
mod loops;
mod numbers;
mod statements;
mod syntax;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::input::input;
use super::words::printf;
use crate::bounds::ScriptFault;
use crate::interpreter::player::Player;
use crate::shell::{self, Word};
use arrays::{AwkArrays, AwkLocal, parted};
use numbers::{compares, is_so, number, shown, summed};
use syntax::{AwkFunction, AwkRule, AwkRuleFor, AwkStatement, AwkValue};

/// What it costs to work out a value, beside the text that it makes.
const BYTES_OF_VALUE: usize = 32;

/// So many values and statements are worked out inside of each other, those of functions that call each other
/// among them; a program that goes deeper is stopped as a process is whose stack is full.
const MAX_NESTED: usize = 256;

/// What a command line says.
struct AwkCall<'w> {
    separator: Option<String>,
    variables: Vec<(String, String)>,
    program: &'w str,
    files: Vec<&'w str>,
}

/// Whether its program is one that is played.
pub(crate) fn is_understood(arguments: &[Word]) -> bool {
    let words: Option<Vec<String>> = arguments.iter().map(joined).collect();
    let words = words.unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    call(&words).is_some_and(|call| syntax::read(call.program).is_some())
}

/// The text of a word in which nothing is filled in.
fn joined(word: &Word) -> Option<String> {
    word.iter().map(|part| shell::plain(std::slice::from_ref(part))).collect()
}

fn call<'w>(words: &[&'w str]) -> Option<AwkCall<'w>> {
    let mut separator = None;
    let mut variables = vec![];
    let mut words = words;
    loop {
        words = match words {
            ["-F", given, rest @ ..] => {
                separator = Some((*given).to_owned());
                rest
            }
            ["-v", given, rest @ ..] => {
                let (name, value) = given.split_once('=')?;
                variables.push((name.to_owned(), value.to_owned()));
                rest
            }
            [flag, rest @ ..] if flag.starts_with("-F") => {
                separator = Some(flag[2..].to_owned());
                rest
            }
            [flag, ..] if flag.starts_with('-') => return None,
            [program, files @ ..] => {
                return Some(AwkCall { separator, variables, program, files: files.to_vec() });
            }
            [] => return None,
        };
    }
}

pub(crate) fn run(player: &mut Player<'_>, words: &[&str]) {
    let Some(call) = call(words) else { return player.fail("awk: syntax error\n") };
    player.handle(call.program.len() * 8);
    let Some(program) = syntax::read(call.program) else { return player.fail("awk: syntax error\n") };
    let rules = program.rules;
    let mut play = AwkPlay::new(player, &call);
    play.functions = Arc::new(program.functions);
    let reads = rules.iter().any(|rule| !matches!(rule.of, AwkRuleFor::Begin));
    let mut end = play.rules(&rules, |of| matches!(of, AwkRuleFor::Begin));
    if reads && end == AwkEnding::Goes {
        let Some(text) = input(play.player, "awk", &call.files) else { return };
        for line in text.lines() {
            play.take(line);
            end = play.rules(&rules, |of| matches!(of, AwkRuleFor::Lines(_)));
            if end == AwkEnding::Exits || play.player.fault.is_some() {
                break;
            }
        }
    }
    if play.player.fault.is_none() {
        play.rules(&rules, |of| matches!(of, AwkRuleFor::End));
    }
    let (said, status) = (std::mem::take(&mut play.said), play.status);
    player.say(&said);
    player.status = status;
}

/// How the rules of a line ended.
#[derive(Clone, Copy, PartialEq)]
enum AwkEnding {
    Goes,
    Next,
    Exits,
    Breaks,
    Continues,
    Returns,
}

struct AwkPlay<'p, 'a> {
    player: &'p mut Player<'a>,
    variables: BTreeMap<String, String>,
    arrays: AwkArrays,
    functions: Arc<BTreeMap<String, AwkFunction>>,
    /// What the functions that run have of their own, the innermost last. Bound: as deep as they may call.
    frames: Vec<BTreeMap<String, AwkLocal>>,
    /// What the function that has just ended returns.
    returned: String,
    /// How deep inside of each other it is.
    depth: usize,
    /// A function has said `exit`.
    is_exiting: bool,
    line: String,
    fields: Vec<String>,
    number: usize,
    said: String,
    status: i32,
}

impl<'p, 'a> AwkPlay<'p, 'a> {
    fn new(player: &'p mut Player<'a>, call: &AwkCall<'_>) -> AwkPlay<'p, 'a> {
        let mut variables: BTreeMap<String, String> = call.variables.iter().cloned().collect();
        variables.insert("FS".into(), call.separator.clone().unwrap_or_else(|| " ".into()));
        variables.entry("OFS".into()).or_insert_with(|| " ".into());
        variables.entry("ORS".into()).or_insert_with(|| "\n".into());
        AwkPlay {
            player,
            variables,
            arrays: AwkArrays::default(),
            functions: Arc::default(),
            frames: Vec::new(),
            returned: String::new(),
            depth: 0,
            is_exiting: false,
            line: String::new(),
            fields: Vec::new(),
            number: 0,
            said: String::new(),
            status: 0,
        }
    }

    fn take(&mut self, line: &str) {
        self.number += 1;
        self.player.handle(line.len() * 2);
        self.line = line.to_owned();
        self.part();
    }

    fn part(&mut self) {
        let separator = self.variables.get("FS").map_or(" ", String::as_str);
        self.fields = parted(&self.line, separator);
    }

    fn rules(&mut self, rules: &[AwkRule], is_meant: impl Fn(&AwkRuleFor) -> bool) -> AwkEnding {
        for rule in rules.iter().filter(|rule| is_meant(&rule.of)) {
            let fits = match &rule.of {
                AwkRuleFor::Lines(Some(pattern)) => {
                    let value = self.value(pattern);
                    is_so(&value)
                }
                _ => true,
            };
            if fits {
                match self.statements(&rule.body) {
                    AwkEnding::Goes | AwkEnding::Breaks | AwkEnding::Continues | AwkEnding::Returns => {}
                    ending => return ending,
                }
            }
        }
        AwkEnding::Goes
    }

    /// Whether it may go deeper ([`MAX_NESTED`]); then it comes back, too.
    fn goes_deeper(&mut self) -> bool {
        if self.depth >= MAX_NESTED {
            self.player.stop(ScriptFault::Depth);
            return false;
        }
        self.depth += 1;
        true
    }

    fn statements(&mut self, statements: &[AwkStatement]) -> AwkEnding {
        if !self.goes_deeper() {
            return AwkEnding::Exits;
        }
        let ending = self.one_by_one(statements);
        self.depth -= 1;
        ending
    }

    fn one_by_one(&mut self, statements: &[AwkStatement]) -> AwkEnding {
        for statement in statements {
            if !self.player.handle(BYTES_OF_VALUE) {
                return AwkEnding::Exits;
            }
            let ending = self.statement(statement);
            if std::mem::take(&mut self.is_exiting) {
                return AwkEnding::Exits;
            }
            if ending != AwkEnding::Goes {
                return ending;
            }
        }
        AwkEnding::Goes
    }

    fn statement(&mut self, statement: &AwkStatement) -> AwkEnding {
        match statement {
            AwkStatement::Print(values) if values.is_empty() => {
                let line = self.line.clone();
                self.print(&[line]);
            }
            AwkStatement::Print(values) => {
                let texts: Vec<String> = values.iter().map(|value| self.value(value)).collect();
                self.print(&texts);
            }
            AwkStatement::Printf(values) => {
                let texts: Vec<String> = values.iter().map(|value| self.value(value)).collect();
                let said = self.formatted(&texts);
                self.say(&said);
            }
            AwkStatement::AwkValue(value) => drop(self.value(value)),
            AwkStatement::If(condition, then, other) => {
                let value = self.value(condition);
                return self.statements(if is_so(&value) { then } else { other });
            }
            AwkStatement::Block(body) => return self.statements(body),
            AwkStatement::While(condition, body) => return self.repeat(Some(condition), None, body),
            AwkStatement::Do(body, condition) => match self.statements(body) {
                AwkEnding::Goes | AwkEnding::Continues => return self.repeat(Some(condition), None, body),
                AwkEnding::Breaks => {}
                ending => return ending,
            },
            AwkStatement::For(first, condition, step, body) => {
                if let Some(first) = first {
                    self.statement(first);
                }
                return self.repeat(condition.as_ref(), step.as_deref(), body);
            }
            AwkStatement::ForEach(name, array, body) => return self.each(name, array, body),
            AwkStatement::Break => return AwkEnding::Breaks,
            AwkStatement::Continue => return AwkEnding::Continues,
            AwkStatement::Return(value) => {
                self.returned = value.as_ref().map(|value| self.value(value)).unwrap_or_default();
                return AwkEnding::Returns;
            }
            AwkStatement::Delete(array, subscripts) => self.delete(array, subscripts.as_deref()),
            AwkStatement::Next => return AwkEnding::Next,
            AwkStatement::Exit(code) => {
                let code = code.as_ref().map(|code| self.value(code));
                self.status = code.map_or(self.status, |code| number(&code) as i32 & 0xff);
                return AwkEnding::Exits;
            }
        }
        AwkEnding::Goes
    }

    fn print(&mut self, texts: &[String]) {
        let separator = self.variables.get("OFS").cloned().unwrap_or_default();
        let end = self.variables.get("ORS").cloned().unwrap_or_default();
        self.say(&(texts.join(&separator) + &end));
    }

    fn say(&mut self, text: &str) {
        if !self.player.handle(text.len()) {
            return;
        }
        self.said.push_str(text);
        if self.said.len() > crate::bounds::MAX_MEMORY_BYTES {
            self.player.stop(ScriptFault::Memory);
        }
    }

    fn formatted(&mut self, texts: &[String]) -> String {
        let words: Vec<&str> = texts.iter().map(String::as_str).collect();
        let Some((format, rest)) = words.split_first() else { return String::new() };
        match printf(format, rest) {
            Some(said) => said,
            None => {
                self.player.stop(ScriptFault::Memory);
                String::new()
            }
        }
    }

    fn value(&mut self, value: &AwkValue) -> String {
        if !self.goes_deeper() {
            return String::new();
        }
        let text = self.worked_out(value);
        self.depth -= 1;
        if self.player.handle(text.len() + BYTES_OF_VALUE) { text } else { String::new() }
    }

    fn worked_out(&mut self, value: &AwkValue) -> String {
        match value {
            AwkValue::Number(number) => shown(*number),
            AwkValue::Text(text) => text.clone(),
            AwkValue::Pattern(pattern) => shown(f64::from(u8::from(pattern.is_match(&self.line)))),
            AwkValue::Variable(name) => match name.as_str() {
                "NF" => self.fields.len().to_string(),
                "NR" | "FNR" => self.number.to_string(),
                name => self.variable(name),
            },
            AwkValue::Element(array, subscripts) => self.element(array, subscripts),
            AwkValue::In(subscripts, array) => {
                shown(f64::from(u8::from(self.has_element(array, subscripts))))
            }
            AwkValue::Invoke(name, arguments) => self.invoked(name, arguments),
            AwkValue::Split(text, array, separator) => self.split(text, array, separator.as_deref()),
            AwkValue::Substitute(of, is_all) => self.substitute(&of[0], &of[1], &of[2], *is_all),
            AwkValue::Match(text, pattern) => self.matched(text, pattern),
            AwkValue::Field(at) => {
                let at = self.value(at);
                match number(&at) as usize {
                    0 => self.line.clone(),
                    at => self.fields.get(at - 1).cloned().unwrap_or_default(),
                }
            }
            AwkValue::Not(value) => {
                let value = self.value(value);
                shown(f64::from(u8::from(!is_so(&value))))
            }
            AwkValue::Minus(value) => {
                let value = self.value(value);
                shown(-number(&value))
            }
            AwkValue::Joined(values) => values.iter().map(|value| self.value(value)).collect(),
            AwkValue::Two(operator, a, b) => self.two(operator, a, b),
            AwkValue::Choice(condition, a, b) => {
                let condition = self.value(condition);
                self.value(if is_so(&condition) { a } else { b })
            }
            AwkValue::Put(place, operator, value) => {
                let value = self.value(value);
                let value = match *operator {
                    "" => value,
                    operator => {
                        let before = self.value(place);
                        shown(summed(number(&before), operator, number(&value)))
                    }
                };
                self.put(place, value.clone());
                value
            }
            AwkValue::Step(place, by, is_seen) => {
                let before = self.value(place);
                let after = shown(number(&before) + by);
                self.put(place, after.clone());
                if *is_seen { after } else { shown(number(&before)) }
            }
            AwkValue::Call(function, arguments) => self.called(function, arguments),
        }
    }

    fn put(&mut self, place: &AwkValue, value: String) {
        match place {
            AwkValue::Element(array, subscripts) => {
                let key = self.key(subscripts);
                let array = self.array(array);
                self.put_element(&array, key, value);
            }
            AwkValue::Variable(name) if self.put_local(name, &value) => {}
            AwkValue::Variable(name) => {
                self.variables.insert(name.clone(), value);
                let bytes: usize = self.variables.values().map(String::len).sum();
                if bytes > crate::bounds::MAX_MEMORY_BYTES {
                    self.player.stop(ScriptFault::Memory);
                }
            }
            AwkValue::Field(at) => {
                let at = self.value(at);
                match number(&at) as usize {
                    0 => {
                        self.line = value;
                        self.part();
                    }
                    at if at <= self.fields.len() => {
                        self.fields[at - 1] = value;
                        let separator = self.variables.get("OFS").cloned().unwrap_or_default();
                        self.line = self.fields.join(&separator);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn two(&mut self, operator: &str, a: &AwkValue, b: &AwkValue) -> String {
        if let ("~" | "!~", AwkValue::Pattern(pattern)) = (operator, b) {
            let text = self.value(a);
            return shown(f64::from(u8::from(pattern.is_match(&text) == (operator == "~"))));
        }
        let a = self.value(a);
        // What decides is not asked further.
        match operator {
            "&&" if !is_so(&a) => return shown(0.0),
            "||" if is_so(&a) => return shown(1.0),
            _ => {}
        }
        let b = self.value(b);
        match operator {
            "&&" | "||" => shown(f64::from(u8::from(is_so(&b)))),
            "~" | "!~" => {
                let is_like = super::matching::is_match(self.player, b, &a);
                shown(f64::from(u8::from(is_like == (operator == "~"))))
            }
            "+" | "-" | "*" | "/" | "%" => shown(summed(number(&a), operator, number(&b))),
            _ => shown(f64::from(u8::from(compares(&a, operator, &b)))),
        }
    }

    fn called(&mut self, function: &str, arguments: &[AwkValue]) -> String {
        let counted = arguments.first().filter(|_| function == "length");
        if let Some(count) = counted.and_then(|argument| self.count_of(argument)) {
            return count;
        }
        let texts: Vec<String> = arguments.iter().map(|argument| self.value(argument)).collect();
        let text = |at: usize| texts.get(at).map_or("", String::as_str);
        match function {
            "length" if texts.is_empty() => self.line.chars().count().to_string(),
            "length" => text(0).chars().count().to_string(),
            "toupper" => text(0).to_uppercase(),
            "tolower" => text(0).to_lowercase(),
            "int" => shown(number(text(0)).trunc()),
            "index" => {
                let at = text(0).find(text(1)).map_or(0, |at| text(0)[..at].chars().count() + 1);
                at.to_string()
            }
            "substr" => {
                let from = (number(text(1)) as usize).max(1) - 1;
                let count = if texts.len() > 2 { number(text(2)) as usize } else { usize::MAX };
                text(0).chars().skip(from).take(count).collect()
            }
            _ => self.formatted(&texts),
        }
    }
}

#[cfg(test)]
mod tests;
