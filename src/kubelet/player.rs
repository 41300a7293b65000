//! Plays a script: what a shell would do with it, on a clock of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use super::commands;
use super::file_system::{self, File, Tree};
use super::process::Line;
use super::shell::{Action, Command, List, Node, Redirect, Target, When, Word};
use super::surroundings::Surroundings;

/// Steps after which a script is taken to run for ever, or its older output for lost.
const MAX_STEPS: usize = 200_000;
/// A file or the output of a command grows no further.
const MAX_BYTES: usize = 1 << 20;
/// So often it is noted that the files changed.
const MAX_CHANGES: usize = 256;

/// What comes after a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flow {
    Go,
    Exit(i32),
    /// Out of the innermost loop, or on with it.
    Break,
    Continue,
    OutOfTime,
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
    until: Duration,
    /// Whether only the end is asked for: a loop without a way out needs no playing then.
    is_for_end: bool,
    steps_left: usize,
    pub(super) elapsed: Duration,
    pub(super) status: i32,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) folder: String,
    pub(super) standard_input: Option<String>,
    /// Something was to be read that is not there.
    pub(super) is_waiting: bool,
    out: Sink,
    errors: Sink,
    gathered: Vec<String>,
    /// What was written, and `None` where something was removed.
    pub(super) written: BTreeMap<String, Option<File>>,
    /// When files changed.
    pub(super) changes: Vec<Duration>,
    unfinished: String,
    pub(super) lines: Vec<Line>,
    /// Exits at the first failure (`set -e`).
    pub(super) stops_at_failure: bool,
}

impl<'a> Player<'a> {
    /// Plays until `until`; without, until the end.
    pub(super) fn new(around: &'a Surroundings, until: Option<Duration>) -> Player<'a> {
        Player {
            around,
            until: until.unwrap_or(Duration::MAX),
            is_for_end: until.is_none(),
            steps_left: MAX_STEPS,
            elapsed: Duration::ZERO,
            status: 0,
            variables: around.variables.clone(),
            folder: around.folder.clone(),
            standard_input: None,
            is_waiting: false,
            out: Sink::Log,
            errors: Sink::Log,
            gathered: vec![],
            written: BTreeMap::new(),
            changes: vec![],
            unfinished: String::new(),
            lines: vec![],
            stops_at_failure: false,
        }
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

    pub(super) fn list(&mut self, list: &List) -> Flow {
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
            if next == Flow::OutOfTime {
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
        if self.steps_left == 0 {
            return Flow::OutOfTime;
        }
        self.steps_left -= 1;
        let before = (self.out.clone(), self.errors.clone(), self.standard_input.clone());
        let is_redirected = !command.redirects.is_empty();
        let flow = match command.redirects.iter().all(|redirect| self.redirect(redirect)) {
            true => self.action(&command.action),
            false => {
                self.status = 1;
                Flow::Go
            }
        };
        if is_redirected {
            (self.out, self.errors, self.standard_input) = before;
        }
        let fails = matches!(command.action, Action::Simple(..)) && self.status != 0;
        if flow == Flow::Go && fails && self.stops_at_failure { Flow::Exit(self.status) } else { flow }
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
            Action::While { condition, wanted, body } => self.repeat(condition, *wanted, body),
            Action::For(variable, values, body) => self.for_each(variable, values, body),
            Action::Case(subject, arms) => self.case(subject, arms),
        }
    }

    fn simple(&mut self, assignments: &[(String, Word)], words: &[Word]) -> Flow {
        for (name, word) in assignments {
            self.status = 0;
            let value = self.text(word);
            self.variables.insert(name.clone(), value);
        }
        let words: Vec<String> = words.iter().flat_map(|word| self.fields(word)).collect();
        match words.split_first() {
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

    fn repeat(&mut self, condition: &List, wanted: bool, body: &List) -> Flow {
        let mut rounds = 0;
        while self.steps_left > 0 {
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
            if self.is_for_end && rounds > 1 && is_endless(condition) && !has_way_out(body) {
                return Flow::OutOfTime;
            }
        }
        Flow::OutOfTime
    }

    fn for_each(&mut self, variable: &str, values: &[Word], body: &List) -> Flow {
        let values: Vec<String> = values.iter().flat_map(|value| self.fields(value)).collect();
        for value in values {
            self.variables.insert(variable.to_owned(), value);
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
            let patterns: Vec<String> = patterns.iter().map(|pattern| self.text(pattern)).collect();
            if patterns.iter().any(|pattern| commands::is_like(pattern, &subject)) {
                return self.list(body);
            }
        }
        Flow::Go
    }

    /// Whether it could be done.
    fn redirect(&mut self, redirect: &Redirect) -> bool {
        let sink = match &redirect.target {
            Target::Descriptor(1) => self.out.clone(),
            Target::Descriptor(2) => self.errors.clone(),
            Target::Descriptor(_) => return true,
            Target::Text(word) => {
                self.standard_input = Some(format!("{}\n", self.text(word)));
                return true;
            }
            Target::Read(word) => {
                let path = self.text(word);
                let Some(file) = self.file(&path) else {
                    self.complain(&format!("/bin/sh: can't open {path}: no such file\n"));
                    return false;
                };
                self.standard_input = Some(file.text());
                return true;
            }
            Target::Write(word) | Target::Append(word) => {
                let path = self.text(word);
                match path.as_str() {
                    "/dev/stdout" | "/proc/1/fd/1" | "/dev/stderr" | "/proc/1/fd/2" => Sink::Log,
                    "/dev/null" => Sink::Nowhere,
                    _ => {
                        let keeps = matches!(redirect.target, Target::Append(_));
                        let old = keeps.then(|| self.file(&path)).flatten();
                        let content = old.map_or_else(Vec::new, |file| file.content.to_vec());
                        if let Err(why) = self.write_file(&path, content) {
                            self.complain(&format!("/bin/sh: can't create {path}: {why}\n"));
                            return false;
                        }
                        Sink::File(path)
                    }
                }
            }
        };
        match redirect.descriptor {
            2 => self.errors = sink,
            _ => self.out = sink,
        }
        true
    }

    /// To the standard output.
    pub(super) fn say(&mut self, text: &str) {
        self.put(&self.out.clone(), text);
    }

    /// To the standard error.
    pub(super) fn complain(&mut self, text: &str) {
        self.put(&self.errors.clone(), text);
    }

    fn put(&mut self, sink: &Sink, text: &str) {
        match sink {
            Sink::Nowhere => {}
            Sink::Gathered(at) => {
                let gathered = self.gathered.get_mut(*at).filter(|gathered| gathered.len() < MAX_BYTES);
                gathered.into_iter().for_each(|gathered| gathered.push_str(text));
            }
            Sink::File(path) => {
                let mut content = self.file(path).map_or_else(Vec::new, |file| file.content.to_vec());
                if content.len() < MAX_BYTES {
                    content.extend_from_slice(text.as_bytes());
                    let _ = self.write_file(path, content);
                }
            }
            Sink::Log => {
                let mut pieces = text.split('\n');
                self.unfinished.push_str(pieces.next().unwrap_or_default());
                for piece in pieces {
                    self.finish_line();
                    self.unfinished.push_str(piece);
                }
            }
        }
    }

    /// What was said without an end of its line.
    pub(super) fn flush(&mut self) {
        if !self.unfinished.is_empty() {
            self.finish_line();
        }
    }

    fn finish_line(&mut self) {
        let text = std::mem::take(&mut self.unfinished);
        self.lines.push(Line { after: self.elapsed, text });
    }

    /// Time goes by.
    pub(super) fn sleep(&mut self, time: Duration) -> Flow {
        self.elapsed = self.elapsed.saturating_add(time);
        let is_over = self.elapsed > self.until || self.elapsed == Duration::MAX;
        if is_over { Flow::OutOfTime } else { Flow::Go }
    }

    /// All that is to be read.
    pub(super) fn input(&mut self) -> String {
        self.is_waiting |= self.standard_input.is_none();
        self.standard_input.take().unwrap_or_default()
    }

    /// A file by its path.
    pub(super) fn file(&self, path: &str) -> Option<File> {
        let path = file_system::absolute(&self.folder, path);
        match self.written.get(&path) {
            Some(written) => written.clone(),
            None => self.view().and_then(|tree| tree.get(&path).cloned()),
        }
    }

    /// What volumes show now.
    fn view(&self) -> Option<&Tree> {
        let view = self.around.views.iter().rev().find(|view| view.after <= self.elapsed);
        view.or(self.around.views.first()).map(|view| &*view.tree)
    }

    /// All files, in the order of their paths.
    pub(super) fn files(&self) -> Tree {
        let mut tree = self.view().cloned().unwrap_or_default();
        for (path, file) in &self.written {
            match file {
                Some(file) => tree.insert(path.clone(), file.clone()),
                None => tree.remove(path),
            };
        }
        tree
    }

    /// Writes a file, unless that is not allowed.
    ///
    /// # Errors
    /// As the C library says it.
    pub(super) fn write_file(&mut self, path: &str, content: Vec<u8>) -> Result<(), &'static str> {
        let path = file_system::absolute(&self.folder, path);
        self.check_writable(&path)?;
        let mode = self.file(&path).map_or(0o644, |file| file.mode);
        self.written.insert(path, Some(File::new(content, mode)));
        self.note_change();
        Ok(())
    }

    /// Whether anything may be written there.
    pub(super) fn check_writable(&self, path: &str) -> Result<(), &'static str> {
        let is_read_only = match file_system::mount_of(&self.around.mounts, path) {
            Some(mount) => mount.is_read_only || !mount.is_kept,
            None => self.around.is_root_read_only && !path.starts_with("/dev/"),
        };
        if is_read_only { Err("Read-only file system") } else { Ok(()) }
    }

    /// Files are not as they were.
    pub(super) fn note_change(&mut self) {
        if self.changes.len() < MAX_CHANGES && self.changes.last() != Some(&self.elapsed) {
            self.changes.push(self.elapsed);
        }
    }
}

/// `true` and `:`
fn is_endless(condition: &List) -> bool {
    let is_true = |word: &Word| matches!(super::shell::plain(word), Some("true" | ":"));
    match condition.as_slice() {
        [node] => match node.commands.as_slice() {
            [Command { action: Action::Simple(_, words), .. }] => words.len() == 1 && is_true(&words[0]),
            _ => false,
        },
        _ => false,
    }
}

fn has_way_out(body: &List) -> bool {
    let script = super::shell::Script { list: body.clone() };
    script.any_command(&|name, _| matches!(name, "exit" | "break" | "set" | "exec"))
}
