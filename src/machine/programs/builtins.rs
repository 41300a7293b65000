//! What a shell does itself about its variables, options and arguments.

use std::sync::Arc;

use super::words::{self, printf};
use crate::bounds::ScriptFault;
use crate::interpreter::dialect::Dialect;
use crate::interpreter::hearing::HeardLine;
use crate::interpreter::player::{AfterCommand, Player};

pub(super) const NAMES: &[&str] = &[
    "export", "unset", "set", "shift", "local", "declare", "typeset", "readonly", "read", "let", "getopts",
    "alias", "unalias", "hash", "ulimit", "umask", "printf", "echo", "times", "shopt", "bind", "disown",
    "history",
];

/// Runs one of them.
pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) -> AfterCommand {
    match name {
        "export" | "readonly" if words.iter().all(|word| word.starts_with('-')) => {
            tell_variables(player, name)
        }
        "export" | "readonly" => put(player, words),
        "local" => local(player, words),
        "declare" | "typeset" if player.locals.is_empty() => put(player, words),
        "declare" | "typeset" => local(player, words),
        "unset" => unset(player, words),
        "set" => set(player, words),
        "shift" => shift(player, words),
        "read" => return read(player, words),
        "let" => {
            let mut last = 0;
            for word in words {
                last = player.sum(word);
            }
            player.status = i32::from(last == 0);
        }
        "getopts" => getopts(player, words),
        "umask" if words.is_empty() => player.say("0022\n"),
        "ulimit" => ulimit(player, words),
        "printf" => say_printf(player, words),
        "echo" => {
            let said = words::echo(words, player.dialect);
            player.say(&said);
        }
        "history" => history(player, words),
        "times" => player.say("0m0.00s 0m0.00s\n0m0.00s 0m0.00s\n"),
        _ => {}
    }
    AfterCommand::Go
}

fn tell_variables(player: &mut Player<'_>, name: &str) {
    let mut said = String::new();
    for (variable, value) in player.variables.iter().filter(|(variable, _)| *variable != "RANDOM") {
        said.push_str(&format!("{name} {variable}='{value}'\n"));
    }
    player.say(&said);
}

/// `NAME=value`, or a name that is to have none yet.
fn put(player: &mut Player<'_>, words: &[&str]) {
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        if let Some((name, value)) = word.split_once('=') {
            player.set(name, value.into());
        }
    }
}

/// Variables that have their old values again when the function returns.
fn local(player: &mut Player<'_>, words: &[&str]) {
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let before = player.variables.get(name).cloned();
        if !player.handle(before.as_ref().map_or(0, String::len)) {
            return;
        }
        if let Some(locals) = player.locals.last_mut().filter(|all| !all.iter().any(|(own, _)| own == name)) {
            locals.push((name.to_owned(), before));
        }
        player.set(name, value.into());
    }
}

fn unset(player: &mut Player<'_>, words: &[&str]) {
    let is_function = words.first() == Some(&"-f");
    let names: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    if is_function {
        let functions = Arc::make_mut(&mut player.functions);
        names.iter().for_each(|name| drop(functions.remove(*name)));
    } else {
        player.unset(&names);
    }
}

/// Options by letters and names, and arguments.
fn set(player: &mut Player<'_>, words: &[&str]) {
    if words.is_empty() {
        let said: String =
            player.variables.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect();
        return player.say(&said);
    }
    let mut words = words;
    while let [flag, rest @ ..] = words {
        let is_on = flag.starts_with('-');
        let letters = match flag.strip_prefix(['-', '+']) {
            Some("-") => return player.arguments = arguments(rest),
            Some(letters) if !letters.is_empty() => letters,
            _ => return player.arguments = arguments(words),
        };
        words = rest;
        for letter in letters.chars() {
            let known = match (letter, words) {
                ('o', [name, rest @ ..]) => {
                    words = rest;
                    player.options.switch(name, is_on)
                }
                ('o', []) => true,
                (letter, _) => player.options.switch(letter.encode_utf8(&mut [0; 4]), is_on),
            };
            if !known {
                return player.give_up(&format!("set: illegal option -{letter}"), 2);
            }
        }
    }
}

fn arguments(words: &[&str]) -> Arc<Vec<String>> {
    Arc::new(words.iter().map(ToString::to_string).collect())
}

fn shift(player: &mut Player<'_>, words: &[&str]) {
    let count = words.first().and_then(|count| count.parse().ok()).unwrap_or(1);
    if count > player.arguments.len() {
        return player.status = 1;
    }
    player.handle(player.arguments.iter().map(String::len).sum());
    player.arguments = Arc::new(player.arguments[count..].to_vec());
}

/// `read [-r] [-p PROMPT] NAME...`: a line, parted as `IFS` says.
fn read(player: &mut Player<'_>, words: &[&str]) -> AfterCommand {
    let mut is_raw = false;
    let mut names = Vec::new();
    let mut words = words;
    while let [word, rest @ ..] = words {
        words = match (*word, rest) {
            ("-p", [prompt, rest @ ..]) => {
                player.complain(prompt);
                rest
            }
            ("-t" | "-n" | "-d" | "-u" | "-N", [_, rest @ ..]) => rest,
            (flag, rest) if flag.starts_with('-') && flag.len() > 1 => {
                is_raw |= flag.contains('r');
                rest
            }
            (name, rest) => {
                names.push(name);
                rest
            }
        };
    }
    let names = if names.is_empty() { vec!["REPLY"] } else { names };
    let line = if player.hears() {
        match player.hear_line() {
            HeardLine::Line(line) => line,
            HeardLine::Nothing => return AfterCommand::OutOfTime,
            HeardLine::Interrupted(letter) => return player.interrupt(letter),
            HeardLine::End => String::new(),
        }
    } else {
        let input = player.input();
        let (line, rest) = input.split_at(input.find('\n').map_or(input.len(), |at| at + 1));
        player.standard_input = Some(rest.to_owned());
        line.to_owned()
    };
    player.status = i32::from(!line.ends_with('\n'));
    let line = line.strip_suffix('\n').unwrap_or(&line);
    let line = if is_raw { line.to_owned() } else { line.replace('\\', "") };
    assign(player, &names, &line);
    AfterCommand::Go
}

fn assign(player: &mut Player<'_>, names: &[&str], line: &str) {
    let separators = player.variables.get("IFS").cloned().unwrap_or_else(|| " \t\n".into());
    let is_blank = |c: char| c.is_whitespace() && separators.contains(c);
    let mut rest = line.trim_start_matches(is_blank).trim_end_matches(is_blank);
    for (at, name) in names.iter().enumerate() {
        let is_last = at + 1 == names.len();
        let end = rest.find(|c| separators.contains(c)).filter(|_| !is_last).unwrap_or(rest.len());
        player.set(name, rest[..end].to_owned());
        rest = rest[end..].trim_start_matches(is_blank);
        if let Some(hard) = rest.chars().next().filter(|c| separators.contains(*c) && !c.is_whitespace()) {
            rest = rest[hard.len_utf8()..].trim_start_matches(is_blank);
        }
    }
}

/// `getopts OPTIONS NAME`: one option of the arguments at a time, counted in `OPTIND`.
fn getopts(player: &mut Player<'_>, words: &[&str]) {
    let [options, name, given @ ..] = words else { return player.status = 2 };
    let given: Vec<String> = match given {
        [] => player.arguments.to_vec(),
        given => given.iter().map(ToString::to_string).collect(),
    };
    let index: usize = player.variable("OPTIND").parse().unwrap_or(1).max(1);
    let letter_at: usize = player.variable("_OPTPOS").parse().unwrap_or(1);
    let word = given.get(index - 1).cloned().unwrap_or_default();
    let letter = word.strip_prefix('-').and_then(|letters| letters.chars().nth(letter_at - 1));
    let Some(letter) = letter.filter(|_| word != "--") else {
        let next = if word == "--" { index + 1 } else { index };
        player.set("OPTIND", next.to_string());
        player.set(name, "?".into());
        return player.status = 1;
    };
    let takes = options.split_once(letter).is_some_and(|(_, rest)| rest.starts_with(':'));
    let is_known = letter != ':' && options.contains(letter);
    let rest: String = word.chars().skip(letter_at + 1).collect();
    let (mut next, mut position) = (index, letter_at + 1);
    if takes {
        let value = if rest.is_empty() { given.get(index).cloned() } else { Some(rest.clone()) };
        next = index + 1 + usize::from(rest.is_empty());
        position = 1;
        player.set("OPTARG", value.unwrap_or_default());
    } else if rest.is_empty() {
        (next, position) = (index + 1, 1);
    }
    player.set("OPTIND", next.to_string());
    player.set("_OPTPOS", position.to_string());
    if !is_known {
        let said = player.says_shell(&format!("illegal option -- {letter}"));
        player.complain(&said);
    }
    player.set(name, if is_known { letter.to_string() } else { "?".into() });
}

/// `history`, as bash and BusyBox print it; Debian's `sh` has none.
fn history(player: &mut Player<'_>, words: &[&str]) {
    if player.dialect == Dialect::Dash {
        return player.miss("history");
    }
    if words.first() == Some(&"-c") {
        return player.history.clear();
    }
    let last = words.first().and_then(|count| count.parse().ok()).unwrap_or(usize::MAX);
    let lines = player.history.lines();
    let said = lines.iter().enumerate().skip(lines.len().saturating_sub(last)).map(|(at, line)| match player
        .dialect
    {
        Dialect::Bash => format!("{:>5}  {line}\n", at + 1),
        _ => format!("{at:>4} {line}\n"),
    });
    let said: String = said.collect();
    player.say(&said);
}

fn ulimit(player: &mut Player<'_>, words: &[&str]) {
    match words {
        ["-n"] | ["-Sn"] | ["-Hn"] => player.say("1048576\n"),
        [] | [_] => player.say("unlimited\n"),
        _ => {}
    }
}

fn say_printf(player: &mut Player<'_>, words: &[&str]) {
    let (name, words) = match words {
        ["-v", name, rest @ ..] => (Some(*name), rest),
        words => (None, words),
    };
    let words = words.strip_prefix(&["--"]).unwrap_or(words);
    let [format, rest @ ..] = words else { return player.fail("printf: usage: printf format [arguments]\n") };
    match (printf(format, rest), name) {
        (None, _) => drop(player.stop(ScriptFault::Memory)),
        (Some(said), Some(name)) => player.set(name, said),
        (Some(said), None) => player.say(&said),
    }
}
