//! What a container's process does, as far as its command tells: how long it runs, how it ends, what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::images;
use super::shell::{Action, Condition, Node, Script, When};
use super::surroundings::Surroundings;
use crate::apis::views::pod::Container;

/// So many runs before the last one are played to know what they left.
const MAX_EARLIER_RUNS: i64 = 8;
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

/// Plays the container's command for `until`; nothing when it is not known. What earlier runs left in volumes
/// is there.
pub fn play(container: &Container, around: &Surroundings, until: Duration) -> Option<Played> {
    let script = script(container)?;
    let mut files = BTreeSet::new();
    for _ in 0..around.restart_count.clamp(0, MAX_EARLIER_RUNS) {
        let mut player = Player::new(around, files, Duration::MAX);
        player.list(&script.nodes);
        files = player.files;
        files.retain(|file| around.mounts.iter().any(|mount| is_below(mount, file)));
    }
    let mut player = Player::new(around, files, until);
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
pub fn end(container: &Container, around: &Surroundings) -> Option<(Duration, i32)> {
    play(container, around, Duration::MAX)?.end
}

fn is_below(mount: &str, file: &str) -> bool {
    file.strip_prefix(mount.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

/// How long after its start a container passes its readiness probe at the earliest; never, when the probe
/// is the command `false`.
pub fn ready_after(container: &Container) -> Option<Duration> {
    let Some(probe) = &container.readiness_probe else { return Some(Duration::ZERO) };
    let program = probe.exec.as_ref().and_then(|exec| exec.command.first());
    if program.is_some_and(|program| program.rsplit('/').next() == Some("false")) {
        return None;
    }
    Some(Duration::from_secs(u64::try_from(probe.initial_delay_seconds).unwrap_or(0)))
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
    files: BTreeSet<String>,
    unfinished: String,
    lines: Vec<Line>,
}

impl Player {
    fn new(around: &Surroundings, files: BTreeSet<String>, until: Duration) -> Player {
        let variables = around.variables.clone();
        Player { until, files, variables, steps_left: MAX_STEPS, ..Player::default() }
    }

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
            Action::Exit(code) => return Flow::Exit(self.number(code) & 0xff),
            Action::Test(condition) => self.status = i32::from(!self.holds(condition)),
            Action::Touch(files) => {
                let files: Vec<String> = files.iter().map(|file| self.expand(file)).collect();
                self.files.extend(files);
                self.status = 0;
            }
            Action::Remove(files) => {
                let files: Vec<String> = files.iter().map(|file| self.expand(file)).collect();
                self.files.retain(|file| !files.contains(file));
                self.status = 0;
            }
            Action::If(branches) => return self.branch(branches),
            Action::While { condition, wanted, body } => return self.repeat(condition, *wanted, body),
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

    fn branch(&mut self, branches: &[(Vec<Node>, Vec<Node>)]) -> Flow {
        for (condition, body) in branches {
            self.status = 0;
            match self.list(condition) {
                Flow::Go if self.status == 0 => return self.list(body),
                Flow::Go => {}
                flow => return flow,
            }
        }
        self.status = 0;
        Flow::Go
    }

    fn repeat(&mut self, condition: &[Node], wanted: bool, body: &[Node]) -> Flow {
        while self.steps_left > 0 {
            match self.list(condition) {
                Flow::Go if (self.status == 0) != wanted => {
                    self.status = 0;
                    return Flow::Go;
                }
                Flow::Go => {}
                flow => return flow,
            }
            match self.list(body) {
                Flow::Go => {}
                flow => return flow,
            }
        }
        Flow::OutOfTime
    }

    fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Not(condition) => !self.holds(condition),
            Condition::IsEmpty(word) => self.expand(word).is_empty(),
            Condition::IsFile(path) => self.files.contains(&self.expand(path)),
            Condition::Compare(a, operator, b) => {
                let (a, b) = (self.expand(a), self.expand(b));
                let [x, y] = [&a, &b].map(|text| text.trim().parse::<i64>().unwrap_or(0));
                match operator.as_str() {
                    "!=" => a != b,
                    "-eq" => x == y,
                    "-ne" => x != y,
                    "-lt" => x < y,
                    "-le" => x <= y,
                    "-gt" => x > y,
                    "-ge" => x >= y,
                    _ => a == b,
                }
            }
        }
    }

    fn number(&self, word: &str) -> i32 {
        self.expand(word).trim().parse().unwrap_or(2)
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
            } else if let Some(after) = rest.strip_prefix('?') {
                out.push_str(&self.status.to_string());
                rest = after;
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

    /// Of numbers and variables, with `+ - * / %`.
    fn sum(&self, text: &str) -> i64 {
        let mut spaced = text.replace(['$', '{', '}'], "");
        for operator in ["+", "-", "*", "/", "%"] {
            spaced = spaced.replace(operator, &format!(" {operator} "));
        }
        let value =
            |term: &str| -> i64 { term.parse().unwrap_or_else(|_| self.variable(term).parse().unwrap_or(0)) };
        let (mut total, mut product, mut sign, mut operator) = (0i64, 0i64, 1i64, "+");
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
            ("busybox", &["sh", "-c", "if [ $((7 % 4 * 2)) -eq 6 ]; then exit 3; fi"], Some((0, 3))),
            ("busybox", &["sh", "-c", "i=0; while [ $i -lt 3 ]; do i=$((i+1)); sleep 2; done"], Some((6, 0))),
            ("busybox", &["sh", "-c", "false; exit $?"], Some((0, 1))),
            ("busybox", &["sh", "-c", "until test -e /x; do sleep 1; touch /x; done; exit 4"], Some((1, 4))),
            ("perl:5.34.0", &["perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"], Some((1, 0))),
        ];
        for (image, command, ends) in cases {
            let ends = ends.map(|(seconds, code)| (Duration::from_secs(seconds), code));
            let around = Surroundings::default();
            assert_eq!(end(&container(image, command), &around), ends, "{image} {command:?}");
        }
    }

    #[test]
    fn loops_say_what_they_said_so_far() {
        let script = "i=1; while true; do echo \"line $i of '$HOSTNAME'\"; i=$((i+1)); sleep 1; done";
        let (container, around) = (container("busybox", &["sh", "-c", script]), Surroundings::default());
        let played = play(&container, &around, Duration::from_secs(2)).unwrap();
        let lines: Vec<(u64, &str)> =
            played.lines.iter().map(|line| (line.after.as_secs(), line.text.as_str())).collect();
        let name = "of '$(hostname)'";
        let expected =
            [(0, format!("line 1 {name}")), (1, format!("line 2 {name}")), (2, format!("line 3 {name}"))];
        assert_eq!(played.end, None);
        assert_eq!(lines, expected.iter().map(|(at, text)| (*at, text.as_str())).collect::<Vec<_>>());
    }

    #[test]
    fn scripts_go_by_their_surroundings() {
        let odd = "if [ $(expr ${INDEX} % 2) -ne 0 ]; then exit 1 ; else exit 0 ; fi";
        let once = "if [[ -r /data/foo ]] ; then exit 0 ; else touch /data/foo ; exit 1 ; fi";
        let code = |script: &str, index: &str, restart_count: i64, mount: &str| {
            let variables = BTreeMap::from([("INDEX".to_owned(), index.to_owned())]);
            let around = Surroundings { variables, restart_count, mounts: vec![mount.to_owned()] };
            end(&container("busybox", &["sh", "-c", script]), &around).unwrap().1
        };
        assert_eq!([code(odd, "2", 0, "/"), code(odd, "3", 0, "/")], [0, 1]);
        assert_eq!([code(once, "", 0, "/data"), code(once, "", 1, "/data")], [1, 0]);
        // What is not in a volume is lost.
        assert_eq!(code(once, "", 3, "/other"), 1);
    }
}
