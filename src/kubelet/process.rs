//! What a container's process does, as far as its command tells: how long it runs, how it ends, what it says.

use std::collections::BTreeMap;
use std::time::Duration;

use super::images;
use super::shell::{Action, Node, Script, When};
use crate::apis::views::pod::Container;

/// Steps after which a script is taken to run for ever, or its older output for lost.
const MAX_STEPS: usize = 200_000;

/// A line that was said, and how long after the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// After the start of the process.
    pub after: Duration,
    /// Without its end. `$(date)` and `$(hostname)` are still to be filled in.
    pub text: String,
}

/// A process that was played until it ended, or as far as was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// When it ended and with what code; nothing while it runs.
    pub end: Option<(Duration, i32)>,
    /// What it said.
    pub lines: Vec<Line>,
}

/// Whether what the container's command does is known.
pub fn is_known(container: &Container) -> bool {
    script(container).is_some()
}

/// Plays the container's command for `until`; nothing when it is not known.
pub fn play(container: &Container, until: Duration) -> Option<Played> {
    let script = script(container)?;
    let mut player = Player { until, steps_left: MAX_STEPS, ..Player::default() };
    let flow = player.list(&script.nodes);
    player.flush();
    let code = match flow {
        Flow::OutOfTime => return Some(Played { end: None, lines: player.lines }),
        Flow::Exit(code) => code,
        Flow::Go => player.status,
    };
    Some(Played { end: Some((player.elapsed, code)), lines: player.lines })
}

/// When and how the container's process ends by itself, as far as is known.
pub fn end(container: &Container) -> Option<(Duration, i32)> {
    play(container, Duration::MAX)?.end
}

fn script(container: &Container) -> Option<Script> {
    let words: Vec<String> = container.command.iter().chain(&container.args).cloned().collect();
    let program = words.first().map(|program| program.rsplit('/').next().unwrap_or(program));
    if container.command.is_empty() && !images::runs_a_shell(&container.image) {
        return (images::base_name(&container.image) == "hello-world").then(|| Script { nodes: vec![] });
    }
    match (program, words.get(1..).unwrap_or_default()) {
        // A shell that nobody types into reads the end of its input at once.
        (None, _) | (Some("sh" | "bash" | "ash"), []) => (!container.stdin).then(|| Script { nodes: vec![] }),
        (Some("sh" | "bash" | "ash"), [flags, text]) if is_command_flag(flags) => Script::parse(text),
        (Some("sh" | "bash" | "ash"), _) => None,
        (Some(program), arguments) => {
            let command: Vec<String> =
                std::iter::once(program.to_owned()).chain(arguments.iter().cloned()).collect();
            Script::of_command(&command)
        }
    }
}

/// `-c`, `-ec`, `-exc` ...
fn is_command_flag(flag: &str) -> bool {
    flag.starts_with('-') && flag.ends_with('c') && flag[1..].chars().all(|c| "cexlu".contains(c))
}

/// What comes after a command.
enum Flow {
    Go,
    Exit(i32),
    OutOfTime,
}

#[derive(Default)]
struct Player {
    until: Duration,
    steps_left: usize,
    elapsed: Duration,
    status: i32,
    variables: BTreeMap<String, String>,
    unfinished: String,
    lines: Vec<Line>,
}

impl Player {
    fn list(&mut self, nodes: &[Node]) -> Flow {
        for node in nodes {
            let wanted = match node.when {
                When::Always => true,
                When::IfSucceeded => self.status == 0,
                When::IfFailed => self.status != 0,
            };
            if !wanted {
                continue;
            }
            match self.action(&node.action) {
                Flow::Go => {}
                flow => return flow,
            }
        }
        Flow::Go
    }

    fn action(&mut self, action: &Action) -> Flow {
        if self.steps_left == 0 {
            return Flow::OutOfTime;
        }
        self.steps_left -= 1;
        match action {
            Action::Exit(code) => return Flow::Exit(*code),
            Action::Return(code) => self.status = *code,
            Action::Sleep(time) => return self.sleep(*time),
            Action::Echo { words, newline } => self.echo(words, *newline),
            Action::Assign(name, value) => {
                let value = self.expand(value);
                self.variables.insert(name.clone(), value);
            }
            Action::Forever(body) => return self.forever(body),
            Action::For(variable, values, body) => {
                for value in values {
                    let value = self.expand(value);
                    self.variables.insert(variable.clone(), value);
                    match self.list(body) {
                        Flow::Go => {}
                        flow => return flow,
                    }
                }
            }
        }
        Flow::Go
    }

    fn sleep(&mut self, time: Duration) -> Flow {
        self.status = 0;
        self.elapsed = self.elapsed.saturating_add(time);
        if self.elapsed > self.until { Flow::OutOfTime } else { Flow::Go }
    }

    fn forever(&mut self, body: &[Node]) -> Flow {
        while !body.is_empty() && self.steps_left > 0 {
            match self.list(body) {
                Flow::Go => {}
                flow => return flow,
            }
        }
        Flow::OutOfTime
    }

    fn echo(&mut self, words: &[String], newline: bool) {
        self.status = 0;
        let words: Vec<String> = words.iter().map(|word| self.expand(word)).collect();
        self.unfinished.push_str(&words.join(" "));
        if newline {
            self.flush_line();
        }
    }

    fn flush(&mut self) {
        if !self.unfinished.is_empty() {
            self.flush_line();
        }
    }

    fn flush_line(&mut self) {
        let text = std::mem::take(&mut self.unfinished);
        for line in text.split('\n') {
            self.lines.push(Line { after: self.elapsed, text: line.to_owned() });
        }
    }

    /// Fills in variables and sums; `$(date)` and `$(hostname)` stay for whoever knows them.
    fn expand(&self, word: &str) -> String {
        let (mut out, mut rest) = (String::new(), word);
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(sum) = rest.strip_prefix("((") {
                let end = sum.find("))").unwrap_or(sum.len());
                out.push_str(&self.sum(&sum[..end]).to_string());
                rest = sum.get(end + 2..).unwrap_or_default();
            } else if rest.starts_with('(') {
                out.push('$');
            } else {
                let braced = rest.starts_with('{');
                let name = rest.trim_start_matches('{');
                let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
                out.push_str(self.variable(&name[..end]));
                rest = &name[end..];
                rest = if braced { rest.strip_prefix('}').unwrap_or(rest) } else { rest };
            }
        }
        out.push_str(rest);
        out.replace('\u{1}', "$")
    }

    fn variable(&self, name: &str) -> &str {
        if name == "HOSTNAME" {
            return "$(hostname)";
        }
        self.variables.get(name).map_or("", String::as_str)
    }

    /// Sums and differences of numbers and variables.
    fn sum(&self, text: &str) -> i64 {
        let (mut total, mut sign) = (0i64, 1i64);
        for part in text.replace('+', " + ").replace('-', " - ").split_whitespace() {
            match part {
                "+" => sign = 1,
                "-" => sign = -1,
                term => {
                    let name = term.trim_start_matches('$');
                    let value: i64 =
                        term.parse().unwrap_or_else(|_| self.variable(name).parse().unwrap_or(0));
                    total = total.saturating_add(value.saturating_mul(sign));
                }
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn container(image: &str, command: &[&str]) -> Container {
        serde_json::from_value(json!({"name": "a", "image": image, "command": command})).unwrap()
    }

    #[test]
    fn commands_end_as_they_say() {
        type Case = (&'static str, &'static [&'static str], Option<(u64, i32)>);
        let cases: &[Case] = &[
            ("busybox", &["sleep", "5"], Some((5, 0))),
            ("busybox", &["/bin/sh", "-c", "sleep 2m; exit 3"], Some((120, 3))),
            ("busybox", &["sh", "-c", "false || sleep 1 && exit 7"], Some((1, 7))),
            ("busybox", &["sh", "-c", "while true; do sleep 1; done"], None),
            ("busybox", &["sh", "-c", "for i in 1 2 3; do sleep $i; done"], None),
            ("busybox", &["sh", "-c", "for i in 1 2 3; do sleep 2; done"], Some((6, 0))),
            ("busybox", &["sh", "-c", "false"], Some((0, 1))),
            ("busybox", &["sleep", "infinity"], None),
            ("busybox", &[], Some((0, 0))),
            ("nginx", &[], None),
            ("nginx", &["true"], Some((0, 0))),
            ("hello-world", &[], Some((0, 0))),
        ];
        for (image, command, ends) in cases {
            let ends = ends.map(|(seconds, code)| (Duration::from_secs(seconds), code));
            assert_eq!(end(&container(image, command)), ends, "{image} {command:?}");
        }
    }

    #[test]
    fn loops_say_what_they_said_so_far() {
        let script = "i=1; while true; do echo \"line $i of '$HOSTNAME'\"; i=$((i+1)); sleep 1; done";
        let played = play(&container("busybox", &["sh", "-c", script]), Duration::from_secs(2)).unwrap();
        let lines: Vec<(u64, &str)> =
            played.lines.iter().map(|line| (line.after.as_secs(), line.text.as_str())).collect();
        let name = "of '$(hostname)'";
        let expected =
            [(0, format!("line 1 {name}")), (1, format!("line 2 {name}")), (2, format!("line 3 {name}"))];
        assert_eq!(played.end, None);
        assert_eq!(lines, expected.iter().map(|(at, text)| (*at, text.as_str())).collect::<Vec<_>>());
    }
}
