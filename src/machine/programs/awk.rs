//! `awk`, as far as charts and examples use it: fields, patterns, sums, `printf`; no arrays and no loops.

mod syntax;

use std::collections::BTreeMap;

use super::input::input;
use super::words::printf;
use crate::bounds::Fault;
use crate::interpreter::player::Player;
use crate::shell::{self, Word};
use syntax::{AwkRule, AwkRuleFor, AwkStatement, AwkValue};

/// What it costs to work out a value, beside the text that it makes.
const BYTES_OF_VALUE: usize = 32;

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
    let Some(rules) = syntax::read(call.program) else { return player.fail("awk: syntax error\n") };
    let mut play = AwkPlay::new(player, &call);
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
}

struct AwkPlay<'p, 'a> {
    player: &'p mut Player<'a>,
    variables: BTreeMap<String, String>,
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
        let (line, fields, said) = Default::default();
        AwkPlay { player, variables, line, fields, number: 0, said, status: 0 }
    }

    fn take(&mut self, line: &str) {
        self.number += 1;
        self.player.handle(line.len() * 2);
        self.line = line.to_owned();
        self.part();
    }

    fn part(&mut self) {
        let separator = self.variables.get("FS").map_or(" ", String::as_str);
        self.fields = match separator {
            " " | "" => self.line.split_whitespace().map(str::to_owned).collect(),
            "\\t" => self.line.split('\t').map(str::to_owned).collect(),
            one if one.chars().count() == 1 => self.line.split(one).map(str::to_owned).collect(),
            pattern => {
                match regex::RegexBuilder::new(pattern).size_limit(syntax::MAX_PATTERN_BYTES).build() {
                    Ok(pattern) => pattern.split(&self.line).map(str::to_owned).collect(),
                    Err(_) => self.line.split(pattern).map(str::to_owned).collect(),
                }
            }
        };
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
                    AwkEnding::Goes => {}
                    ending => return ending,
                }
            }
        }
        AwkEnding::Goes
    }

    fn statements(&mut self, statements: &[AwkStatement]) -> AwkEnding {
        for statement in statements {
            if !self.player.handle(BYTES_OF_VALUE) {
                return AwkEnding::Exits;
            }
            let ending = self.statement(statement);
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
            self.player.stop(Fault::Memory);
        }
    }

    fn formatted(&mut self, texts: &[String]) -> String {
        let words: Vec<&str> = texts.iter().map(String::as_str).collect();
        let Some((format, rest)) = words.split_first() else { return String::new() };
        match printf(format, rest) {
            Some(said) => said,
            None => {
                self.player.stop(Fault::Memory);
                String::new()
            }
        }
    }

    fn value(&mut self, value: &AwkValue) -> String {
        let text = self.worked_out(value);
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
                name => self.variables.get(name).cloned().unwrap_or_default(),
            },
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
            AwkValue::Variable(name) => {
                self.variables.insert(name.clone(), value);
                let bytes: usize = self.variables.values().map(String::len).sum();
                if bytes > crate::bounds::MAX_MEMORY_BYTES {
                    self.player.stop(Fault::Memory);
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

fn summed(a: f64, operator: &str, b: f64) -> f64 {
    match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        _ => a % b,
    }
}

/// The number at the beginning of a text.
fn number(text: &str) -> f64 {
    let text = text.trim_start();
    let is_part =
        |(at, c): (usize, char)| c.is_ascii_digit() || c == '.' || at == 0 && matches!(c, '-' | '+');
    let end = text.char_indices().find(|part| !is_part(*part)).map_or(text.len(), |(at, _)| at);
    text[..end].parse().unwrap_or(0.0)
}

fn shown(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Whether a value holds: a number that is not 0, or a text that is there.
fn is_so(text: &str) -> bool {
    match text.trim().parse::<f64>() {
        Ok(number) => number != 0.0,
        Err(_) => !text.is_empty(),
    }
}

fn compares(a: &str, operator: &str, b: &str) -> bool {
    let numbers = a.trim().parse::<f64>().ok().zip(b.trim().parse::<f64>().ok());
    let order = match numbers {
        Some((a, b)) => a.partial_cmp(&b),
        None => Some(a.cmp(b)),
    };
    let Some(order) = order else { return operator == "!=" };
    match operator {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::exec;
    use crate::surroundings::Surroundings;

    fn said(separator: &str, program: &str) -> (i32, String) {
        let script = format!("awk {separator} '{program}' /tmp/x");
        let words = ["sh".to_owned(), "-c".to_owned(), script];
        let files = [("/tmp/x", "one\na b  c\n3 x=4 5\n")]
            .map(|(path, text)| (path.to_owned(), Some(crate::file_system::File::new(text, 0o644))));
        let ran = exec(&words, &Surroundings::default(), files.to_vec(), None).expect("it is understood");
        (ran.end.unwrap().1, ran.out)
    }

    #[test]
    fn fields_are_printed() {
        for (separator, program, wanted) in [
            ("", "NR==2 {print $1}", "a\n"),
            ("", "NR==2 { print $2, $1 }", "b a\n"),
            ("", "NR==2 {print $NF \"-\" NF}", "c-3\n"),
            ("", "NR==2", "a b  c\n"),
            ("", "NR==2 {print $0;}", "a b  c\n"),
            ("", "NR==2 {print $9}", "\n"),
            ("", "NR==2 {print NR}", "2\n"),
            ("-F b", "NR==2 {print $2}", "  c\n"),
            ("", "/a|3/ {print $1}", "a\n3\n"),
            ("", "BEGIN {print 1 + 2 * 3} END {print NR, $1}", "7\n3 3\n"),
            ("", "{n += NF} END {printf \"%d %.2f\\n\", n, n / NR}", "7 2.33\n"),
            ("", "NF > 1 && $1 !~ /^[0-9]/ {c++; print toupper($1) c}", "A1\n"),
            (
                "-v x=5 -F=",
                "$1 ~ \"x\" {print ($2 < x ? \"less\" : \"more\"), length($1), substr($1, 1, 3)}",
                "less 3 3 x\n",
            ),
            ("", "{if (NR == 2) {$2 = \"z\"; print} else next} END {exit 3}", "a z c\n"),
            ("", "NR > 1 {print $(NF - 1); exit}", "b\n"),
        ] {
            let code = if program.contains("exit 3") { 3 } else { 0 };
            assert_eq!(said(separator, program), (code, wanted.to_owned()), "{program}");
        }
    }

    #[test]
    fn what_is_not_played_is_not_understood() {
        for unknown in [
            "{print $1",
            "{x[$1]++}",
            "{for (i = 0; i < 3; i++) print i}",
            "{print \"a}",
            "function f() {}",
            "{print é}",
            "{print | \"sort\"}",
            &format!("{{print 1{}}}", " + 1".repeat(5000)),
        ] {
            assert!(syntax::read(unknown).is_none(), "{unknown}");
        }
        for deep in ["(".repeat(5000), "-".repeat(5000), "!".repeat(5000), "$".repeat(5000), "{".repeat(5000)]
        {
            assert!(syntax::read(&format!("{{print {deep}1}}")).is_none());
        }
    }
}
