//! Shells that scripts run: `sh -c`, files, `.`; and what is done with a script that cannot be read.

use std::sync::Arc;

use super::names::{base_name, is_command_flag, is_shell};
use crate::bounds::{MAX_DEPTH, ScriptFault};
use crate::interpreter::dialect::{Dialect, ShellOptions};
use crate::interpreter::player::{AfterCommand, Player, WantedShell};

/// A shell within a shell counts as so many levels, since it takes as much of the stack.
const LEVELS_OF_SHELL: usize = 4;

/// A script in a file, in this shell.
pub(super) fn source(player: &mut Player<'_>, path: &str) -> AfterCommand {
    let Some(file) = player.file(path).filter(|file| !file.is_folder) else {
        player.give_up(&format!("{path}: No such file or directory"), 2);
        return AfterCommand::Go;
    };
    match player.evaluate(&file.text()) {
        AfterCommand::Return(code) => {
            player.status = code;
            AfterCommand::Go
        }
        flow => flow,
    }
}

/// A file that is a program: a script, for the shell that its first line names.
pub(super) fn run_file(player: &mut Player<'_>, path: &str, words: &[&str]) -> AfterCommand {
    let Some(file) = player.file(path) else { return AfterCommand::Go };
    if file.mode & 0o111 == 0 {
        let said = player.says_shell(&format!("{path}: Permission denied"));
        player.complain(&said);
        player.status = 126;
        return AfterCommand::Go;
    }
    let text = file.text();
    let shell = text.strip_prefix("#!").map_or("sh", |rest| rest.lines().next().unwrap_or_default());
    let shell = shell.split_whitespace().map(base_name).rfind(|word| !word.starts_with('-')).unwrap_or("sh");
    if !is_shell(shell) {
        player.miss(shell);
        return AfterCommand::Go;
    }
    let words: Vec<&str> = std::iter::once(path).chain(words.iter().copied()).collect();
    play_text(player, shell, &text, &words)
}

/// A script in a shell of its own, with its name and its arguments.
fn play_text(player: &mut Player<'_>, shell: &str, text: &str, words: &[&str]) -> AfterCommand {
    if player.depth + LEVELS_OF_SHELL > MAX_DEPTH {
        return player.stop(ScriptFault::Depth);
    }
    player.depth += LEVELS_OF_SHELL;
    let dialect = std::mem::replace(&mut player.dialect, Dialect::of(shell, &player.around.image));
    let own_name = words.first().map_or(shell, |name| *name).to_owned();
    let name = std::mem::replace(&mut player.name, own_name);
    let line = std::mem::replace(&mut player.line, 1);
    let flow = player.in_own_process(|player| {
        player.isolated(|player| {
            player.arguments = Arc::new(words.iter().skip(1).map(ToString::to_string).collect::<Vec<_>>());
            player.options = ShellOptions::default();
            player.functions = Arc::default();
            player.evaluate(text)
        })
    });
    (player.dialect, player.name, player.line) = (dialect, name, line);
    player.depth -= LEVELS_OF_SHELL;
    flow
}

/// `sh -c script`, `sh file`; a shell without either reads it.
pub(super) fn run_shell(player: &mut Player<'_>, name: &str, words: &[&str]) -> AfterCommand {
    if let Some(at) = words.iter().position(|word| is_command_flag(word)) {
        let text = words.get(at + 1).map(ToString::to_string).unwrap_or_default();
        let flags = &words[..=at];
        let named: Vec<&str> = words.get(at + 2..).unwrap_or_default().to_vec();
        let named = if named.is_empty() { vec![name] } else { named };
        return play_with_flags(player, (name, &text), flags, &named);
    }
    let (flags, named) = words.split_at(count_flags(words));
    let named = named.strip_prefix(&["--"]).unwrap_or(named);
    // `sh -s -- a b` reads it, too, and has these arguments.
    let reads = flags.iter().any(|flag| !flag.starts_with("--") && flag.contains('s'));
    match named.first().filter(|_| !reads) {
        None if player.hears() => {
            // Whoever plays this goes on with a shell that reads lines.
            let name = ["bash", "ash"].into_iter().find(|shell| *shell == name).unwrap_or("sh");
            let arguments = named.iter().map(ToString::to_string).collect();
            player.wanted_shell = Some(WantedShell { name, options: options(flags), arguments });
            AfterCommand::Go
        }
        None => {
            let text = player.input();
            let named: Vec<&str> = std::iter::once(name).chain(named.iter().copied()).collect();
            play_with_flags(player, (name, &text), flags, &named)
        }
        Some(path) => {
            let Some(file) = player.file(path).filter(|file| !file.is_folder) else {
                let what = match Dialect::of(name, &player.around.image) {
                    Dialect::Bash => format!("{name}: {path}: No such file or directory\n"),
                    Dialect::Dash => format!("{name}: 0: cannot open {path}: No such file\n"),
                    Dialect::Ash => {
                        format!("{name}: can't open '{path}': No such file or directory\n")
                    }
                };
                player.complain(&what);
                player.status = if name == "bash" { 127 } else { 2 };
                return AfterCommand::Go;
            };
            play_with_flags(player, (name, &file.text()), flags, named)
        }
    }
}

/// `sh -eux`: what `set` would switch on.
fn play_with_flags(
    player: &mut Player<'_>,
    (shell, text): (&str, &str),
    flags: &[&str],
    words: &[&str],
) -> AfterCommand {
    let options = options(flags);
    // In the same line, so that the lines of what follows stay as they are.
    let text = if options.is_empty() { text.to_owned() } else { format!("set {options};{text}") };
    play_text(player, shell, &text, words)
}

/// How many words come before the script; the name of an option follows a flag that ends in `o`.
fn count_flags(words: &[&str]) -> usize {
    let mut count = 0;
    while let Some(word) = words.get(count).filter(|word| word.starts_with(['-', '+']) && **word != "--") {
        count += if is_named(word) { 2 } else { 1 };
    }
    count.min(words.len())
}

fn is_named(flag: &str) -> bool {
    !flag.starts_with("--") && flag.ends_with('o')
}

/// What `set` is told of a shell's flags; empty for nothing.
fn options(flags: &[&str]) -> String {
    let short = flags.iter().filter_map(|flag| flag.strip_prefix('-')).filter(|flag| !flag.starts_with('-'));
    let letters: String = short.flat_map(str::chars).filter(|letter| "eux".contains(*letter)).collect();
    let names = flags.windows(2).filter(|pair| is_named(pair[0])).map(|pair| format!("-o {}", pair[1]));
    let letters = Some(format!("-{letters}")).filter(|letters| letters.len() > 1);
    letters.into_iter().chain(names).collect::<Vec<_>>().join(" ")
}
