//! What the shell does itself, and programs that are about neither files nor texts.

use std::collections::BTreeSet;
use std::time::Duration;

use super::conditions::holds;
use super::dates;
use super::ends;
use super::names::base_name;
use super::net::database_clients;
use super::shells::{run_file, run_shell, source};
use super::{
    awk, builtins, columns, expr, file_programs, finding, interfaces, listens, machine_programs, mounting,
    net, other_roots, packages, text_programs, tools,
};
use crate::agnhost;
use crate::bounds::{BYTES_PER_STEP, MAX_DEPTH, ScriptFault};
use crate::file_system;
use crate::interpreter::dialect::Dialect;
use crate::interpreter::player::{AfterCommand, Player};
use crate::shell::{self, Script, ScriptReading, Unplayable, Word};
use crate::surroundings::sysctl_name;

/// As the nodes say it of themselves.
const KERNEL: &str = "6.12.48+deb13-amd64";

/// Programs of this file; those about files and texts are beside it.
const PROGRAMS: &[&str] = &[
    "true",
    ":",
    "false",
    "exit",
    "break",
    "continue",
    "sleep",
    "env",
    "printenv",
    "date",
    "whoami",
    "id",
    "pwd",
    "cd",
    "test",
    "[",
    "[[",
    "expr",
    "seq",
    "sh",
    "bash",
    "ash",
    "dash",
    "exec",
    "trap",
    "sync",
    "perl",
    "uname",
    "sysctl",
    "nohup",
    "uptime",
    "return",
    "wait",
    "eval",
    ".",
    "source",
    "command",
    "builtin",
    "type",
    "kill",
    "jobs",
    "time",
    "nice",
    "setsid",
    "chroot",
    "nsenter",
    "su-exec",
    "gosu",
    "tini",
    "dumb-init",
    "busybox",
];

/// Whether `program` is one that is played; its folder does not matter.
pub(crate) fn is_known(program: &str) -> bool {
    let name = base_name(program);
    PROGRAMS.contains(&name)
        || builtins::NAMES.contains(&name)
        || file_programs::is_known(name)
        || columns::NAMES.contains(&name)
        || text_programs::is_known(name)
        || net::is_known(name)
        || tools::is_known(name)
        || machine_programs::is_known(name)
        || mounting::is_known(name)
        || interfaces::is_known(name)
        || listens::is_known(name)
}

/// Whether a program is known, and does with these arguments what is known of it.
pub(crate) fn is_understood(program: &str, arguments: &[Word]) -> bool {
    match base_name(program) {
        "awk" => awk::is_understood(arguments),
        name if listens::is_known(name) => listens::is_understood(name, arguments),
        // What a script's own container serves nobody knows; others are asked.
        name if database_clients::is_known(name) => database_clients::asks_others(name, arguments),
        "exec" | "nohup" => {
            let mut programs = arguments.iter().map(|word| shell::plain(word).unwrap_or_default());
            let last = programs.find(|word| !matches!(base_name(word), "exec" | "nohup"));
            last.is_none_or(|word| is_known(word) && !database_clients::is_known(base_name(word)))
        }
        _ => is_known(program),
    }
}

/// Reads a script of which all programs are known.
///
/// # Errors
/// Why it is not played.
pub(crate) fn read_script(text: &str) -> Result<Script, Unplayable> {
    Script::parse(text, ScriptReading { knows: Some(is_understood), has_braces: false })
}

/// Reads a script that may name any program: what is not there is not found when it is run.
///
/// # Errors
/// Why it is not played.
pub(crate) fn read_any_script(text: &str, has_braces: bool) -> Result<Script, Unplayable> {
    Script::parse(text, ScriptReading { knows: None, has_braces })
}

/// Reads a program with its arguments, as no shell sees them.
///
/// # Errors
/// Why it is not played.
pub(crate) fn read_command(words: &[String]) -> Result<Script, Unplayable> {
    Script::of_command(words, is_understood)
}

/// Reads a script for the shell that plays.
///
/// # Errors
/// How the play goes on when it cannot be read; what is wrong with it was said.
pub(crate) fn read(player: &mut Player<'_>, text: &str) -> Result<Script, AfterCommand> {
    // Reading a script takes longer than reading any other text.
    player.handle(text.len() * BYTES_PER_STEP / 16);
    let why = match read_any_script(text, player.dialect == Dialect::Bash) {
        Ok(script) => return Ok(script),
        Err(Unplayable::Unknown) => ScriptFault::Syntax("this part of the language is not played".into()),
        Err(Unplayable::Faulty(fault @ ScriptFault::Syntax(_))) => fault,
        Err(Unplayable::Faulty(fault)) => return Err(player.stop(fault)),
    };
    player.complain(&format!("{}: {why}\n", player.name.clone()));
    player.status = why.code();
    Err(AfterCommand::Go)
}

/// Runs a program, or what the shell does itself.
pub(crate) fn run(player: &mut Player<'_>, program: &str, arguments: &[String]) -> AfterCommand {
    if let Some(flow) = run_declared(player, base_name(program)) {
        return flow;
    }
    let plain: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(path) = player.program_file(program) {
        return match player.file(&path).and_then(|file| packages::program_in(&file)) {
            Some(name) if is_known(&name) => run_known(player, &name, &plain),
            _ => run_file(player, &path, &plain),
        };
    }
    if let Some(flow) = run_agnhost(player, program, arguments) {
        return flow;
    }
    if !player.has_image_program(program) {
        player.miss(program);
        return AfterCommand::Go;
    }
    run_known(player, base_name(program), &plain)
}

/// agnhost, where it is the image's own: as any program of a script it ends, and the script goes on.
fn run_agnhost(player: &mut Player<'_>, program: &str, arguments: &[String]) -> Option<AfterCommand> {
    if !agnhost::is_binary(program) {
        return None;
    }
    let command: Vec<String> = std::iter::once(program.to_owned()).chain(arguments.iter().cloned()).collect();
    let line = agnhost::command_line(&player.around.image, &command, &[])?;
    match agnhost::run(player, &line) {
        AfterCommand::Exit(code) => {
            player.status = code;
            Some(AfterCommand::Go)
        }
        flow => Some(flow),
    }
}

/// Runs one that is played and is there.
fn run_known(player: &mut Player<'_>, name: &str, words: &[&str]) -> AfterCommand {
    match (name, words) {
        ("exit", []) => return AfterCommand::Exit(player.last_status),
        ("exit", [code, ..]) => return AfterCommand::Exit(code.trim().parse().unwrap_or(2) & 0xff),
        ("return", words) => {
            let code = words.first().and_then(|code| code.parse().ok());
            return AfterCommand::Return(code.unwrap_or(player.last_status));
        }
        ("wait", words) => return player.wait_for(words),
        ("kill", words) => return player.kill(words),
        ("jobs", _) => player.tell_jobs(),
        ("trap", words) => player.trap(words),
        ("break", words) => return AfterCommand::Break(loops(words)),
        ("continue", words) => return AfterCommand::Continue(loops(words)),
        ("sleep", ["infinity" | "inf"]) => return player.sleep(Duration::MAX),
        ("sleep", times) => match slept(times) {
            Some(time) if !times.is_empty() => return player.sleep(time),
            _ => player.fail(&format!("sleep: invalid number '{}'\n", times.join(" "))),
        },
        ("sh" | "bash" | "ash" | "dash", words) => return run_shell(player, name, words),
        ("exec" | "nohup", words) => return instead(player, name, words),
        ("eval", words) => return player.evaluate(&words.join(" ")),
        ("." | "source", [path, ..]) => return source(player, path),
        ("command", ["-v", words @ ..]) => finding::tell_places(player, words),
        ("type", ["-t", words @ ..]) => finding::tell_kinds(player, words, true),
        ("command", ["-V", words @ ..]) | ("type", words) => finding::tell_kinds(player, words, false),
        ("command" | "builtin" | "time" | "nice" | "setsid" | "tini" | "dumb-init" | "busybox", words) => {
            return run_behind(player, name, words);
        }
        ("su-exec" | "gosu", words) => {
            return run_behind(player, name, words.get(1..).unwrap_or_default());
        }
        ("chroot", words) => return other_roots::change_root(player, words, run_behind),
        ("nsenter", words) => return other_roots::enter_namespaces(player, words, run_behind),
        ("env", words) if words.iter().any(|word| !word.contains('=') && *word != "-i") => {
            return run_with_variables(player, words);
        }
        ("perl", [.., program]) => return pi(player, program),
        ("cd", words) => cd(player, words),
        ("test" | "[" | "[[", words) => {
            let words = words.strip_suffix(&["]"]).or(words.strip_suffix(&["]]"])).unwrap_or(words);
            player.status = i32::from(!holds(player, words));
        }
        ("false", _) => player.status = 1,
        ("tail", words) if ends::is_plain_tail(words) => ends::tail(player, words),
        (name, words) if builtins::NAMES.contains(&name) => return builtins::run(player, name, words),
        (name, words) if PROGRAMS.contains(&name) => simple(player, name, words),
        (name, words) => return run_other(player, name, words),
    }
    AfterCommand::Go
}

/// A program that says what somebody has declared.
fn run_declared(player: &mut Player<'_>, name: &str) -> Option<AfterCommand> {
    let said = player.around.declared.get(name)?;
    let flow = player.sleep(said.delay);
    if flow == AfterCommand::Go {
        player.say(&said.out);
        player.complain(&said.errors);
        player.status = said.code;
    }
    Some(flow)
}

/// Those of other files.
fn run_other(player: &mut Player<'_>, name: &str, words: &[&str]) -> AfterCommand {
    if interfaces::is_known(name) {
        interfaces::run(player, name, words);
        return AfterCommand::Go;
    }
    if tools::is_known(name) {
        return tools::run(player, name, words, run);
    }
    if mounting::is_known(name) {
        mounting::run(player, name, words);
        return AfterCommand::Go;
    }
    if machine_programs::is_known(name) {
        return machine_programs::run(player, name, words);
    }
    if net::is_known(name) {
        return net::run(player, name, words);
    }
    if listens::is_known(name) {
        return listens::run(player, name, words);
    }
    if file_programs::is_known(name) {
        return file_programs::run(player, name, words, run);
    }
    if columns::NAMES.contains(&name) {
        columns::run(player, name, words);
    } else {
        text_programs::run(player, name, words);
    }
    AfterCommand::Go
}

fn loops(words: &[&str]) -> usize {
    words.first().and_then(|count| count.parse().ok()).unwrap_or(1).max(1)
}

/// A program whose name stands behind this one's flags.
fn run_behind(player: &mut Player<'_>, runner: &str, words: &[&str]) -> AfterCommand {
    let words: Vec<&str> = words.iter().copied().skip_while(|word| word.starts_with('-')).collect();
    let Some((program, rest)) = words.split_first() else { return AfterCommand::Go };
    if !player.has_program(program) {
        player.miss_behind(runner, program);
        return AfterCommand::Go;
    }
    if player.depth == MAX_DEPTH {
        return player.stop(ScriptFault::Depth);
    }
    let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
    player.depth += 1;
    let flow = run(player, program, &rest);
    player.depth -= 1;
    flow
}

/// `env NAME=value PROGRAM`
fn run_with_variables(player: &mut Player<'_>, words: &[&str]) -> AfterCommand {
    let count = words.iter().take_while(|word| word.contains('=') || **word == "-i").count();
    let before = player.variables.clone();
    for (name, value) in words[..count].iter().filter_map(|word| word.split_once('=')) {
        player.set(name, value.into());
    }
    let flow = run_behind(player, "env", &words[count..]);
    player.variables = before;
    flow
}

fn cd(player: &mut Player<'_>, words: &[&str]) {
    let home = player.variable("HOME");
    let old = player.variable("OLDPWD");
    let target = match words.iter().find(|word| **word != "-P" && **word != "-L" && **word != "--") {
        None => &home,
        Some(&"-") => &old,
        Some(folder) => *folder,
    };
    let full = file_system::absolute(&player.folder, target);
    let is_file = player.file(&full).is_some_and(|file| !file.is_folder);
    let is_of_image = file_system::is_of_image(&format!("{full}/"));
    let is_elsewhere = file_system::mount_of(player.mounts(), &full).is_none();
    // Of an image nobody knows which folders it has; of a volume it is known.
    if is_file || !(player.is_folder(&full) || is_of_image || is_elsewhere) {
        let what = if is_file { "Not a directory" } else { "No such file or directory" };
        let said = player.says_shell(&format!("cd: can't cd to {target}: {what}"));
        player.complain(&said);
        return player.status = 1;
    }
    let before = std::mem::replace(&mut player.folder, full);
    player.set("OLDPWD", before);
}

/// `exec PROGRAM`, `nohup PROGRAM`, and `nohup exec PROGRAM`.
fn instead(player: &mut Player<'_>, name: &str, words: &[&str]) -> AfterCommand {
    let is_prefix = |word: &&&str| matches!(base_name(word), "exec" | "nohup");
    let prefixes = words.iter().take_while(is_prefix).count();
    let is_exec = name == "exec" || words[..prefixes].iter().any(|word| base_name(word) == "exec");
    let Some((program, rest)) = words[prefixes..].split_first() else { return AfterCommand::Go };
    let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
    match run(player, program, &rest) {
        AfterCommand::Go if is_exec => AfterCommand::Exit(player.status),
        flow => flow,
    }
}

/// Those that say something and take no time.
fn simple(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let said = match (name, words) {
        ("env", _) | ("printenv", []) => {
            let mut said = String::new();
            for (name, value) in player.variables.iter().filter(|(name, _)| *name != "RANDOM") {
                said.push_str(&format!("{name}={value}\n"));
            }
            said
        }
        ("printenv", [name, ..]) => match player.variables.get(name) {
            Some(value) => format!("{value}\n"),
            None => return player.status = 1,
        },
        ("date", words) => return dates::date(player, words),
        ("uptime", _) => uptime(player),
        ("whoami", _) if player.around.user == 0 => "root\n".into(),
        ("whoami", _) => {
            return player.fail(&format!("whoami: unknown uid {}\n", player.around.user));
        }
        ("id", words) => id(player, words),
        ("pwd", _) => format!("{}\n", player.folder),
        ("expr", words) => {
            let (said, status) = expr::evaluate(player, words);
            player.status = status;
            said
        }
        ("seq", words) => sequence(words),
        ("uname", words) => match words {
            [] => "Linux\n".into(),
            words => uname(player, words),
        },
        ("sysctl", [name, ..]) => {
            let name = sysctl_name(name);
            let value = player.around.sysctls.get(&name).map_or("0", String::as_str);
            format!("{name} = {value}\n")
        }
        _ => return,
    };
    player.say(&said);
}

impl Player<'_> {
    /// Says why on the standard error, and fails.
    pub(crate) fn fail(&mut self, why: &str) {
        self.complain(why);
        self.status = 1;
    }
}

/// `print bpi(2000)`: it takes a moment.
fn pi(player: &mut Player<'_>, program: &str) -> AfterCommand {
    let digits = program.trim().strip_prefix("print bpi(").and_then(|rest| rest.strip_suffix(')'));
    let Some(digits) = digits.and_then(|digits| digits.parse::<usize>().ok()) else {
        return AfterCommand::Go;
    };
    let flow = player.sleep(Duration::from_secs(1));
    if flow == AfterCommand::Go {
        player.say(&format!("$(pi {digits})\n"));
    }
    flow
}

/// How long the machine runs, and that nothing waits.
fn uptime(player: &Player<'_>) -> String {
    let now = player.now();
    let minutes = player.elapsed.as_secs() / 60;
    format!(" {} up {minutes} min,  load average: 0.00, 0.00, 0.00\n", now.format("%H:%M:%S"))
}

fn id(player: &Player<'_>, words: &[&str]) -> String {
    let around = player.around;
    // In the kernel's order.
    let groups: BTreeSet<i64> = around.groups.iter().copied().chain([around.group]).collect();
    let is_named = words.iter().any(|word| word.starts_with('-') && word.contains('n'));
    let plain = |id: &i64| if *id == 0 && is_named { "root".to_owned() } else { id.to_string() };
    let mut asked = words.iter().filter_map(|word| word.strip_prefix('-')).flat_map(str::chars);
    match asked.find(|letter| "ugG".contains(*letter)) {
        Some('u') => return format!("{}\n", plain(&around.user)),
        Some('g') => return format!("{}\n", plain(&around.group)),
        Some(_) => return groups.iter().map(plain).collect::<Vec<_>>().join(" ") + "\n",
        None => {}
    }
    let name = |id: &i64| if *id == 0 { "0(root)".to_owned() } else { id.to_string() };
    let groups = groups.iter().map(name).collect::<Vec<_>>().join(",");
    format!("uid={} gid={} groups={groups}\n", name(&around.user), name(&around.group))
}

/// The parts of the system's name that are asked for, in their order.
fn uname(player: &Player<'_>, words: &[&str]) -> String {
    let has = |letter| words.iter().any(|word| word.contains(letter) || *word == "-a" || *word == "--all");
    let parts = [
        ('s', "Linux"),
        ('n', player.around.hostname.as_str()),
        ('r', KERNEL),
        ('v', "#1 SMP PREEMPT_DYNAMIC"),
        ('m', "x86_64"),
        ('o', "GNU/Linux"),
    ];
    let wanted = parts.iter().filter(|(letter, _)| has(*letter)).map(|(_, part)| *part);
    format!("{}\n", wanted.collect::<Vec<_>>().join(" "))
}

fn sequence(words: &[&str]) -> String {
    let numbers: Vec<i64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let (first, step, last) = match numbers.as_slice() {
        [last] => (1, 1, *last),
        [first, last] => (*first, 1, *last),
        [first, step, last] => (*first, *step, *last),
        _ => return String::new(),
    };
    let steps = last.saturating_sub(first).checked_div(step);
    let count = steps.map_or(0, |steps| steps.saturating_add(1));
    let number = |at: i64| first.saturating_add(at.saturating_mul(step));
    (0..count.clamp(0, 100_000)).map(|at| format!("{}\n", number(at))).collect()
}

/// All times together; what does not fit is for ever.
fn slept(times: &[&str]) -> Option<Duration> {
    let add = |sum: Duration, time: &&str| sleep_time(time).map(|time| sum.saturating_add(time));
    times.iter().try_fold(Duration::ZERO, add)
}

fn sleep_time(text: &str) -> Option<Duration> {
    let (number, factor) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) if text.ends_with('m') => (number, 60.0),
        Some(number) if text.ends_with('h') => (number, 3600.0),
        Some(number) if text.ends_with('d') => (number, 86_400.0),
        Some(number) => (number, 1.0),
        None => (text, 1.0),
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()
}
