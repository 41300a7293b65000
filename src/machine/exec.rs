//! Commands that are run beside a container's process, and lines that are typed into a shell.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bounds::{MAX_STEPS, ScriptFault};
use crate::file_system::{File, FileChange};
use crate::image_programs::{FOLDERS, is_missing};
use crate::interpreter::containment::contained;
use crate::interpreter::killing::EXECUTED_PID;
use crate::interpreter::player::{AfterCommand, Player};
use crate::interpreter::variables::Variables;
use crate::programs::{database_clients, names, read_any_script, read_command, read_script, run_lines};
use crate::questions::Question;
use crate::shell::{Script, Unplayable};
use crate::surroundings::Surroundings;
use crate::{agnhost, byte_text, images};

/// A command that was run beside a container's process.
#[derive(Clone, Debug, Default)]
pub struct Executed {
    /// How long it took and its code; nothing when it never ends.
    pub end: Option<(Duration, i32)>,
    /// What it said ([`byte_text`]).
    pub out: String,
    /// What it said of errors.
    pub errors: String,
    /// What it wrote, beside what was written before.
    pub written: Vec<FileChange>,
    /// It reads what is not there, or the line that was typed goes on in the next one.
    pub is_waiting: bool,
    /// What it asks the network, after how long: with the answer it is to be run again.
    pub question: Option<(Duration, Question)>,
    /// The signal that it has sent to the container's own process, after how long.
    pub signal: Option<(Duration, String)>,
    /// What a shell remembers until the next line is typed; nothing when it has ended.
    pub shell: Option<Shell>,
}

/// A shell's variables; its folder is `PWD`.
pub type Shell = BTreeMap<String, String>;

/// Runs a command in a running container beside its process (`exec`); nothing when it is not known.
/// `files` are what the container's process wrote so far.
pub fn exec(
    command: &[String],
    around: &Surroundings,
    files: Vec<FileChange>,
    standard_input: Option<Vec<u8>>,
) -> Option<Executed> {
    exec_within(&mut { MAX_STEPS }, command, around, files, standard_input)
}

/// Runs a command as somebody has it run who sees what it says: what a script names that there is not is said
/// to be missing, and the script goes on. Nothing when the command itself is not known.
pub fn exec_told(
    command: &[String],
    around: &Surroundings,
    files: Vec<FileChange>,
    standard_input: Option<Vec<u8>>,
) -> Option<Executed> {
    if let Some(line) = agnhost::command_line(&around.image, command, &[]) {
        let run = |player: &mut Player<'_>| agnhost::run(player, &line);
        return Some(play(&mut { MAX_STEPS }, &run, around, files, standard_input));
    }
    if is_absent(command, around, &files) {
        return None;
    }
    let script = match read_command(command) {
        Ok(script) => script,
        // A script of a volume is a program, too.
        Err(Unplayable::Unknown) if is_script_there(command, around, &files) => {
            Script::of_command(command, |_, _| true).ok()?
        }
        Err(Unplayable::Unknown) => return None,
        Err(Unplayable::Faulty(fault)) => return Some(Executed::of_fault(&fault)),
    };
    Some(play(&mut { MAX_STEPS }, &of_script(&script), around, files, standard_input))
}

/// Whether a program that is not known is a file, or one that asks others.
pub(crate) fn is_script_there(command: &[String], around: &Surroundings, files: &[FileChange]) -> bool {
    let Some(program) = command.first() else { return false };
    let is_it = |path: &str| {
        let in_folder = || path.rsplit_once('/').filter(|(folder, _)| FOLDERS.contains(folder));
        path == program || in_folder().is_some_and(|(_, name)| name == program)
    };
    database_clients::is_known(names::base_name(program))
        || files.iter().any(|(path, file)| file.is_some() && is_it(path))
        || around.views.last().is_some_and(|view| view.tree.keys().any(|path| is_it(path)))
}

/// Whether the image surely has no program of a command's name, nobody has declared what it says, and no file
/// is called so: the runtime starts no such command.
pub fn is_absent(command: &[String], around: &Surroundings, files: &[FileChange]) -> bool {
    let Some(program) = command.first() else { return false };
    let name = names::base_name(program);
    let is_it = |(path, file): &FileChange| file.is_some() && names::base_name(path) == name;
    is_missing(&around.image, program)
        && !around.declared.contains_key(name)
        && !files.iter().any(is_it)
        && !around.has_file_named(name)
}

/// How a script is played beside the container's process.
pub(crate) fn of_script(script: &Script) -> impl Fn(&mut Player<'_>) -> AfterCommand {
    move |player: &mut Player<'_>| {
        let flow = player.list(&script.list);
        player.finish(flow)
    }
}

/// Runs with so many steps, of which it takes what it uses.
pub fn exec_within(
    steps: &mut usize,
    command: &[String],
    around: &Surroundings,
    files: Vec<FileChange>,
    standard_input: Option<Vec<u8>>,
) -> Option<Executed> {
    let checked = |script| check_shell(command, around).map(|()| script);
    let script = match read_command(command).and_then(checked) {
        Ok(script) => script,
        Err(Unplayable::Unknown) => return None,
        Err(Unplayable::Faulty(fault)) => return Some(Executed::of_fault(&fault)),
    };
    Some(play(steps, &of_script(&script), around, files, standard_input))
}

fn play(
    steps: &mut usize,
    run: &dyn Fn(&mut Player<'_>) -> AfterCommand,
    around: &Surroundings,
    files: Vec<FileChange>,
    standard_input: Option<Vec<u8>>,
) -> Executed {
    let mut player = Player::new(around, None, files.clone()).gathering().with_steps(*steps);
    player.pid = EXECUTED_PID;
    player.standard_input = standard_input.as_deref().map(byte_text::text_of);
    let flow = contained(&mut player, |player| run(player));
    *steps = player.steps_left;
    executed(player, files, flow)
}

/// What a shell, `program`, makes of lines that are typed into it. `shell` is what it remembers; a new
/// one nothing.
pub fn type_lines(
    (program, text): (&str, &str),
    shell: &Shell,
    around: &Surroundings,
    files: Vec<FileChange>,
) -> Executed {
    let mut player = Player::new(around, None, files.clone()).gathering();
    player.pid = EXECUTED_PID;
    player.standard_input = Some(String::new());
    if let Some(folder) = shell.get("PWD") {
        (player.variables, player.folder) = (Variables::new(shell.clone()), folder.clone());
    }
    match run_lines(&mut player, program, text) {
        Some(flow) => executed(player, files, flow),
        None => Executed { is_waiting: true, ..Executed::default() },
    }
}

fn executed(mut player: Player<'_>, before: Vec<FileChange>, flow: AfterCommand) -> Executed {
    let before: BTreeMap<String, Option<File>> = before.into_iter().collect();
    let end = match (flow, &player.fault) {
        (_, Some(fault)) => Some((player.elapsed, fault.code())),
        (AfterCommand::OutOfTime, _) => None,
        (AfterCommand::Exit(code), _) => Some((player.elapsed, code)),
        _ => Some((player.elapsed, player.status)),
    };
    let (out, mut errors) = player.said();
    player.fault.iter().for_each(|fault| errors.push_str(&format!("sh: {fault}\n")));
    player.leave_roots();
    let mut shell = player.variables.into_map();
    shell.insert("PWD".into(), player.folder);
    let shell = Some(shell).filter(|_| !matches!(flow, AfterCommand::Exit(_) | AfterCommand::Stopped));
    let written = player.written.into_iter().filter(|(path, file)| before.get(path) != Some(file)).collect();
    let question = player.question.map(|question| (player.elapsed, question));
    let is_waiting = player.is_waiting;
    let signal = player.sent_to_first;
    Executed { end, out, errors, written, is_waiting, question, signal, shell }
}

impl Executed {
    /// It never began.
    fn of_fault(fault: &ScriptFault) -> Executed {
        let errors = format!("sh: {fault}\n");
        Executed { end: Some((Duration::ZERO, fault.code())), errors, ..Executed::default() }
    }
}

/// That `sh -c script` has a script that is understood.
fn check_shell(command: &[String], around: &Surroundings) -> Result<(), Unplayable> {
    let at = command.iter().position(|word| names::is_command_flag(word));
    let is_shell = command.first().is_some_and(|program| names::is_shell(names::base_name(program)));
    match at.and_then(|at| command.get(at + 1)) {
        Some(script) if is_shell && images::runs_a_shell(&around.image) => {
            read_any_script(script, true).map(drop)
        }
        Some(script) if is_shell => read_script(script).map(drop),
        _ => Ok(()),
    }
}
