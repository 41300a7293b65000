//! Commands that are run beside a container's process, and lines that are typed into a shell.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bounds::{Fault, MAX_STEPS, MAX_TYPED_BYTES};
use crate::file_system::{Change, File};
use crate::interpreter::player::{Flow, Player};
use crate::interpreter::variables::Variables;
use crate::program::contained;
use crate::programs::{names, read_command, read_script};
use crate::questions::Question;
use crate::shell::{Script, Unplayable};
use crate::surroundings::Surroundings;

/// A command that was run beside a container's process.
#[derive(Clone, Debug, Default)]
pub struct Executed {
    /// How long it took and its code; nothing when it never ends.
    pub end: Option<(Duration, i32)>,
    /// What it said.
    pub out: String,
    /// What it said of errors.
    pub errors: String,
    /// What it wrote, beside what was written before.
    pub written: Vec<Change>,
    /// It reads what is not there, or the line that was typed goes on in the next one.
    pub is_waiting: bool,
    /// What it asks the network, after how long: with the answer it is to be run again.
    pub question: Option<(Duration, Question)>,
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
    files: Vec<Change>,
    standard_input: Option<String>,
) -> Option<Executed> {
    exec_within(&mut { MAX_STEPS }, command, around, files, standard_input)
}

/// Runs with so many steps, of which it takes what it uses.
pub fn exec_within(
    steps: &mut usize,
    command: &[String],
    around: &Surroundings,
    files: Vec<Change>,
    standard_input: Option<String>,
) -> Option<Executed> {
    let script = match read_command(command).and_then(|script| check_shell(command).map(|()| script)) {
        Ok(script) => script,
        Err(Unplayable::Unknown) => return None,
        Err(Unplayable::Faulty(fault)) => return Some(Executed::of_fault(&fault)),
    };
    let mut player = Player::new(around, None, files.clone()).gathering().with_steps(*steps);
    player.standard_input = standard_input;
    let flow = contained(&mut player, |player| player.list(&script.list));
    *steps = player.steps_left;
    Some(executed(player, files, flow))
}

/// What a shell, `program`, makes of lines that are typed into it. `shell` is what it remembers; a new
/// one nothing.
pub fn type_lines(
    (program, text): (&str, &str),
    shell: &Shell,
    around: &Surroundings,
    files: Vec<Change>,
) -> Executed {
    let Some(scripts) = scripts(text) else { return Executed { is_waiting: true, ..Executed::default() } };
    let mut player = Player::new(around, None, files.clone()).gathering();
    player.standard_input = Some(String::new());
    if let Some(folder) = shell.get("PWD") {
        (player.variables, player.folder) = (Variables::new(shell.clone()), folder.clone());
    }
    let mut flow = Flow::Go;
    for script in scripts {
        match script {
            Ok(script) => flow = contained(&mut player, |player| player.list(&script.list)),
            Err(Misread::Unknown(word)) => {
                player.complain(&format!("{program}: {word}: not found\n"));
                player.status = 127;
            }
            Err(Misread::Faulty(fault)) => {
                player.complain(&format!("{program}: {fault}\n"));
                player.status = fault.code();
            }
        }
        if matches!(flow, Flow::Exit(_) | Flow::OutOfTime | Flow::Stopped) {
            break;
        }
    }
    executed(player, files, flow)
}

/// A line that is not played.
enum Misread {
    /// Its first word.
    Unknown(String),
    Faulty(Fault),
}

/// Line by line, unless a command goes on in the next. Nothing when the last one is not whole. A command
/// that goes on for too long is taken as it stands.
fn scripts(text: &str) -> Option<Vec<Result<Script, Misread>>> {
    let mut scripts = Vec::new();
    let mut open = String::new();
    let mut bytes_left = MAX_TYPED_BYTES;
    for line in text.split_inclusive('\n') {
        open.push_str(line);
        let is_too_much = bytes_left < open.len();
        bytes_left = bytes_left.saturating_sub(open.len());
        let read = if is_too_much { Err(Unplayable::Faulty(Fault::TooLong)) } else { read_script(&open) };
        let is_open = matches!(read, Err(Unplayable::Unknown | Unplayable::Faulty(Fault::Syntax(_))));
        if is_open && Script::goes_on(&open) {
            continue;
        }
        scripts.push(read.map_err(|why| match why {
            Unplayable::Unknown => Misread::Unknown(first_word(&open)),
            Unplayable::Faulty(fault) => Misread::Faulty(fault),
        }));
        open.clear();
    }
    open.is_empty().then_some(scripts)
}

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

fn executed(mut player: Player<'_>, before: Vec<Change>, flow: Flow) -> Executed {
    let before: BTreeMap<String, Option<File>> = before.into_iter().collect();
    let end = match (flow, &player.fault) {
        (_, Some(fault)) => Some((player.elapsed, fault.code())),
        (Flow::OutOfTime, _) => None,
        (Flow::Exit(code), _) => Some((player.elapsed, code)),
        _ => Some((player.elapsed, player.status)),
    };
    let (out, mut errors) = player.said();
    player.fault.iter().for_each(|fault| errors.push_str(&format!("sh: {fault}\n")));
    let mut shell = player.variables.into_map();
    shell.insert("PWD".into(), player.folder);
    let shell = Some(shell).filter(|_| !matches!(flow, Flow::Exit(_) | Flow::Stopped));
    let written = player.written.into_iter().filter(|(path, file)| before.get(path) != Some(file)).collect();
    let question = player.question.map(|question| (player.elapsed, question));
    Executed { end, out, errors, written, is_waiting: player.is_waiting, question, shell }
}

impl Executed {
    /// It never began.
    fn of_fault(fault: &Fault) -> Executed {
        let errors = format!("sh: {fault}\n");
        Executed { end: Some((Duration::ZERO, fault.code())), errors, ..Executed::default() }
    }
}

/// That `sh -c script` has a script that is understood.
fn check_shell(command: &[String]) -> Result<(), Unplayable> {
    let at = command.iter().position(|word| names::is_command_flag(word));
    let is_shell = command.first().is_some_and(|program| names::is_shell(names::base_name(program)));
    match at.and_then(|at| command.get(at + 1)) {
        Some(script) if is_shell => read_script(script).map(drop),
        _ => Ok(()),
    }
}
