//! Plays a script: what a shell would do with it, on a clock of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use super::bounds::{BYTES_PER_STEP, Fault, MAX_DEPTH, MAX_MEMORY_BYTES, MAX_STEPS, MAX_VARIABLES};
use super::commands;
use super::disk::Disk;
use super::file_system::File;
use super::pattern;
use super::process::{Change, Line};
use super::runtime::after;
use super::shell::{Action, Command, List, Node, When, Word};
use super::surroundings::Surroundings;
use super::variables::Variables;
use apimachinery::time::Time;

/// What comes after a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flow {
    Go,
    Exit(i32),
    /// Out of the innermost loop, or on with it.
    Break,
    Continue,
    OutOfTime,
    /// It went over a bound: [`Player::fault`].
    Stopped,
}

/// Where output goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sink {
    /// The container's log.
    Log,
    Nowhere,
    File(String),
    /// What a pipe or a substitution gathers.
    Gathered(usize),
}

pub(super) struct Player<'a> {
    pub(super) around: &'a Surroundings,
    /// How far it is played.
    pub(super) until: Duration,
    /// Whether only the end is asked for: a loop without a way out needs no playing then.
    is_for_end: bool,
    pub(super) steps_left: usize,
    /// Less than a step.
    unpaid_bytes: usize,
    /// What was left of them when time last went by.
    steps_at_pause: usize,
    /// How many lists of commands are being played, each within the one before.
    depth: usize,
    pub(super) fault: Option<Fault>,
    pub(super) elapsed: Duration,
    pub(super) status: i32,
    pub(super) variables: Variables,
    pub(super) folder: String,
    pub(super) standard_input: Option<String>,
    /// Something was to be read that is not there.
    pub(super) is_waiting: bool,
    pub(super) out: Sink,
    pub(super) errors: Sink,
    pub(super) gathered: Vec<String>,
    /// What was written, and `None` where something was removed.
    pub(super) written: BTreeMap<String, Option<File>>,
    pub(super) disk: Disk,
    /// What was written, from time to time, when that is asked for.
    pub(super) snapshots: Option<Vec<(Duration, Vec<Change>)>>,
    pub(super) has_changed: bool,
    pub(super) unfinished: String,
    pub(super) lines: Vec<Line>,
    pub(super) log_bytes: usize,
    /// The pattern that `grep` looked for last.
    pub(super) last_pattern: Option<(String, regex::Regex)>,
    /// Exits at the first failure (`set -e`).
    pub(super) stops_at_failure: bool,
}

impl<'a> Player<'a> {
    /// Plays until `until`; without, until the end. `files` are there from the start.
    pub(super) fn new(around: &'a Surroundings, until: Option<Duration>, files: Vec<Change>) -> Player<'a> {
        let mut player = Player {
            around,
            until: until.unwrap_or(Duration::MAX),
            is_for_end: until.is_none(),
            steps_left: MAX_STEPS,
            unpaid_bytes: 0,
            steps_at_pause: MAX_STEPS,
            depth: 0,
            fault: None,
            elapsed: Duration::ZERO,
            status: 0,
            variables: Variables::new(around.variables.clone()),
            folder: around.folder.clone(),
            standard_input: None,
            is_waiting: false,
            out: Sink::Log,
            errors: Sink::Log,
            gathered: vec![],
            written: BTreeMap::new(),
            disk: Disk::of(around),
            snapshots: None,
            has_changed: false,
            unfinished: String::new(),
            lines: vec![],
            log_bytes: 0,
            last_pattern: None,
            stops_at_failure: false,
        };
        for (path, file) in files {
            player.put_file(path, file);
        }
        player
    }

    /// With only so many steps.
    pub(super) fn with_steps(mut self, steps: usize) -> Player<'a> {
        (self.steps_left, self.steps_at_pause) = (steps, MAX_STEPS);
        self
    }

    /// Also notes what is written when.
    pub(super) fn with_snapshots(mut self) -> Player<'a> {
        self.snapshots = Some(vec![]);
        self
    }

    /// What is said goes nowhere but into [`Player::said`].
    pub(super) fn gathering(mut self) -> Player<'a> {
        (self.out, self.errors) = (Sink::Gathered(0), Sink::Gathered(1));
        self.gathered = vec![String::new(), String::new()];
        self
    }

    /// The standard output and the standard error.
    pub(super) fn said(&mut self) -> (String, String) {
        let mut said = std::mem::take(&mut self.gathered).into_iter();
        (said.next().unwrap_or_default(), said.next().unwrap_or_default())
    }

    /// Stops the script.
    pub(super) fn stop(&mut self, fault: Fault) -> Flow {
        self.fault.get_or_insert(fault);
        Flow::Stopped
    }

    /// Uses up steps.
    pub(super) fn spend(&mut self, steps: usize) -> Flow {
        if self.fault.is_some() {
            return Flow::Stopped;
        }
        self.steps_left = self.steps_left.saturating_sub(steps);
        match self.steps_left {
            0 if self.steps_at_pause >= MAX_STEPS / 2 => self.stop(Fault::Steps),
            0 => Flow::OutOfTime,
            _ => Flow::Go,
        }
    }

    /// Uses up what it takes to read or to make so many bytes. Whether there was enough.
    pub(super) fn handle(&mut self, bytes: usize) -> bool {
        let due = self.unpaid_bytes.saturating_add(bytes);
        self.unpaid_bytes = due % BYTES_PER_STEP;
        self.spend(due / BYTES_PER_STEP) == Flow::Go
    }

    /// Sets a variable.
    pub(super) fn set(&mut self, name: &str, value: String) {
        let copied = if self.variables.is_shared() { self.variables.bytes() } else { 0 };
        if !self.handle(copied + value.len()) {
            return;
        }
        self.variables.set(name, value);
        if self.variables.bytes() > MAX_MEMORY_BYTES || self.variables.count() > MAX_VARIABLES {
            self.stop(Fault::Memory);
        }
    }

    /// Takes variables away; a subshell's are copied first, as for [`Player::set`].
    pub(super) fn unset(&mut self, names: &[&str]) {
        let copied = if self.variables.is_shared() { self.variables.bytes() } else { 0 };
        if self.handle(copied) {
            names.iter().for_each(|name| self.variables.remove(name));
        }
    }

    /// Plays one command after the other.
    pub(super) fn list(&mut self, list: &List) -> Flow {
        if self.depth == MAX_DEPTH {
            return self.stop(Fault::Depth);
        }
        self.depth += 1;
        let flow = self.nodes(list);
        self.depth -= 1;
        flow
    }

    fn nodes(&mut self, list: &List) -> Flow {
        for node in list {
            let wanted = match node.when {
                When::Always => true,
                When::IfSucceeded => self.status == 0,
                When::IfFailed => self.status != 0,
            };
            if !wanted {
                continue;
            }
            match self.node(node) {
                Flow::Go => {}
                flow => return flow,
            }
        }
        Flow::Go
    }

    fn node(&mut self, node: &Node) -> Flow {
        let flow = match node.commands.as_slice() {
            [command] => self.command(command),
            commands => self.pipeline(commands),
        };
        if node.is_negated {
            self.status = i32::from(self.status == 0);
        }
        flow
    }

    /// One after the other, each given what the one before said.
    fn pipeline(&mut self, commands: &[Command]) -> Flow {
        let (variables, input) = (self.variables.clone(), self.standard_input.take());
        let mut flow = Flow::Go;
        self.standard_input = input.clone();
        for (at, command) in commands.iter().enumerate() {
            let is_last = at + 1 == commands.len();
            let (said, next) = match is_last {
                true => (None, self.command(command)),
                false => {
                    let (said, flow) = self.gather(|player| player.command(command));
                    (Some(said), flow)
                }
            };
            if said.is_some() {
                self.standard_input = said;
            }
            if matches!(next, Flow::OutOfTime | Flow::Stopped) {
                flow = next;
                break;
            }
        }
        (self.variables, self.standard_input) = (variables, input);
        flow
    }

    /// What `play` says, instead of its going to the output.
    pub(super) fn gather(&mut self, play: impl FnOnce(&mut Player<'a>) -> Flow) -> (String, Flow) {
        let out = std::mem::replace(&mut self.out, Sink::Gathered(self.gathered.len()));
        self.gathered.push(String::new());
        let flow = play(self);
        self.out = out;
        (self.gathered.pop().unwrap_or_default(), flow)
    }

    fn command(&mut self, command: &Command) -> Flow {
        match self.spend(1) {
            Flow::Go => {}
            flow => return flow,
        }
        let flow = match command.redirects.is_empty() {
            true => self.action(&command.action),
            false => self.redirected(command),
        };
        let fails = matches!(command.action, Action::Simple(..)) && self.status != 0;
        match flow {
            _ if self.fault.is_some() => Flow::Stopped,
            Flow::Go if fails && self.stops_at_failure => Flow::Exit(self.status),
            flow => flow,
        }
    }

    fn redirected(&mut self, command: &Command) -> Flow {
        let before = (self.out.clone(), self.errors.clone(), self.standard_input.clone());
        self.handle(self.standard_input.as_ref().map_or(0, String::len));
        let flow = match command.redirects.iter().all(|redirect| self.redirect(redirect)) {
            true => self.action(&command.action),
            false => {
                self.status = 1;
                Flow::Go
            }
        };
        (self.out, self.errors, self.standard_input) = before;
        flow
    }

    fn action(&mut self, action: &Action) -> Flow {
        match action {
            Action::Simple(assignments, words) => self.simple(assignments, words),
            Action::Group(list) => self.list(list),
            Action::Subshell(list) => {
                let (variables, folder) = (self.variables.clone(), self.folder.clone());
                let flow = self.list(list);
                (self.variables, self.folder) = (variables, folder);
                match flow {
                    Flow::Exit(code) => {
                        self.status = code;
                        Flow::Go
                    }
                    flow => flow,
                }
            }
            Action::If(branches) => self.branch(branches),
            Action::While { condition, wanted, body, is_endless } => {
                self.repeat(condition, *wanted, body, *is_endless && self.is_for_end)
            }
            Action::For(variable, values, body) => self.for_each(variable, values, body),
            Action::Case(subject, arms) => self.case(subject, arms),
        }
    }

    fn simple(&mut self, assignments: &[(String, Word)], words: &[Word]) -> Flow {
        for (name, word) in assignments {
            self.status = 0;
            let value = self.text(word);
            self.set(name, value);
        }
        let words: Vec<String> = words.iter().flat_map(|word| self.fields(word)).collect();
        match words.split_first() {
            _ if self.fault.is_some() => Flow::Stopped,
            None => Flow::Go,
            Some((program, arguments)) => {
                self.status = 0;
                commands::run(self, program, arguments)
            }
        }
    }

    fn branch(&mut self, branches: &[(List, List)]) -> Flow {
        for (condition, body) in branches {
            self.status = 0;
            match self.tested(condition) {
                Flow::Go if self.status == 0 => return self.list(body),
                Flow::Go => {}
                flow => return flow,
            }
        }
        self.status = 0;
        Flow::Go
    }

    /// A condition may fail.
    fn tested(&mut self, condition: &List) -> Flow {
        let stops = std::mem::replace(&mut self.stops_at_failure, false);
        let flow = self.list(condition);
        self.stops_at_failure = stops;
        flow
    }

    /// Of a loop that is endless two rounds are enough to know what it does.
    fn repeat(&mut self, condition: &List, wanted: bool, body: &List, is_endless: bool) -> Flow {
        let mut rounds = 0;
        while self.spend(1) == Flow::Go {
            match self.tested(condition) {
                Flow::Go if (self.status == 0) != wanted => {
                    self.status = 0;
                    return Flow::Go;
                }
                Flow::Go => {}
                flow => return flow,
            }
            match self.list(body) {
                Flow::Go | Flow::Continue => {}
                Flow::Break => return Flow::Go,
                flow => return flow,
            }
            rounds += 1;
            if is_endless && rounds > 1 {
                return Flow::OutOfTime;
            }
        }
        self.spend(0)
    }

    fn for_each(&mut self, variable: &str, values: &[Word], body: &List) -> Flow {
        let values: Vec<String> = values.iter().flat_map(|value| self.fields(value)).collect();
        for value in values {
            self.set(variable, value);
            match self.spend(1) {
                Flow::Go => {}
                flow => return flow,
            }
            match self.list(body) {
                Flow::Go | Flow::Continue => {}
                Flow::Break => break,
                flow => return flow,
            }
        }
        Flow::Go
    }

    fn case(&mut self, subject: &Word, arms: &[(Vec<Word>, List)]) -> Flow {
        let subject = self.text(subject);
        for (patterns, body) in arms {
            for pattern in patterns {
                let pattern = self.text(pattern);
                if self.matches(&pattern, &subject) {
                    return self.list(body);
                }
            }
        }
        Flow::Go
    }

    /// A comparison costs as much as it may take at worst: a star makes it the product of the lengths.
    fn matches(&mut self, pattern: &str, text: &str) -> bool {
        let work = if pattern.contains('*') { pattern.len().saturating_mul(text.len()) } else { text.len() };
        self.handle(work) && pattern::compare(pattern, text).0
    }

    /// A step of a program that does something again and again, and the pause after it.
    pub(super) fn pause(&mut self, time: Duration) -> Flow {
        match self.spend(1) {
            Flow::Go => self.sleep(time),
            flow => flow,
        }
    }

    /// The time that a clock shows; the end of time when that is later still.
    pub(super) fn now(&self) -> Time {
        after(self.around.started_at, self.elapsed)
    }

    /// Time goes by.
    pub(super) fn sleep(&mut self, time: Duration) -> Flow {
        if !time.is_zero() {
            self.take_snapshot();
            self.steps_at_pause = self.steps_left;
        }
        self.elapsed = self.elapsed.saturating_add(time);
        let is_over = self.elapsed > self.until || self.elapsed == Duration::MAX;
        if is_over { Flow::OutOfTime } else { Flow::Go }
    }
}
