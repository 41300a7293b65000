//! What a container's process does, as far as its command tells: how long it runs, how it ends, what it
//! says and writes.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::bounds::{Fault, MAX_START_BYTES, MAX_STEPS, MAX_TYPED_BYTES, MAX_WORD_BYTES};
use super::file_system::{self, File};
use super::player::{Flow, Player};
use super::shell::{Script, Unplayable};
use super::surroundings::Surroundings;
use super::variables::Variables;
use super::{agnhost, commands, expansion, images};
use apis::views::pod::Container;

/// So many runs before the last one are played to know what they left.
const MAX_EARLIER_RUNS: i64 = 8;
/// Of a termination message (`MaxContainerTerminationMessageLength`).
const MAX_MESSAGE_BYTES: usize = 4096;
/// Of the log, when that is the termination message (`MaxContainerTerminationMessageLogLength`,
/// `...LogLines`).
const MAX_LOG_MESSAGE: (usize, usize) = (2048, 80);

/// A line that was said, and how long after the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// After the start of the process.
    pub after: Duration,
    /// Without its end.
    pub text: String,
}

/// A path, and the file that was written there; none when it was removed.
pub type Change = (String, Option<File>);

/// What a container left in a volume.
#[derive(Clone, Debug)]
pub struct Left {
    /// The volume's name; of the node's own files their path there.
    pub volume: String,
    /// In the volume.
    pub path: String,
    /// None when it was removed.
    pub file: Option<File>,
}

/// A process that was played until it ended, or as far as was asked.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// When it ended and with what code; nothing while it runs.
    pub end: Option<(Duration, i32)>,
    /// How far it was played: when the command ends that it is busy with.
    pub until: Duration,
    /// What it said.
    pub lines: Vec<Line>,
    /// What it wrote, and `None` where it removed something.
    pub written: Vec<Change>,
    /// Why it was stopped, or never began.
    pub fault: Option<Fault>,
    /// The last line has no end.
    pub is_unfinished: bool,
}

/// What a process wrote until a time: of each time at which that changed.
pub type Snapshots = Vec<(Duration, Vec<Change>)>;

/// What a container runs, as far as it is known.
enum Program {
    Script(Script),
    Agnhost(Vec<String>),
    /// Ends at once and well.
    Nothing,
    /// Cannot begin.
    Faulty(Fault),
}

/// Whether what the container's command does is known.
pub fn is_known(container: &Container) -> bool {
    program(container, None).is_some()
}

/// Whether its command is known and looks at files or at variables that are not the pod's own: then the
/// volumes and the services that it would find are asked for.
pub fn looks_around(container: &Container) -> bool {
    match program(container, None) {
        Some(Program::Script(script)) => {
            script.any_command(&|name, _| {
                !matches!(
                    commands::base_name(name),
                    "" | "echo" | "sleep" | "true" | "false" | "exit" | "date" | ":"
                )
            }) || names_services(container)
        }
        Some(Program::Agnhost(line)) => line.get(1).is_some_and(|name| name == "mounttest"),
        Some(Program::Nothing | Program::Faulty(_)) | None => false,
    }
}

/// Whether its words name variables as a service's are named.
fn names_services(container: &Container) -> bool {
    let mut words = container.command.iter().chain(&container.args);
    words.any(|word| word.contains("_SERVICE_") || word.contains("_PORT"))
}

/// Plays the container's command for `until`, or without it to its end; nothing when it is not known.
/// What earlier runs that nobody saw left in volumes is there.
pub fn play(container: &Container, around: &Surroundings, until: Option<Duration>) -> Option<Played> {
    let program = program(container, Some(around))?;
    let mut player = Player::new(around, until, left_unseen(&program, around));
    let flow = program.run(&mut player);
    Some(played(player, flow))
}

/// What the container's command writes when, as far as is known of it until its end.
pub fn snapshots(container: &Container, around: &Surroundings) -> Option<Snapshots> {
    let program = program(container, Some(around))?;
    let mut player = Player::new(around, None, left_unseen(&program, around)).with_snapshots();
    program.run(&mut player);
    player.take_snapshot();
    player.snapshots
}

/// What runs left that nobody saw.
fn left_unseen(program: &Program, around: &Surroundings) -> Vec<Change> {
    let mut left = Vec::new();
    for _ in 0..around.unseen_runs.clamp(0, MAX_EARLIER_RUNS) {
        let mut player = Player::new(around, None, left);
        program.run(&mut player);
        left = player.written.into_iter().filter(|(path, _)| is_kept(around, path)).collect();
    }
    left
}

fn played(mut player: Player<'_>, flow: Flow) -> Played {
    let is_unfinished = player.flush();
    let fault = player.fault.take();
    if let Some(fault) = &fault {
        player.lines.push(Line { after: player.elapsed, text: format!("sh: {fault}") });
    }
    let end = match (flow, &fault) {
        (_, Some(fault)) => Some((player.elapsed, fault.code())),
        (Flow::OutOfTime, _) => None,
        (Flow::Exit(code), _) => Some((player.elapsed, code)),
        _ => Some((player.elapsed, player.status)),
    };
    let Player { elapsed: until, lines, written, .. } = player;
    Played { end, until, lines, written: written.into_iter().collect(), fault, is_unfinished }
}

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

/// The same with so many steps, of which it takes what it uses.
pub fn exec_within(
    steps: &mut usize,
    command: &[String],
    around: &Surroundings,
    files: Vec<Change>,
    standard_input: Option<String>,
) -> Option<Executed> {
    let script = match Script::of_command(command).and_then(|script| check_shell(command).map(|()| script)) {
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
    let (mut scripts, mut open, mut bytes_left) = (Vec::new(), String::new(), MAX_TYPED_BYTES);
    for line in text.split_inclusive('\n') {
        open.push_str(line);
        let is_too_much = bytes_left < open.len();
        bytes_left = bytes_left.saturating_sub(open.len());
        let read = if is_too_much { Err(Unplayable::Faulty(Fault::TooLong)) } else { Script::parse(&open) };
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
    Executed { end, out, errors, written, is_waiting: player.is_waiting, shell }
}

impl Executed {
    /// It never began.
    fn of_fault(fault: &Fault) -> Executed {
        let errors = format!("sh: {fault}\n");
        Executed { end: Some((Duration::ZERO, fault.code())), errors, ..Executed::default() }
    }
}

/// Whether a command does the same whatever it finds.
pub fn is_constant(command: &[String]) -> bool {
    let text = |script: &Script| {
        !script.any_command(&|name, _| {
            !matches!(commands::base_name(name), "echo" | "sleep" | "true" | "false" | "exit" | ":")
        })
    };
    let at = command.iter().position(|word| commands::is_command_flag(word));
    match at
        .and_then(|at| command.get(at + 1))
        .filter(|_| command.first().is_some_and(|it| is_shell(commands::base_name(it))))
    {
        Some(script) => Script::parse(script).is_ok_and(|script| text(&script)),
        None => Script::of_command(command).is_ok_and(|script| text(&script)),
    }
}

/// That `sh -c script` has a script that is understood.
fn check_shell(command: &[String]) -> Result<(), Unplayable> {
    let at = command.iter().position(|word| commands::is_command_flag(word));
    let is_shell = command.first().is_some_and(|program| is_shell(commands::base_name(program)));
    match at.and_then(|at| command.get(at + 1)) {
        Some(script) if is_shell => Script::parse(script).map(drop),
        _ => Ok(()),
    }
}

/// The last word of a process that ended with `code`: the file of its `terminationMessagePath`, or the
/// end of its log.
pub fn termination_message(played: &Played, code: i32, around: &Surroundings) -> String {
    let written = played.written.iter().find(|(written, _)| *written == around.message_path);
    let text = written.and_then(|(_, file)| file.as_ref()).map(File::text).unwrap_or_default();
    if !text.is_empty() {
        return cut(text, MAX_MESSAGE_BYTES);
    }
    if !around.falls_back_to_logs || code == 0 {
        return String::new();
    }
    let lines = &played.lines[played.lines.len().saturating_sub(MAX_LOG_MESSAGE.1)..];
    let mut text: String = lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
    if played.is_unfinished {
        text.pop();
    }
    cut(text, MAX_LOG_MESSAGE.0)
}

/// The last `limit` bytes.
fn cut(text: String, limit: usize) -> String {
    let mut from = text.len().saturating_sub(limit);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

/// What a container wrote into volumes that others see.
pub fn left_in_volumes(written: &[Change], around: &Surroundings) -> Vec<Left> {
    let in_volume = |(path, file): &Change| {
        let mount = file_system::mount_of(&around.mounts, path).filter(|mount| mount.is_kept)?;
        let inner = path[mount.path.trim_end_matches('/').len()..].trim_start_matches('/');
        let inner = format!("{}/{inner}", mount.sub_path);
        let (volume, path) = (mount.volume.clone(), inner.trim_matches('/').to_owned());
        Some(Left { volume, path, file: file.clone() })
    };
    written.iter().filter_map(in_volume).collect()
}

/// Whether what is written there stays, for others too.
pub fn is_kept(around: &Surroundings, path: &str) -> bool {
    file_system::mount_of(&around.mounts, path).is_some_and(|mount| mount.is_kept)
}

impl Program {
    fn run(&self, player: &mut Player<'_>) -> Flow {
        contained(player, |player| match self {
            Program::Script(script) => player.list(&script.list),
            Program::Agnhost(line) => agnhost::run(player, line),
            Program::Nothing => Flow::Go,
            Program::Faulty(fault) => player.stop(fault.clone()),
        })
    }
}

/// A panic while something is played is the end of that container, and not of all on its node.
fn contained(player: &mut Player<'_>, play: impl FnOnce(&mut Player<'_>) -> Flow) -> Flow {
    let played = catch_unwind(AssertUnwindSafe(|| play(player)));
    played.unwrap_or_else(|_| player.stop(told_broken()))
}

fn told_broken() -> Fault {
    tracing::error!("a script panicked: its container ends");
    Fault::Broken
}

/// What the container runs. `$(NAME)` in its words is filled in as the kubelet does, when its variables
/// are known.
fn program(container: &Container, around: Option<&Surroundings>) -> Option<Program> {
    let read = catch_unwind(AssertUnwindSafe(|| read_program(container, around)));
    read.unwrap_or_else(|_| Some(Program::Faulty(told_broken())))
}

fn read_program(container: &Container, around: Option<&Surroundings>) -> Option<Program> {
    let filled = |word: &String| match around {
        Some(around) => expansion::expand(word, |name| around.variables.get(name).cloned()),
        None => expansion::expand(word, |_| Some(String::new())),
    };
    let mut bytes_left = MAX_START_BYTES;
    let mut all = |words: &[String]| -> Option<Vec<String>> {
        let word = |word: &String| {
            let filled = filled(word);
            bytes_left = bytes_left.checked_sub(filled.len())?;
            Some(filled).filter(|filled| filled.len() <= MAX_WORD_BYTES)
        };
        words.iter().map(word).collect()
    };
    let (Some(command), Some(args)) = (all(&container.command), all(&container.args)) else {
        return Some(Program::Faulty(Fault::TooLong));
    };
    if let Some(line) = agnhost::command_line(&container.image, &command, &args) {
        return Some(Program::Agnhost(line));
    }
    if command.is_empty() && !images::runs_a_shell(&container.image) {
        return (images::base_name(&container.image) == "hello-world").then_some(Program::Nothing);
    }
    let words: Vec<String> = command.into_iter().chain(args).collect();
    let name = words.first().map(|program| commands::base_name(program));
    match (name, words.get(1..).unwrap_or_default()) {
        // A shell that nobody types into reads the end of its input at once.
        (None, []) => (!container.stdin).then_some(Program::Nothing),
        (Some(name), []) if is_shell(name) => (!container.stdin).then_some(Program::Nothing),
        (Some(name), [flags, text, ..]) if is_shell(name) && commands::is_command_flag(flags) => {
            of_script(Script::parse(text))
        }
        (Some(name), _) if is_shell(name) => None,
        _ => of_script(Script::of_command(&words)),
    }
}

/// What is not known is not played.
fn of_script(script: Result<Script, Unplayable>) -> Option<Program> {
    match script {
        Ok(script) => Some(Program::Script(script)),
        Err(Unplayable::Faulty(fault)) => Some(Program::Faulty(fault)),
        Err(Unplayable::Unknown) => None,
    }
}

pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "ash")
}

#[cfg(test)]
mod tests;
