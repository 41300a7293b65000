//! Who plays a script: where its output goes, what it has used up, and a clock of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::connections::ShellConnection;
use super::dialect::{Dialect, ShellOptions};
use super::disk::Disk;
use super::jobs::BackgroundJobs;
use super::line_editor::TypedLines;
use super::other_root::OtherRoots;
use super::transcript::Transcript;
use super::variables::Variables;
use crate::bounds::{BYTES_PER_STEP, MAX_MEMORY_BYTES, MAX_STEPS, MAX_VARIABLES, ScriptFault};
use crate::byte_text;
use crate::file_system::{File, FileChange};
use crate::listeners::{MAX_LISTENERS, ScriptListener};
use crate::questions::{Answered, MAX_HEARD_BYTES, MAX_QUESTIONS, NetworkReply, Question};
use crate::shell::ShellCommand;
use crate::standard_input::HeardSoFar;
use crate::surroundings::Surroundings;

/// A line that was said, and how long after the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// After the start of the process.
    pub after: Duration,
    /// Without its end.
    pub text: String,
}

/// A shell that reads what whoever is attached says.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedShell {
    pub(crate) name: &'static str,
    /// What `set` switches on in it.
    pub(crate) options: String,
    pub(crate) arguments: Vec<String>,
}

/// What comes after a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AfterCommand {
    Go,
    Exit(i32),
    /// Out of the function.
    Return(i32),
    /// Out of so many loops, or on with the last of them.
    Break(usize),
    Continue(usize),
    OutOfTime,
    /// It went over a bound: [`Player::fault`].
    Stopped,
}

/// Where output goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sink {
    /// The container's log.
    Log,
    /// The container's log, as the standard error.
    ErrorLog,
    Nowhere,
    File(String),
    /// What a pipe or a substitution gathers.
    Gathered(usize),
    /// One of [`Player::connections`].
    Connection(usize),
}

pub(crate) struct Player<'a> {
    pub(crate) around: &'a Surroundings,
    /// How far it is played.
    pub(crate) until: Duration,
    /// Whether only the end is asked for: a loop without a way out needs no playing then.
    pub(crate) is_for_end: bool,
    pub(crate) steps_left: usize,
    /// Less than a step.
    unpaid_bytes: usize,
    /// What was left of them when time last went by.
    steps_at_pause: usize,
    /// How many lists of commands are being played, each within the one before.
    pub(crate) depth: usize,
    pub(crate) fault: Option<ScriptFault>,
    pub(crate) elapsed: Duration,
    pub(crate) status: i32,
    /// How the command before the one that is being run ended.
    pub(crate) last_status: i32,
    pub(crate) variables: Variables,
    /// What the script has defined so far. Bound: [`MAX_VARIABLES`].
    pub(crate) functions: Arc<BTreeMap<String, Arc<ShellCommand>>>,
    /// `$0`
    pub(crate) name: String,
    /// `$1` and on.
    pub(crate) arguments: Arc<Vec<String>>,
    /// What functions have to put back when they return, one list for each that is being played.
    pub(crate) locals: Vec<Vec<(String, Option<String>)>>,
    pub(crate) jobs: BackgroundJobs,
    /// The number of its process: 1 is the container's own.
    pub(crate) pid: usize,
    /// Which shell a signal has ended, and with what code.
    pub(crate) killed: Option<(usize, i32)>,
    /// The first signal that somebody beside the container's own process has sent to that, and when.
    pub(crate) sent_to_first: Option<(Duration, String)>,
    /// When a signal that has a handler ends a `wait`, and with what code.
    pub(crate) wait_ends: Option<(Duration, i32)>,
    /// It is played as far as was asked, and a `wait` has not ended.
    pub(crate) is_in_wait: bool,
    /// In the background.
    pub(crate) is_beside: bool,
    pub(crate) roots: OtherRoots,
    /// What is done about signals, and at the end.
    pub(crate) traps: Arc<BTreeMap<String, String>>,
    pub(crate) options: ShellOptions,
    /// Within so many conditions, where a failure ends nothing.
    pub(crate) tested: usize,
    /// The line that is being played.
    pub(crate) line: usize,
    pub(crate) dialect: Dialect,
    /// A mistake has ended the shell.
    pub(crate) abort: Option<i32>,
    /// How what is filled in ended, when that ends all.
    pub(crate) pending: Option<AfterCommand>,
    pub(crate) folder: String,
    pub(crate) standard_input: Option<String>,
    /// What it says is gathered for whoever has it run beside a process.
    pub(crate) is_executed: bool,
    /// Something was to be read that is not there.
    pub(crate) is_waiting: bool,
    pub(crate) out: Sink,
    pub(crate) errors: Sink,
    /// Where the descriptors from 3 on lead, and what is read from them.
    pub(crate) more_sinks: BTreeMap<u8, Sink>,
    pub(crate) more_inputs: BTreeMap<u8, String>,
    /// What redirections have opened.
    pub(crate) connections: Vec<ShellConnection>,
    /// What is said goes into a pipe.
    pub(crate) is_piped: bool,
    /// So many bytes of chance were drawn.
    pub(crate) drawn: u64,
    pub(crate) gathered: Vec<Vec<u8>>,
    /// What was written, and `None` where something was removed.
    pub(crate) written: BTreeMap<String, Option<File>>,
    pub(crate) disk: Disk,
    /// What was written, from time to time, when that is asked for.
    pub(crate) snapshots: Option<Vec<(Duration, Vec<FileChange>)>>,
    pub(crate) has_changed: bool,
    pub(crate) unfinished: String,
    pub(crate) lines: Vec<Line>,
    pub(crate) log_bytes: usize,
    /// The pattern that `grep` looked for last.
    pub(crate) last_pattern: Option<(String, regex::Regex)>,
    /// What the network answers, question by question.
    pub(crate) answers: Arc<Vec<Answered>>,
    /// How many of them were asked for, and what they hold.
    pub(crate) asked: usize,
    pub(crate) heard_bytes: usize,
    /// The first question that has no answer yet.
    pub(crate) question: Option<Question>,
    /// How far it has heard what is said to it, when somebody may.
    pub(crate) heard: Option<HeardSoFar>,
    /// It waits for what nobody has said yet, or what comes later than it is played.
    pub(crate) is_blocked: bool,
    /// A shell with a terminal: control-C interrupts its commands.
    pub(crate) is_interactive: bool,
    /// What runs in front ends with this status, since a key said so.
    pub(crate) interrupted: Option<i32>,
    /// The shell that whoever types sees first waits for a line of which nothing is typed yet.
    pub(crate) is_at_prompt: bool,
    /// So many shells that read what is typed run, each in the one before.
    pub(crate) typed_shells: usize,
    /// What was typed into them.
    pub(crate) history: TypedLines,
    /// A shell that is to be run next, for whoever is attached.
    pub(crate) wanted_shell: Option<WantedShell>,
    /// All that goes to the log, as it is said, when that is asked for.
    pub(crate) transcript: Option<Transcript>,
    /// Where it listens by now. Bound: [`MAX_LISTENERS`].
    pub(crate) listens: Vec<ScriptListener>,
}

impl<'a> Player<'a> {
    /// Plays until `until`; without, until the end. `files` are there from the start.
    pub(crate) fn new(around: &'a Surroundings, until: Option<Duration>, files: Vec<FileChange>) -> Self {
        Player {
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
            last_status: 0,
            variables: Variables::new(around.variables.clone()),
            functions: Arc::default(),
            name: "sh".into(),
            arguments: Arc::default(),
            locals: vec![],
            jobs: BackgroundJobs::default(),
            pid: 1,
            killed: None,
            sent_to_first: None,
            wait_ends: None,
            is_in_wait: false,
            is_beside: false,
            roots: OtherRoots::default(),
            traps: Arc::default(),
            options: ShellOptions::default(),
            tested: 0,
            line: 1,
            dialect: Dialect::of("sh", &around.image),
            abort: None,
            pending: None,
            folder: around.folder.clone(),
            standard_input: None,
            is_executed: false,
            is_waiting: false,
            out: Sink::Log,
            errors: Sink::ErrorLog,
            more_sinks: BTreeMap::new(),
            more_inputs: BTreeMap::new(),
            connections: vec![],
            is_piped: false,
            drawn: 0,
            gathered: vec![],
            written: BTreeMap::new(),
            disk: Disk::of(around),
            snapshots: None,
            has_changed: false,
            unfinished: String::new(),
            lines: vec![],
            log_bytes: 0,
            last_pattern: None,
            answers: around.answers.clone(),
            asked: 0,
            heard_bytes: 0,
            question: None,
            heard: None,
            is_blocked: false,
            is_interactive: false,
            interrupted: None,
            is_at_prompt: false,
            typed_shells: 0,
            history: TypedLines::default(),
            wanted_shell: None,
            transcript: None,
            listens: vec![],
        }
        .with_files(files)
    }

    fn with_files(mut self, files: Vec<FileChange>) -> Player<'a> {
        files.into_iter().for_each(|(path, file)| self.keep_file(path, file));
        self
    }

    /// With only so many steps.
    pub(crate) fn with_steps(mut self, steps: usize) -> Player<'a> {
        (self.steps_left, self.steps_at_pause) = (steps, MAX_STEPS);
        self
    }

    /// Also notes what is written when.
    pub(crate) fn with_snapshots(mut self) -> Player<'a> {
        self.snapshots = Some(vec![]);
        self
    }

    /// What is said goes nowhere but into [`Player::said`].
    pub(crate) fn gathering(mut self) -> Player<'a> {
        (self.out, self.errors) = (Sink::Gathered(0), Sink::Gathered(1));
        self.gathered = vec![vec![], vec![]];
        self.is_executed = true;
        self
    }

    /// The standard output and the standard error.
    pub(crate) fn said(&mut self) -> (String, String) {
        let mut said = std::mem::take(&mut self.gathered).into_iter();
        let mut next = || byte_text::text_of(&said.next().unwrap_or_default());
        (next(), next())
    }

    /// Whether what is said now is neither for a file nor for a pipe.
    pub(crate) fn is_heard(&self) -> bool {
        self.out == Sink::Log || self.is_executed && self.out == Sink::Gathered(0)
    }

    /// Stops the script.
    pub(crate) fn stop(&mut self, fault: ScriptFault) -> AfterCommand {
        self.fault.get_or_insert(fault);
        AfterCommand::Stopped
    }

    /// Uses up steps.
    pub(crate) fn spend(&mut self, steps: usize) -> AfterCommand {
        if self.fault.is_some() {
            return AfterCommand::Stopped;
        }
        if self.is_blocked {
            return AfterCommand::OutOfTime;
        }
        if let Some(code) = self.interrupted {
            return AfterCommand::Exit(code);
        }
        self.steps_left = self.steps_left.saturating_sub(steps);
        match self.steps_left {
            0 if self.steps_at_pause >= MAX_STEPS / 2 => self.stop(ScriptFault::Steps),
            0 => AfterCommand::OutOfTime,
            _ => AfterCommand::Go,
        }
    }

    /// Uses up what it takes to read or to make so many bytes. Whether there was enough.
    pub(crate) fn handle(&mut self, bytes: usize) -> bool {
        let due = self.unpaid_bytes.saturating_add(bytes);
        self.unpaid_bytes = due % BYTES_PER_STEP;
        self.spend(due / BYTES_PER_STEP) == AfterCommand::Go
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        let copied = if self.variables.is_shared() { self.variables.bytes() } else { 0 };
        if !self.handle(copied + value.len()) {
            return;
        }
        self.variables.set(name, value);
        if self.variables.bytes() > MAX_MEMORY_BYTES || self.variables.count() > MAX_VARIABLES {
            self.stop(ScriptFault::Memory);
        }
    }

    /// Takes variables away; a subshell's are copied first, as for [`Player::set`].
    pub(crate) fn unset(&mut self, names: &[&str]) {
        let copied = if self.variables.is_shared() { self.variables.bytes() } else { 0 };
        if self.handle(copied) {
            names.iter().for_each(|name| self.variables.remove(name));
        }
    }

    /// What `play` says, instead of its going to the output.
    pub(crate) fn gather(
        &mut self,
        play: impl FnOnce(&mut Player<'a>) -> AfterCommand,
    ) -> (String, AfterCommand) {
        let out = std::mem::replace(&mut self.out, Sink::Gathered(self.gathered.len()));
        self.gathered.push(vec![]);
        let flow = play(self);
        self.out = out;
        (byte_text::text_of(&self.gathered.pop().unwrap_or_default()), flow)
    }

    /// Chance, as `/dev/urandom` has it: the same for the same run, so that it can be played again.
    pub(crate) fn random_bytes(&mut self, count: usize) -> Vec<u8> {
        if !self.handle(count) {
            return vec![];
        }
        let seed = self.variables.get("RANDOM").and_then(|number| number.parse::<u64>().ok()).unwrap_or(1);
        let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ self.drawn.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.drawn += count as u64 + 1;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        (0..count).map(next).collect()
    }

    /// What the network answers. Where nobody has asked it yet, the play ends with the question; a process
    /// that has asked too much waits for ever.
    ///
    /// # Errors
    /// How the play goes on where there is no answer.
    pub(crate) fn ask(&mut self, question: Question) -> Result<NetworkReply, AfterCommand> {
        if self.asked >= MAX_QUESTIONS || self.heard_bytes > MAX_HEARD_BYTES {
            self.tell_that_it_asks_no_more();
            return Err(self.sleep(Duration::MAX));
        }
        let Some(answered) = self.answers.get(self.asked).cloned() else {
            // Whoever has interrupted it waits for no answer.
            if let Some(after) = self.interrupted_before(Duration::MAX) {
                return Err(self.interrupt_at(after));
            }
            self.question = Some(question);
            return Err(AfterCommand::OutOfTime);
        };
        self.asked += 1;
        self.heard_bytes += answered.bytes();
        match self.pause(answered.took) {
            AfterCommand::Go => Ok(answered.reply),
            flow => Err(flow),
        }
    }

    /// Once, and even where complaints go nowhere: it looks as if it hung.
    fn tell_that_it_asks_no_more(&mut self) {
        if self.asked > MAX_QUESTIONS {
            return;
        }
        self.asked = MAX_QUESTIONS + 1;
        let errors = self.errors.clone();
        if errors == Sink::Nowhere {
            self.errors = Sink::ErrorLog;
        }
        self.complain(&format!(
            "kubarium: this process has asked the network {MAX_QUESTIONS} times or has heard {} MiB, \
             which is all that is played of it: it waits from now on\n",
            MAX_HEARD_BYTES >> 20
        ));
        self.errors = errors;
    }

    /// A step of a program that does something again and again, and the pause after it.
    pub(crate) fn pause(&mut self, time: Duration) -> AfterCommand {
        match self.spend(1) {
            AfterCommand::Go => self.sleep(time),
            flow => flow,
        }
    }

    /// The time that a clock shows; the end of time when that is later still.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        clock::after(self.around.started_at, self.elapsed)
    }

    /// From now on somebody is answered there.
    pub(crate) fn listen(&mut self, listener: ScriptListener) {
        if self.listens.len() < MAX_LISTENERS {
            self.listens.push(listener);
        }
    }

    /// Time goes by.
    pub(crate) fn sleep(&mut self, time: Duration) -> AfterCommand {
        let end = self.elapsed.saturating_add(time);
        if let Some(after) = self.interrupted_before(end) {
            return self.interrupt_at(after);
        }
        if !time.is_zero() {
            self.take_snapshot();
            self.steps_at_pause = self.steps_left;
        }
        self.meet_foreign(end);
        self.elapsed = end;
        let is_over = self.elapsed > self.until || self.elapsed == Duration::MAX;
        if is_over { AfterCommand::OutOfTime } else { AfterCommand::Go }
    }
}
