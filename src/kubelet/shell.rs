//! The few words of shell that examples are made of, so that `sh -c 'echo hello; sleep 30; exit 1'` does
//! just that.
//!
//! Lists (`;`, `&&`, `||`), `if`, `while`, `until`, `for x in ...`, variables, `$(date)`, `$(hostname)`,
//! `$((i+1))`, `$(expr $i % 2)`, and the commands `echo`, `sleep`, `true`, `false`, `exit`, `test`, `[`,
//! `[[`, `touch`, `rm`, `date`, `hostname`, `set`. Whatever else stands in a script makes the whole script
//! unknown, which is better than half of it being played.

use std::time::Duration;

/// A script that is understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub(super) nodes: Vec<Node>,
}

/// A command or a loop, and what it depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) when: When,
    pub(super) action: Action,
}

/// Whether it runs, given how the last one ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum When {
    Always,
    IfSucceeded,
    IfFailed,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Assign(String, String),
    Echo {
        words: Vec<String>,
        newline: bool,
    },
    Sleep(Duration),
    Return(i32),
    /// A number, or what becomes one.
    Exit(String),
    Test(Condition),
    /// Makes files, or removes them.
    Touch(Vec<String>),
    Remove(Vec<String>),
    /// The first whose condition holds; the last one's always does.
    If(Vec<(Vec<Node>, Vec<Node>)>),
    /// Repeats for ever.
    Forever(Vec<Node>),
    While {
        condition: Vec<Node>,
        wanted: bool,
        body: Vec<Node>,
    },
    For(String, Vec<String>, Vec<Node>),
}

/// What `test` asks.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    IsFile(String),
    IsEmpty(String),
    Compare(String, String, String),
    Not(Box<Condition>),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word { text: String, quoted: bool },
    Operator(&'static str),
}

impl Script {
    /// Reads a script; nothing when anything in it is not understood.
    pub fn parse(text: &str) -> Option<Script> {
        let tokens = tokens(text)?;
        let mut parser = Parser { tokens: &tokens };
        let nodes = parser.list(&[])?;
        parser.tokens.is_empty().then_some(Script { nodes })
    }

    /// Reads a command with its arguments.
    pub fn of_command(words: &[String]) -> Option<Script> {
        let action = command(words)?;
        Some(Script { nodes: vec![Node { when: When::Always, action }] })
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
}

impl Parser<'_> {
    /// Commands up to one of the words `ends`, which is left standing.
    fn list(&mut self, ends: &[&str]) -> Option<Vec<Node>> {
        let (mut nodes, mut when) = (Vec::new(), When::Always);
        loop {
            self.skip_separators();
            if self.tokens.is_empty() || self.at_one_of(ends) {
                return (when == When::Always).then_some(nodes);
            }
            nodes.push(Node { when, action: self.action()? });
            when = match self.tokens.first() {
                Some(Token::Operator("&&")) => When::IfSucceeded,
                Some(Token::Operator("||")) => When::IfFailed,
                _ => When::Always,
            };
            self.tokens = self.tokens.get(1..).unwrap_or_default();
        }
    }

    fn action(&mut self) -> Option<Action> {
        if self.at_one_of(&["if"]) {
            return self.branches();
        }
        let words = self.words();
        let plain: Vec<&str> = words.iter().map(String::as_str).collect();
        match plain.as_slice() {
            ["while", "true" | ":" | "[ 1 ]"] | ["until", "false"] => Some(Action::Forever(self.body()?)),
            [kind @ ("while" | "until"), test @ ..] => {
                let test: Vec<String> = test.iter().map(ToString::to_string).collect();
                let condition = vec![Node { when: When::Always, action: command(&test)? }];
                Some(Action::While { condition, wanted: *kind == "while", body: self.body()? })
            }
            ["for", variable, "in", values @ ..] => {
                let values = values.iter().map(ToString::to_string).collect();
                Some(Action::For((*variable).to_owned(), values, self.body()?))
            }
            _ => command(&words),
        }
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

    /// `; do ... done`
    fn body(&mut self) -> Option<Vec<Node>> {
        self.skip_separators();
        self.take_word("do")?;
        let body = self.list(&["done"])?;
        self.take_word("done")?;
        Some(body)
    }

    fn words(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        while let Some((Token::Word { text, .. }, rest)) = self.tokens.split_first() {
            words.push(text.clone());
            self.tokens = rest;
        }
        words
    }

    fn take_word(&mut self, wanted: &str) -> Option<()> {
        self.at_one_of(&[wanted]).then(|| self.tokens = &self.tokens[1..])
    }

    fn skip_separators(&mut self) {
        while let Some((Token::Operator(";"), rest)) = self.tokens.split_first() {
            self.tokens = rest;
        }
    }

    fn at_one_of(&self, words: &[&str]) -> bool {
        let unquoted = |token: &Token| match token {
            Token::Word { text, quoted: false } => words.contains(&text.as_str()),
            _ => false,
        };
        self.tokens.first().is_some_and(unquoted)
    }
}

/// What a simple command does.
fn command(words: &[String]) -> Option<Action> {
    let plain: Vec<&str> = words.iter().map(String::as_str).collect();
    match plain.as_slice() {
        ["true" | ":"] => Some(Action::Return(0)),
        ["false"] => Some(Action::Return(1)),
        ["exit"] => Some(Action::Exit("$?".into())),
        ["exit", code] if is_number(code) => Some(Action::Exit((*code).to_owned())),
        ["!", rest @ ..] => {
            let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
            match command(&rest)? {
                Action::Test(condition) => Some(Action::Test(Condition::Not(Box::new(condition)))),
                _ => None,
            }
        }
        ["set", flags] if flags.starts_with(['-', '+']) => Some(Action::Return(0)),
        ["test", rest @ ..] | ["[", rest @ .., "]"] | ["[[", rest @ .., "]]"] => {
            condition(rest).map(Action::Test)
        }
        ["touch", files @ ..] => Some(Action::Touch(files.iter().map(ToString::to_string).collect())),
        ["rm", files @ ..] => {
            let files = files.iter().filter(|file| !file.starts_with('-'));
            Some(Action::Remove(files.map(ToString::to_string).collect()))
        }
        ["perl", options @ ..] => pi(options.last()?),
        ["sleep", "infinity" | "inf"] => Some(Action::Forever(vec![])),
        ["sleep", time] => Some(Action::Sleep(sleep_time(time)?)),
        ["date"] => Some(Action::Echo { words: vec!["$(date)".into()], newline: true }),
        ["hostname"] => Some(Action::Echo { words: vec!["$(hostname)".into()], newline: true }),
        ["echo", "-n", rest @ ..] => Some(echo(rest, false)),
        ["echo", "-e", rest @ ..] | ["echo", rest @ ..] => Some(echo(rest, true)),
        [assignment] => {
            let (name, value) = assignment.split_once('=')?;
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            is_name.then(|| Action::Assign(name.into(), value.into()))
        }
        _ => None,
    }
}

/// What `test` is asked.
fn condition(words: &[&str]) -> Option<Condition> {
    let text = |text: &str| text.to_owned();
    match words {
        ["!", rest @ ..] => Some(Condition::Not(Box::new(condition(rest)?))),
        ["-z", value] => Some(Condition::IsEmpty(text(value))),
        ["-n", value] | [value] => Some(Condition::Not(Box::new(Condition::IsEmpty(text(value))))),
        ["-e" | "-f" | "-r" | "-d" | "-s" | "-w" | "-x", path] => Some(Condition::IsFile(text(path))),
        [a, operator @ ("=" | "==" | "!=" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"), b] => {
            Some(Condition::Compare(text(a), text(operator), text(b)))
        }
        _ => None,
    }
}

/// A number as it stands, or something that is filled in.
fn is_number(word: &str) -> bool {
    word.starts_with('$') || word.parse::<i32>().is_ok()
}

/// `print bpi(2000)`: it takes a moment.
fn pi(program: &str) -> Option<Action> {
    let digits: usize = program.trim().strip_prefix("print bpi(")?.strip_suffix(')')?.parse().ok()?;
    let when = When::Always;
    let words = vec![format!("$(pi {digits})")];
    let nodes = vec![
        Node { when, action: Action::Sleep(Duration::from_secs(1)) },
        Node { when, action: Action::Echo { words, newline: true } },
    ];
    Some(Action::If(vec![(vec![], nodes)]))
}

fn echo(words: &[&str], newline: bool) -> Action {
    Action::Echo { words: words.iter().map(ToString::to_string).collect(), newline }
}

fn sleep_time(text: &str) -> Option<Duration> {
    let (number, factor) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) if text.ends_with('m') => (number, 60.0),
        Some(number) if text.ends_with('h') => (number, 3600.0),
        Some(number) if text.ends_with('d') => (number, 86_400.0),
        Some(number) => (number, 1.0),
        None => (text, 1.0),
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()
}

/// Splits a script into words and operators; nothing when it has what is not understood (pipes, redirections,
/// background jobs, command substitutions other than `date` and `hostname`).
fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let operator = ["&&", "||", ";", "\n"].iter().find(|operator| rest.starts_with(**operator));
        if let Some(operator) = operator {
            tokens.push(Token::Operator(if *operator == "\n" { ";" } else { operator }));
            rest = &rest[operator.len()..];
        } else if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else {
            let (word, length) = word(rest)?;
            tokens.push(word);
            rest = &rest[length..];
        }
    }
    Some(tokens)
}

/// A word and its length in bytes. A literal dollar sign is kept as `\u{1}`, so that it is not expanded.
fn word(text: &str) -> Option<(Token, usize)> {
    let (mut word, mut quote, mut quoted) = (String::new(), None, false);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => (quote, quoted) = (Some(c), true),
            (Some('\''), '$') => word.push('\u{1}'),
            (None | Some('"'), '\\') => match chars.next()?.1 {
                '$' => word.push('\u{1}'),
                escaped => word.push(escaped),
            },
            (None | Some('"'), '$') if text[at..].starts_with("$(") => {
                let (substitution, length) = substitution(&text[at..])?;
                word.push_str(&substitution);
                let end = at + length - 1;
                while chars.next().is_some_and(|(inner, _)| inner < end) {}
            }
            (None | Some('"'), '$') if text[at..].starts_with("$?") => {
                word.push_str("$?");
                chars.next();
            }
            (None | Some('"'), '`') => return None,
            (None, '|' | '>' | '<' | '&' | '(' | ')' | '#' | '*' | '?') => {
                return unless_done(c, text, at, word, quoted);
            }
            (None, c) if c.is_whitespace() || c == ';' => {
                return Some((Token::Word { text: word, quoted }, at));
            }
            (_, c) => word.push(c),
        }
    }
    quote.is_none().then_some((Token::Word { text: word, quoted }, text.len()))
}

/// A command substitution that is understood, as it is filled in later, and its length in the script.
fn substitution(text: &str) -> Option<(String, usize)> {
    let known = ["$(date)", "$(hostname)"].into_iter().find(|known| text.starts_with(known));
    if let Some(known) = known {
        return Some((known.to_owned(), known.len()));
    }
    if text.starts_with("$((") {
        let length = text.find("))")? + 2;
        return Some((text[..length].to_owned(), length));
    }
    let sum = text.strip_prefix("$(expr ")?;
    let end = sum.find(')')?;
    let sum = sum[..end].replace("\\*", "*").replace(['\'', '"'], "");
    Some((format!("$(({sum}))"), "$(expr ".len() + end + 1))
}

/// `&&` and `||` end a word; the other special characters are not understood.
fn unless_done(c: char, text: &str, at: usize, word: String, quoted: bool) -> Option<(Token, usize)> {
    let is_list = matches!(c, '&' | '|') && (text[at..].starts_with("&&") || text[at..].starts_with("||"));
    (is_list && at > 0).then_some((Token::Word { text: word, quoted }, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_makes_the_script_unknown() {
        let known = [
            "echo hello",
            "echo 'a | b' && sleep 3600",
            "while true; do echo hi; sleep 1; done",
            "i=0; while true; do echo \"$i: $(date)\"; i=$((i+1)); sleep 1; done",
            "for x in 1 2 3\ndo\n  echo $x\ndone\nexit 3",
            "if [ $(expr ${JOB_COMPLETION_INDEX} % 2) -ne 0 ]; then exit 1 ; else exit 0 ; fi",
            "if [[ -r /data/foo ]] ; then exit 0 ; else touch /data/foo ; exit 1 ; fi",
            "while ! test -e /tmp/x; do sleep 1; done; echo done",
            "until [ -f /go ]\ndo\nsleep 1\ndone",
            "exit $(( $RANDOM / 16384 ))",
            "",
        ];
        for script in known {
            assert!(Script::parse(script).is_some(), "{script}");
        }
        let unknown = [
            "nginx",
            "echo a > /tmp/x",
            "echo a | cat",
            "echo $(cat /x)",
            "sleep",
            "while true; do echo",
            "echo 'open",
            "sleep 1 &",
            "a && ",
            "echo `date`",
            "exit x",
            "if true; then echo",
            "if true; echo; fi",
            "[ a b c d ]",
            "test -e /x && cat /x",
            "done",
        ];
        for script in unknown {
            assert!(Script::parse(script).is_none(), "{script}");
        }
    }
}
