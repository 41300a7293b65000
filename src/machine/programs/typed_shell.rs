//! Shells that read lines: what somebody types, or what comes from a pipe.

use crate::bounds::{MAX_TYPED_BYTES, ScriptFault};
use crate::interpreter::containment::contained;
use crate::interpreter::dialect::Dialect;
use crate::interpreter::hearing::{HeardLine, INTERRUPT, INTERRUPTED};
use crate::interpreter::player::{AfterCommand, Player};
use crate::programs::read_any_script;
use crate::shell::{Script, Unplayable};

/// A shell into which somebody types, or whose lines come from a file or a pipe.
pub(crate) fn run_typed_shell(player: &mut Player<'_>, program: &str) -> AfterCommand {
    go_on(player, program, false)
}

/// Goes on with such a shell, whose prompt may be shown already.
pub(crate) fn go_on(player: &mut Player<'_>, program: &str, is_prompted: bool) -> AfterCommand {
    let is_terminal = player.is_terminal();
    let was_interactive = std::mem::replace(&mut player.is_interactive, is_terminal);
    player.typed_shells += 1;
    let flow = shell(player, program, is_prompted);
    player.typed_shells -= 1;
    player.is_interactive = was_interactive;
    flow
}

fn shell(player: &mut Player<'_>, program: &str, mut is_prompted: bool) -> AfterCommand {
    let mut open = String::new();
    loop {
        let prompt = prompt(player, program, open.is_empty());
        if !std::mem::take(&mut is_prompted) {
            player.echo(&prompt);
        }
        match player.hear_command_line(&prompt) {
            HeardLine::Line(line) => open.push_str(&line),
            HeardLine::Interrupted(letter) => {
                if letter == INTERRUPT {
                    player.echo("^C\n");
                    player.status = INTERRUPTED;
                    open.clear();
                } else {
                    is_prompted = true;
                }
                continue;
            }
            HeardLine::End => {
                if !open.trim().is_empty() {
                    player.complain(&format!("{program}: syntax error: unexpected end of file\n"));
                    player.status = 2;
                }
                if program == "bash" && player.is_interactive {
                    player.echo("exit\n");
                }
                return AfterCommand::Exit(player.status);
            }
            HeardLine::Nothing => {
                player.is_at_prompt &= open.is_empty() && player.typed_shells == 1;
                return AfterCommand::OutOfTime;
            }
        }
        let Some(flow) = run_lines(player, program, &open) else { continue };
        open.clear();
        match flow {
            _ if player.killed.is_some() => return flow,
            AfterCommand::Exit(_) if player.interrupted.is_some() => {
                player.status = player.interrupted.take().unwrap_or(INTERRUPTED);
            }
            AfterCommand::Exit(_) | AfterCommand::OutOfTime | AfterCommand::Stopped => return flow,
            _ if player.is_blocked => return AfterCommand::OutOfTime,
            _ => player.interrupted = None,
        }
    }
}

/// As BusyBox and Debian have it; none where nobody sees it.
fn prompt(player: &Player<'_>, program: &str, is_first: bool) -> String {
    if !player.is_terminal() {
        return String::new();
    }
    let sign = if player.around.user == 0 { '#' } else { '$' };
    let folder = if player.folder.is_empty() { "/" } else { &player.folder };
    match (is_first, program) {
        (false, _) => "> ".to_owned(),
        (true, "bash") => format!("root@{}:{folder}{sign} ", player.around.hostname),
        (true, _) => format!("{folder} {sign} "),
    }
}

/// Plays lines that a shell reads; nothing when the last one is not whole.
pub(crate) fn run_lines(player: &mut Player<'_>, program: &str, text: &str) -> Option<AfterCommand> {
    let mut flow = AfterCommand::Go;
    player.name = program.to_owned();
    player.dialect = Dialect::of(program, &player.around.image);
    for script in scripts(text)? {
        match script {
            Ok(script) => {
                flow = contained(player, |player| player.list(&script.list));
                // What ends a script ends no shell that somebody types into.
                if player.abort.take().is_some() && player.is_interactive {
                    flow = AfterCommand::Go;
                }
            }
            Err(Misread::Unknown(word)) => {
                player.complain(&format!("{program}: {word}: not found\n"));
                player.status = 127;
            }
            Err(Misread::Faulty(fault)) => {
                player.complain(&format!("{program}: {fault}\n"));
                player.status = fault.code();
            }
        }
        if matches!(flow, AfterCommand::Exit(_) | AfterCommand::OutOfTime | AfterCommand::Stopped) {
            break;
        }
    }
    Some(flow)
}

/// A line that is not played.
enum Misread {
    /// Its first word.
    Unknown(String),
    Faulty(ScriptFault),
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
        let read = if is_too_much {
            Err(Unplayable::Faulty(ScriptFault::TooLong))
        } else {
            read_any_script(&open, true)
        };
        let is_open = matches!(read, Err(Unplayable::Unknown | Unplayable::Faulty(ScriptFault::Syntax(_))));
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
