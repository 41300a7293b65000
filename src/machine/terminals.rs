//! Commands that somebody runs beside a container's process and says something to, at a terminal or through a
//! pipe (`exec -it`, `exec -i`).
//!
//! As with a process that somebody is attached to, what was typed is kept with its times, and the command is
//! played again with it. A shell that waits for its next line begins anew there with what it remembers, so
//! that it finds what others did meanwhile, and no line is played twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::agnhost;
use crate::exec::{is_absent, is_script_there, of_script};
use crate::file_system::{File, FileChange};
use crate::interpreter::containment::contained;
use crate::interpreter::dialect::ShellOptions;
use crate::interpreter::jobs::BackgroundJobs;
use crate::interpreter::killing::EXECUTED_PID;
use crate::interpreter::line_editor::TypedLines;
use crate::interpreter::other_root::RootFolder;
use crate::interpreter::player::{AfterCommand, Player, Sink};
use crate::interpreter::transcript::Transcript;
use crate::interpreter::variables::Variables;
use crate::programs::{go_on, names, read_command};
use crate::questions::{Answered, Question};
use crate::shell::{Script, ShellCommand, Unplayable};
use crate::standard_input::StandardInput;
use crate::surroundings::Surroundings;

/// What somebody has said to a command so far, since the command began or its shell began anew.
#[derive(Clone, Debug, Default)]
pub struct Sitting {
    /// What was typed, after the beginning.
    pub input: StandardInput,
    /// What the shell remembers that has begun anew; none of a command that has not.
    pub memory: Option<Arc<ShellMemory>>,
    /// So long after the beginning it is looked at.
    pub ran: Duration,
    /// What it found at its beginning; nothing at the first look.
    pub ground: Option<Arc<Ground>>,
    /// What it had written at the look before.
    pub told: Arc<Vec<FileChange>>,
    /// What the network has answered since then.
    pub answers: Arc<Vec<Answered>>,
}

/// What a command finds when it begins.
#[derive(Clone, Debug, Default)]
pub struct Ground {
    /// Around it.
    pub around: Surroundings,
    /// What the container's process has written.
    pub files: Vec<FileChange>,
}

/// What a shell remembers from one line to the next.
#[derive(Clone, Debug)]
pub struct ShellMemory {
    variables: Variables,
    folder: String,
    functions: Arc<BTreeMap<String, Arc<ShellCommand>>>,
    arguments: Arc<Vec<String>>,
    traps: Arc<BTreeMap<String, String>>,
    options: ShellOptions,
    status: i32,
    history: TypedLines,
    /// What `exec >log 3>&1` has set.
    out: Sink,
    errors: Sink,
    more_sinks: BTreeMap<u8, Sink>,
    more_inputs: BTreeMap<u8, String>,
    /// All have ended.
    jobs: BackgroundJobs,
    drawn: u64,
    is_in_other_root: bool,
    roots: Vec<RootFolder>,
}

/// A command at a terminal, as far as it was played.
#[derive(Clone, Debug)]
pub struct AtTerminal {
    /// What the terminal shows.
    pub transcript: Transcript,
    /// How it has ended.
    pub end: Option<i32>,
    /// When more happens by itself.
    pub next: Option<Duration>,
    /// What it asks the network, after how long: with the answer it goes on.
    pub question: Option<(Duration, Question)>,
    /// What it has written since the beginning.
    pub written: Vec<FileChange>,
    /// The signal that it has sent to the container's own process, after how long.
    pub signal: Option<(Duration, String)>,
    /// Its shell waits for a line, and remembers this: it can begin anew.
    pub memory: Option<Arc<ShellMemory>>,
    /// What it found at its beginning.
    pub ground: Arc<Ground>,
}

/// Plays a command at a terminal; nothing when it is not known.
pub fn play(command: &[String], sitting: &Sitting, ground: &Arc<Ground>) -> Option<AtTerminal> {
    let around = Surroundings {
        input: Some(Box::new(sitting.input.clone())),
        answers: sitting.answers.clone(),
        terminal: None,
        ..ground.around.clone()
    };
    let run = runner(command, sitting.memory.is_some(), &around, &ground.files)?;
    let mut player = Player::new(&around, Some(sitting.ran), ground.files.clone()).listening();
    (player.pid, player.transcript) = (EXECUTED_PID, Some(Transcript::default()));
    if let Some(memory) = &sitting.memory {
        memory.recall(&mut player);
    }
    let flow = contained(&mut player, |player| run(player));
    // A shell that a script began cannot begin anew without the script.
    player.is_at_prompt &= typed_shell(command).is_some();
    Some(played(player, flow, ground))
}

fn played(mut player: Player<'_>, flow: AfterCommand, ground: &Arc<Ground>) -> AtTerminal {
    let mut transcript = player.transcript.take().unwrap_or_default();
    let (elapsed, fault) = (player.elapsed, player.fault.take());
    fault.iter().for_each(|fault| transcript.add(elapsed, true, &format!("sh: {fault}\n")));
    let end = match (flow, &fault) {
        (_, Some(fault)) => Some(fault.code()),
        _ if player.is_blocked => None,
        (AfterCommand::OutOfTime, _) => None,
        (AfterCommand::Exit(code), _) => Some(code),
        _ => Some(player.status),
    };
    // What goes on in the background is part of what is played.
    let is_alone = !player.jobs.are_running(elapsed) && !has_connection(&player);
    let memory = (player.is_at_prompt && is_alone).then(|| Arc::new(ShellMemory::of(&player)));
    let is_later = end.is_none() && elapsed > player.until && elapsed < Duration::MAX;
    let background = transcript.next_after(player.until);
    let next = [is_later.then_some(elapsed), background].into_iter().flatten().min();
    player.leave_roots();
    let before: BTreeMap<&String, &Option<File>> =
        ground.files.iter().map(|(path, file)| (path, file)).collect();
    let is_new = |(path, file): &(String, Option<File>)| before.get(path) != Some(&file);
    let written = player.written.into_iter().filter(is_new).collect();
    let question = player.question.map(|question| (elapsed, question));
    let signal = player.sent_to_first;
    AtTerminal { transcript, end, next, question, written, signal, memory, ground: ground.clone() }
}

/// Whether it holds one that cannot be taken up again.
fn has_connection(player: &Player<'_>) -> bool {
    let mut sinks = player.more_sinks.values().chain([&player.out, &player.errors]);
    sinks.any(|sink| matches!(sink, Sink::Connection(_)))
}

type CommandPlay = Box<dyn Fn(&mut Player<'_>) -> AfterCommand>;

/// How a command line is played: a shell that is typed into, a program of the test image, or a script.
fn runner(
    command: &[String],
    goes_on: bool,
    around: &Surroundings,
    files: &[FileChange],
) -> Option<CommandPlay> {
    if is_absent(command, around, files) {
        return None;
    }
    if let Some(shell) = typed_shell(command) {
        return Some(Box::new(move |player| go_on(player, shell, goes_on)));
    }
    if let Some(line) = agnhost::command_line(&around.image, command, &[]) {
        return Some(Box::new(move |player| agnhost::run(player, &line)));
    }
    let script = match read_command(command) {
        Ok(script) => script,
        Err(Unplayable::Unknown) if is_script_there(command, around, files) => {
            Script::of_command(command, |_, _| true).ok()?
        }
        Err(Unplayable::Unknown) => return None,
        Err(Unplayable::Faulty(fault)) => return Some(Box::new(move |player| player.stop(fault.clone()))),
    };
    Some(Box::new(move |player| of_script(&script)(player)))
}

/// The shell that reads what is typed.
fn typed_shell(command: &[String]) -> Option<&'static str> {
    let (program, flags) = command.split_first()?;
    let is_plain = |flag: &String| matches!(flag.as_str(), "-i" | "-l" | "-il" | "-li" | "--login" | "-");
    let name = Some(names::base_name(program)).filter(|_| flags.iter().all(is_plain))?;
    ["sh", "bash", "ash", "dash"].into_iter().find(|shell| *shell == name)
}

impl ShellMemory {
    fn of(player: &Player<'_>) -> ShellMemory {
        ShellMemory {
            variables: player.variables.clone(),
            folder: player.folder.clone(),
            functions: player.functions.clone(),
            arguments: player.arguments.clone(),
            traps: player.traps.clone(),
            options: player.options,
            status: player.status,
            history: player.history.clone(),
            out: player.out.clone(),
            errors: player.errors.clone(),
            more_sinks: player.more_sinks.clone(),
            more_inputs: player.more_inputs.clone(),
            jobs: player.jobs.ended(),
            drawn: player.drawn,
            is_in_other_root: player.roots.is_entered,
            roots: player.root_folders(),
        }
    }

    fn recall(&self, player: &mut Player<'_>) {
        player.variables = self.variables.clone();
        self.roots.iter().for_each(|root| player.enter_root(root));
        player.folder.clone_from(&self.folder);
        player.functions = self.functions.clone();
        player.arguments = self.arguments.clone();
        player.traps = self.traps.clone();
        player.options = self.options;
        player.status = self.status;
        player.history = self.history.clone();
        player.out = self.out.clone();
        player.errors = self.errors.clone();
        player.more_sinks = self.more_sinks.clone();
        player.more_inputs = self.more_inputs.clone();
        player.jobs = self.jobs.clone();
        player.drawn = self.drawn;
        player.roots.is_entered = self.is_in_other_root;
    }
}

#[cfg(test)]
mod tests;
