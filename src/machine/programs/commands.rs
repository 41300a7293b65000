//! What the shell does itself, and programs that are about neither files nor texts.

use std::time::Duration;

use super::conditions::holds;
use super::names::{base_name, is_command_flag};
use super::tools::AllPrograms;
use super::{awk, file_programs, net, text_programs, tools};
use crate::bounds::{BYTES_PER_STEP, Fault, MAX_MEMORY_BYTES};
use crate::file_system;
use crate::interpreter::hearing::HeardLine;
use crate::interpreter::player::{Flow, Player};
use crate::shell::{self, Script, Unplayable, Word};

/// Programs of this file; those about files and texts are beside it.
const PROGRAMS: &[&str] = &[
    "true", ":", "false", "exit", "break", "continue", "echo", "printf", "sleep", "env", "printenv",
    "export", "unset", "set", "date", "hostname", "whoami", "id", "pwd", "cd", "test", "[", "[[", "expr",
    "seq", "sh", "bash", "ash", "exec", "trap", "umask", "sync", "read", "perl", "uname", "sysctl", "ip",
    "nohup", "uptime", "return", "shift", "local", "wait", "readonly",
];

/// Whether `program` is one that is played; its folder does not matter.
pub(crate) fn is_known(program: &str) -> bool {
    let name = base_name(program);
    PROGRAMS.contains(&name)
        || file_programs::is_known(name)
        || text_programs::is_known(name)
        || net::is_known(name)
        || tools::is_known(name)
}

/// Whether a program is known, and does with these arguments what is known of it.
pub(crate) fn is_understood(program: &str, arguments: &[Word]) -> bool {
    match base_name(program) {
        "awk" => awk::is_understood(arguments),
        "exec" | "nohup" => {
            let mut programs = arguments.iter().map(|word| shell::plain(word).unwrap_or_default());
            let last = programs.find(|word| !matches!(base_name(word), "exec" | "nohup"));
            last.is_none_or(is_known)
        }
        _ => is_known(program),
    }
}

/// Reads a script of which all programs are known.
///
/// # Errors
/// Why it is not played.
pub(crate) fn read_script(text: &str) -> Result<Script, Unplayable> {
    Script::parse(text, is_understood)
}

/// Reads a program with its arguments, as no shell sees them.
///
/// # Errors
/// Why it is not played.
pub(crate) fn read_command(words: &[String]) -> Result<Script, Unplayable> {
    Script::of_command(words, is_understood)
}

/// Runs a program, or what the shell does itself.
pub(crate) fn run(player: &mut Player<'_>, program: &str, arguments: &[String]) -> Flow {
    let name = base_name(program);
    let plain: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match (name, plain.as_slice()) {
        ("exit", []) => return Flow::Exit(player.status),
        ("exit", [code, ..]) => return Flow::Exit(code.trim().parse().unwrap_or(2) & 0xff),
        ("return", words) => {
            let code = words.first().and_then(|code| code.parse().ok());
            return Flow::Return(code.unwrap_or(player.status));
        }
        ("wait", _) => return player.sleep(player.background.saturating_sub(player.elapsed)),
        ("shift", words) => {
            let count = words.first().and_then(|count| count.parse().ok()).unwrap_or(1);
            player.arguments.drain(..count.min(player.arguments.len()));
        }
        ("local" | "readonly", words) => declare(player, words),
        ("break", _) => return Flow::Break,
        ("continue", _) => return Flow::Continue,
        ("sleep", ["infinity" | "inf"]) => return player.sleep(Duration::MAX),
        ("sleep", times) => match slept(times) {
            Some(time) if !times.is_empty() => return player.sleep(time),
            _ => player.fail(&format!("sleep: invalid number '{}'\n", times.join(" "))),
        },
        ("sh" | "bash" | "ash", words) => return run_shell(player, name, words),
        ("exec" | "nohup", words) => return instead(player, name, words),
        ("perl", [.., program]) => return pi(player, program),
        ("cd", [folder, ..]) => player.folder = file_system::absolute(&player.folder, folder),
        ("test" | "[" | "[[", words) => {
            let words = words.strip_suffix(&["]"]).or(words.strip_suffix(&["]]"])).unwrap_or(words);
            player.status = i32::from(!holds(player, words));
        }
        ("false", _) => player.status = 1,
        ("read", names) if player.hears() => return read_heard(player, names),
        ("read", names) => read(player, names),
        ("tail", words) if text_programs::is_plain_tail(words) => text_programs::tail(player, words),
        (name, words) if PROGRAMS.contains(&name) => simple(player, name, words),
        (name, words) if tools::is_known(name) => {
            return tools::run(player, name, words, &AllPrograms { is_known, run });
        }
        (name, words) if net::is_known(name) => return net::run(player, name, words),
        (name, words) if file_programs::is_known(name) => return file_programs::run(player, name, words),
        (name, words) => text_programs::run(player, name, words),
    }
    Flow::Go
}

/// `NAME=value`, or a name that is to have none yet.
fn declare(player: &mut Player<'_>, words: &[&str]) {
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        player.set(name, value.into());
    }
}

/// `exec PROGRAM`, `nohup PROGRAM`, and `nohup exec PROGRAM`.
fn instead(player: &mut Player<'_>, name: &str, words: &[&str]) -> Flow {
    let is_prefix = |word: &&&str| matches!(base_name(word), "exec" | "nohup");
    let prefixes = words.iter().take_while(is_prefix).count();
    let is_exec = name == "exec" || words[..prefixes].iter().any(|word| base_name(word) == "exec");
    let Some((program, rest)) = words[prefixes..].split_first().filter(|(program, _)| is_known(program))
    else {
        return Flow::Go;
    };
    let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
    match run(player, program, &rest) {
        Flow::Go if is_exec => Flow::Exit(player.status),
        flow => flow,
    }
}

/// Those that say something and take no time.
fn simple(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let said = match (name, words) {
        ("echo", words) => echo(words),
        ("printf", [format, rest @ ..]) => match printf(format, rest) {
            Some(said) => said,
            None => {
                player.stop(Fault::Memory);
                return;
            }
        },
        ("env", _) | ("printenv" | "export" | "set", []) => {
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
        ("export", words) => {
            for (name, value) in words.iter().filter_map(|word| word.split_once('=')) {
                player.set(name, value.into());
            }
            return;
        }
        ("unset", words) => return player.unset(words),
        ("set", [flags, ..]) => {
            if flags.starts_with('-') && flags.contains('e') {
                player.stops_at_failure = true;
            }
            player.pipes_fail |= flags.starts_with('-') && words.contains(&"pipefail");
            return;
        }
        ("date", words) => match misread_date(words) {
            Some(word) => return player.fail(&format!("date: invalid date '{word}'\n")),
            None => date(player, words),
        },
        ("uptime", _) => uptime(player),
        ("hostname", _) => format!("{}\n", player.around.hostname),
        ("whoami", _) if player.around.user == 0 => "root\n".into(),
        ("whoami", _) => {
            return player.fail(&format!("whoami: unknown uid {}\n", player.around.user));
        }
        ("id", words) => id(player, words),
        ("pwd", _) => format!("{}\n", player.folder),
        ("expr", words) => {
            let text = words.join(" ");
            player.handle(2 * text.len());
            let sum = player.sum(&text);
            player.status = i32::from(sum == 0);
            format!("{sum}\n")
        }
        ("seq", words) => sequence(words),
        ("uname", words) => match words {
            ["-m"] => "x86_64\n".into(),
            ["-n"] => format!("{}\n", player.around.hostname),
            _ => "Linux\n".into(),
        },
        ("sysctl", [name, ..]) => match player.around.sysctls.get(*name) {
            Some(value) => format!("{name} = {value}\n"),
            None => format!("{name} = 0\n"),
        },
        ("ip", _) => return player.fail("ip: RTNETLINK answers: Operation not permitted\n"),
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

/// `sh -c script`; a shell without one reads it.
fn run_shell(player: &mut Player<'_>, name: &str, words: &[&str]) -> Flow {
    let text = match words.iter().position(|word| is_command_flag(word)) {
        Some(at) => words.get(at + 1).map(ToString::to_string).unwrap_or_default(),
        None if words.iter().all(|word| word.starts_with('-')) && player.hears() => {
            // Whoever plays this goes on with a shell that reads lines.
            player.wanted_shell = ["bash", "ash"].into_iter().find(|shell| *shell == name).or(Some("sh"));
            return Flow::Go;
        }
        None if words.iter().all(|word| word.starts_with('-')) => player.input(),
        None => return Flow::Go,
    };
    // Reading a script takes longer than reading any other text.
    player.handle(text.len() * BYTES_PER_STEP / 16);
    let script = match read_script(&text) {
        Ok(script) => script,
        Err(Unplayable::Unknown) => {
            player.status = 127;
            return Flow::Go;
        }
        Err(Unplayable::Faulty(fault @ Fault::Syntax(_))) => {
            player.complain(&format!("sh: {fault}\n"));
            player.status = fault.code();
            return Flow::Go;
        }
        Err(Unplayable::Faulty(fault)) => return player.stop(fault),
    };
    match player.list(&script.list) {
        Flow::Exit(code) => {
            player.status = code;
            Flow::Go
        }
        flow => flow,
    }
}

/// `print bpi(2000)`: it takes a moment.
fn pi(player: &mut Player<'_>, program: &str) -> Flow {
    let digits = program.trim().strip_prefix("print bpi(").and_then(|rest| rest.strip_suffix(')'));
    let Some(digits) = digits.and_then(|digits| digits.parse::<usize>().ok()) else { return Flow::Go };
    let flow = player.sleep(Duration::from_secs(1));
    if flow == Flow::Go {
        player.say(&format!("$(pi {digits})\n"));
    }
    flow
}

fn read(player: &mut Player<'_>, names: &[&str]) {
    let names: Vec<&&str> = names.iter().filter(|name| !name.starts_with('-')).collect();
    let input = player.input();
    if input.is_empty() {
        return player.status = 1;
    }
    let (line, rest) = input.split_once('\n').unwrap_or((&input, ""));
    let rest = rest.to_owned();
    assign(player, &names, line);
    player.standard_input = Some(rest);
}

/// Reads a line of what is said to the process, as soon as it is.
fn read_heard(player: &mut Player<'_>, names: &[&str]) -> Flow {
    let names: Vec<&&str> = names.iter().filter(|name| !name.starts_with('-')).collect();
    match player.hear_line() {
        HeardLine::Line(line) => assign(player, &names, &line),
        HeardLine::Nothing => return Flow::OutOfTime,
        HeardLine::End | HeardLine::Interrupted => player.status = 1,
    }
    Flow::Go
}

fn assign(player: &mut Player<'_>, names: &[&&str], line: &str) {
    let mut pieces = line.trim().splitn(names.len().max(1), ' ');
    for name in names {
        player.set(name, pieces.next().unwrap_or_default().trim().into());
    }
}

fn echo(words: &[&str]) -> String {
    let mut newline = true;
    let mut escapes = false;
    let mut words = words;
    while let [flag @ ("-n" | "-e" | "-ne" | "-en" | "-E"), rest @ ..] = words {
        newline &= !flag.contains('n');
        escapes |= flag.contains('e');
        words = rest;
    }
    let text = words.join(" ");
    let text = if escapes { unescape(&text) } else { text };
    if newline { text + "\n" } else { text }
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")
}

/// `%s`, `%d` and `%%`, again and again while there are arguments; nothing when that is too much.
fn printf(format: &str, arguments: &[&str]) -> Option<String> {
    let format = unescape(format);
    let (mut out, mut arguments) = (String::new(), arguments.iter());
    loop {
        let (mut rest, mut takes) = (format.as_str(), false);
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            let end = rest[at + 1..].find(|c: char| c.is_ascii_alphabetic() || c == '%');
            let end = at + 1 + end.unwrap_or(0);
            match rest.as_bytes().get(end) {
                Some(b'%') => out.push('%'),
                _ => {
                    takes = true;
                    out.push_str(arguments.next().copied().unwrap_or_default());
                }
            }
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        out.push_str(rest);
        if out.len() > MAX_MEMORY_BYTES {
            return None;
        }
        if !takes || arguments.len() == 0 {
            return Some(out);
        }
    }
}

/// What `date` takes for a time to be set, and cannot read; the word behind an option is the option's.
fn misread_date<'a>(words: &[&'a str]) -> Option<&'a str> {
    let is_option = |word: &str| word.starts_with(['-', '+']);
    let first = words.first().filter(|word| !is_option(word));
    let later =
        words.windows(2).find(|pair| !is_option(pair[1]) && (pair[0] == "-u" || pair[0].starts_with('+')));
    first.or(later.map(|pair| &pair[1])).copied()
}

/// How long the machine runs, and that nothing waits.
fn uptime(player: &Player<'_>) -> String {
    let now = player.now();
    let minutes = player.elapsed.as_secs() / 60;
    format!(" {} up {minutes} min,  load average: 0.00, 0.00, 0.00\n", now.format("%H:%M:%S"))
}

fn date(player: &Player<'_>, words: &[&str]) -> String {
    let now = player.now();
    let format = words.iter().find_map(|word| word.strip_prefix('+'));
    match format.unwrap_or("%a %b %e %H:%M:%S UTC %Y") {
        format
            if chrono::format::StrftimeItems::new(format).any(|item| item == chrono::format::Item::Error) =>
        {
            format!("{format}\n")
        }
        format => format!("{}\n", now.format(format)),
    }
}

fn id(player: &Player<'_>, words: &[&str]) -> String {
    let user = player.around.user;
    let group = player.around.group;
    match words {
        ["-u", ..] => format!("{user}\n"),
        ["-g", ..] | ["-G", ..] => format!("{group}\n"),
        _ => {
            let name = |id: i64| if id == 0 { "0(root)".to_owned() } else { id.to_string() };
            format!("uid={} gid={} groups={}\n", name(user), name(group), name(group))
        }
    }
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
