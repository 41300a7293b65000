//! What an invocation runs, as far as it is known: a script, a mode of the test image, or nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::bounds::{MAX_START_BYTES, MAX_WORD_BYTES, ScriptFault};
use crate::configured_web::{BadConfig, ConfiguredWeb};
use crate::image_programs::is_missing;
use crate::interpreter::containment::{contained, told_broken};
use crate::interpreter::dialect::Dialect;
use crate::interpreter::expansion;
use crate::interpreter::player::{AfterCommand, Player};
use crate::invocation::Invocation;
use crate::programs::{names, read_any_script, read_command, read_script, run_typed_shell};
use crate::shell::{Script, Unplayable};
use crate::surroundings::Surroundings;
use crate::{agnhost, configured_web, images};

/// The image of a server that asks the apiserver with its account who asks it.
const ASKS_ABOUT_CLIENTS: &str = "sample-apiserver";
/// Programs that look where somebody listens.
const ABOUT_LISTENERS: [&str; 2] = ["netstat", "ss"];
/// Programs that look which processes there are, and which of them listen.
const ABOUT_PROCESSES: [&str; 11] =
    ["fuser", "kill", "killall", "lsof", "netstat", "pgrep", "pidof", "pkill", "ps", "ss", "top"];

/// What is run, as far as it is known.
pub(crate) enum KnownProgram {
    Script(Script, ShellCall),
    Agnhost(Vec<String>),
    /// A shell that reads what is said to it, by its name.
    Shell(&'static str),
    /// Ends at once and well.
    Nothing,
    /// Waits until it is told to end: the image `pause`.
    Pause,
    /// A web server with what its files configure, or why it does not start.
    Configured(Result<ConfiguredWeb, BadConfig>),
    /// Cannot begin.
    Faulty(ScriptFault),
}

/// The shell that plays a script: its name, what it was told, and what it is called with. Without a name it
/// is no script but a program.
#[derive(Default)]
pub(crate) struct ShellCall {
    name: String,
    /// Of `-eux`.
    letters: String,
    /// `$0` and on.
    words: Vec<String>,
}

/// Whether what the container's command does is known.
pub fn is_known(invocation: &Invocation<'_>) -> bool {
    program(invocation, None).is_some()
}

/// Whether a script that is played has one of these programs in it.
pub(crate) fn runs_any(invocation: &Invocation<'_>, programs: &[&str]) -> bool {
    match program(invocation, None) {
        Some(KnownProgram::Script(script, _)) => {
            script.any_command(&|name, _| programs.contains(&names::base_name(name)))
        }
        _ => false,
    }
}

/// Whether its command is known and looks at files or at variables that are not the pod's own: then the
/// volumes and the services that it would find are asked for.
pub fn looks_around(invocation: &Invocation<'_>) -> bool {
    if images::base_name(invocation.image) == ASKS_ABOUT_CLIENTS {
        return true;
    }
    match program(invocation, None) {
        Some(KnownProgram::Script(script, _)) => {
            script.any_command(&|name, _| {
                !matches!(
                    names::base_name(name),
                    "" | "echo" | "sleep" | "true" | "false" | "exit" | "date" | ":"
                )
            }) || names_services(invocation)
        }
        Some(KnownProgram::Shell(_)) => true,
        Some(KnownProgram::Agnhost(line)) => agnhost::looks_around(&line),
        // A volume may have what its image has not.
        Some(KnownProgram::Configured(_) | KnownProgram::Faulty(ScriptFault::Missing(_))) => true,
        Some(KnownProgram::Nothing | KnownProgram::Pause | KnownProgram::Faulty(_)) | None => false,
    }
}

/// Whether its words name variables as a service's are named.
fn names_services(invocation: &Invocation<'_>) -> bool {
    invocation.words().any(|word| word.contains("_SERVICE_") || word.contains("_PORT"))
}

impl KnownProgram {
    pub(crate) fn run(&self, player: &mut Player<'_>) -> AfterCommand {
        contained(player, |player| match self {
            KnownProgram::Script(script, shell) => {
                shell.prepare(player);
                let flow = player.list(&script.list);
                player.finish(flow)
            }
            KnownProgram::Agnhost(line) => agnhost::run(player, line),
            KnownProgram::Shell(name) => run_typed_shell(player, name),
            KnownProgram::Nothing => AfterCommand::Go,
            KnownProgram::Pause => player.sleep(Duration::MAX),
            KnownProgram::Configured(read) => configured_web::run(player, read),
            KnownProgram::Faulty(fault) => player.stop(fault.clone()),
        })
    }
}

/// What the container runs. `$(NAME)` in its words is filled in as the kubelet does, when its variables
/// are known.
pub(crate) fn program(invocation: &Invocation<'_>, around: Option<&Surroundings>) -> Option<KnownProgram> {
    let read = catch_unwind(AssertUnwindSafe(|| read_program(invocation, around)));
    read.unwrap_or_else(|_| Some(KnownProgram::Faulty(told_broken())))
}

fn read_program(invocation: &Invocation<'_>, around: Option<&Surroundings>) -> Option<KnownProgram> {
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
    let (Some(command), Some(args)) = (all(invocation.command), all(invocation.args)) else {
        return Some(KnownProgram::Faulty(ScriptFault::TooLong));
    };
    if let Some(line) = agnhost::command_line(invocation.image, &command, &args) {
        return Some(KnownProgram::Agnhost(line));
    }
    if let Some(program) = command.iter().chain(&args).next()
        && is_missing(invocation.image, program)
        // A volume may have it.
        && !around.is_some_and(|around| around.has_file_named(names::base_name(program)))
    {
        return Some(KnownProgram::Faulty(ScriptFault::Missing(program.clone())));
    }
    if let Some(shell) = listening_shell(invocation) {
        return Some(KnownProgram::Shell(shell));
    }
    if let Some(read) = around.and_then(|around| configured_web::read(invocation, around)) {
        return Some(KnownProgram::Configured(read));
    }
    if command.is_empty() && !images::runs_a_shell(invocation.image) {
        return match images::base_name(invocation.image) {
            "hello-world" => Some(KnownProgram::Nothing),
            "pause" => Some(KnownProgram::Pause),
            _ => None,
        };
    }
    let words: Vec<String> = command.into_iter().chain(args).collect();
    let name = words.first().map(|program| names::base_name(program));
    match (name, words.get(1..).unwrap_or_default()) {
        // A shell that nobody types into reads the end of its input at once.
        (None, []) => Some(KnownProgram::Nothing),
        (Some(name), []) if names::is_shell(name) => Some(KnownProgram::Nothing),
        (Some(name), arguments) if names::is_shell(name) => {
            of_shell(invocation.image, name, &words, arguments)
        }
        _ => of_script(read_command(&words), ShellCall::default()),
    }
}

/// A shell with a script, which is played as it is told. In an image of which everything is known it may name
/// what is not there; of other images nobody knows what they have.
fn of_shell(image: &str, name: &str, words: &[String], arguments: &[String]) -> Option<KnownProgram> {
    let is_whole = images::runs_a_shell(image);
    let Some(at) = arguments.iter().position(|word| names::is_command_flag(word)) else {
        // A file of a volume, or of the image.
        return of_script(read_command(words), ShellCall::default()).filter(|_| is_whole);
    };
    let text = arguments.get(at + 1)?;
    let script = if is_whole { read_any_script(text, name == "bash") } else { read_script(text) };
    let flags = arguments[..=at].iter().filter(|word| word.starts_with('-'));
    let letters = flags.flat_map(|flag| flag.chars()).filter(|letter| "eux".contains(*letter)).collect();
    let words = arguments.get(at + 2..).unwrap_or_default().to_vec();
    of_script(script, ShellCall { name: name.to_owned(), letters, words })
}

impl ShellCall {
    fn prepare(&self, player: &mut Player<'_>) {
        if self.name.is_empty() {
            return;
        }
        player.dialect = Dialect::of(&self.name, &player.around.image);
        player.name.clone_from(self.words.first().unwrap_or(&self.name));
        player.arguments = Arc::new(self.words.iter().skip(1).cloned().collect());
        for letter in self.letters.chars() {
            player.options.switch(letter.encode_utf8(&mut [0; 4]), true);
        }
    }
}

/// The shell that reads its standard input, when that is open. One that is an argument of an image of which
/// nothing is known is taken to be what that image runs then.
fn listening_shell(invocation: &Invocation<'_>) -> Option<&'static str> {
    if !invocation.stdin {
        return None;
    }
    let words: Vec<&str> = invocation.words().map(String::as_str).collect();
    let program = match words.split_first() {
        None => images::shell(invocation.image)?,
        Some((program, flags)) => {
            let is_plain =
                |flag: &&str| matches!(*flag, "-i" | "-l" | "-il" | "-li" | "--login" | "--" | "-");
            Some(names::base_name(program)).filter(|_| flags.iter().all(is_plain))?
        }
    };
    ["sh", "bash", "ash"].into_iter().find(|shell| *shell == program)
}

/// What is not known is not played.
fn of_script(script: Result<Script, Unplayable>, shell: ShellCall) -> Option<KnownProgram> {
    match script {
        Ok(script) => Some(KnownProgram::Script(script, shell)),
        Err(Unplayable::Faulty(fault)) => Some(KnownProgram::Faulty(fault)),
        Err(Unplayable::Unknown) => None,
    }
}

/// Whether a command does the same whatever it finds.
pub fn is_constant(command: &[String]) -> bool {
    let is_other = |name: &str| !matches!(name, "echo" | "sleep" | "true" | "false" | "exit" | ":");
    runs(command, &is_other) == Some(false)
}

/// Whether a command looks which processes there are: of an image of which nothing is known nobody knows.
pub fn looks_at_processes(command: &[String]) -> bool {
    runs(command, &|name| ABOUT_PROCESSES.contains(&name)) == Some(true)
}

/// Whether a command looks at which ports somebody listens.
pub fn looks_at_listeners(command: &[String]) -> bool {
    runs(command, &|name| ABOUT_LISTENERS.contains(&name)) == Some(true)
}

/// Whether a command, or the script of a shell, has such a program in it; nothing when it is not known.
fn runs(command: &[String], is_it: &dyn Fn(&str) -> bool) -> Option<bool> {
    let at = command.iter().position(|word| names::is_command_flag(word));
    let is_shell = command.first().is_some_and(|it| names::is_shell(names::base_name(it)));
    let script = match at.and_then(|at| command.get(at + 1)).filter(|_| is_shell) {
        Some(script) => read_script(script),
        None => read_command(command),
    };
    Some(script.ok()?.any_command(&|name, _| is_it(names::base_name(name))))
}
