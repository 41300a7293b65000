//! Programs that tell where programs are, and what is said where one is not: `command -v`, `type`, `which`.

use super::builtins;
use super::names::base_name;
use crate::interpreter::dialect::Dialect;
use crate::interpreter::player::Player;

/// What a shell does itself beside what [`builtins`] has.
const BUILTINS: &[&str] = &[
    ":", ".", "[", "[[", "break", "builtin", "cd", "command", "continue", "eval", "exec", "exit", "false",
    "jobs", "kill", "pwd", "return", "source", "test", "trap", "true", "type", "wait",
];

/// Whether a shell does it itself, whatever its image has.
pub(crate) fn is_builtin(program: &str) -> bool {
    BUILTINS.contains(&program) || builtins::NAMES.contains(&program)
}

/// `command -v NAME...`
pub(super) fn tell_places(player: &mut Player<'_>, words: &[&str]) {
    for word in words {
        match place(player, word) {
            Some(place) => player.say(&format!("{place}\n")),
            None => player.status = 127,
        }
    }
}

/// `which NAME...`, which knows files alone.
pub(super) fn which(player: &mut Player<'_>, words: &[&str]) {
    for word in words {
        match file_place(player, word) {
            Some(place) => player.say(&format!("{place}\n")),
            None => player.status = 1,
        }
    }
}

/// `type NAME...`: what each is; a word for it alone with `-t`.
pub(super) fn tell_kinds(player: &mut Player<'_>, words: &[&str], is_short: bool) {
    for word in words {
        let place = place(player, word);
        let (short, told) = match &place {
            None if is_short => {
                player.status = 1;
                continue;
            }
            None => {
                let missing = player.says_shell(&format!("type: {word}: not found"));
                let plain = format!("{word}: not found\n");
                player.complain(if player.dialect == Dialect::Bash { &missing } else { &plain });
                player.status = if player.dialect == Dialect::Bash { 1 } else { 127 };
                continue;
            }
            Some(_) if player.functions.contains_key(*word) => ("function", "a function".to_owned()),
            Some(place) if place == word && !word.contains('/') => ("builtin", "a shell builtin".to_owned()),
            Some(place) => ("file", place.clone()),
        };
        player.say(&if is_short { format!("{short}\n") } else { format!("{word} is {told}\n") });
    }
}

/// What a shell takes for a word.
fn place(player: &Player<'_>, word: &str) -> Option<String> {
    if player.functions.contains_key(word) || is_builtin(word) {
        return Some(word.to_owned());
    }
    file_place(player, word)
}

fn file_place(player: &Player<'_>, word: &str) -> Option<String> {
    let of_image = || if word.contains('/') { word.to_owned() } else { format!("/bin/{}", base_name(word)) };
    player.program_file(word).or_else(|| player.has_program(word).then(of_image))
}

impl Player<'_> {
    /// A program that runs others says that there is none: `timeout`, `xargs`, `env` and their kin.
    pub(super) fn miss_behind(&mut self, runner: &str, program: &str) {
        let said = match (self.dialect, runner) {
            (_, "command" | "builtin") | (Dialect::Bash | Dialect::Dash, "time") => {
                return self.miss(program);
            }
            (_, "busybox") => format!("{program}: applet not found"),
            (Dialect::Ash, "timeout" | "env" | "nice" | "nohup" | "setsid" | "chroot" | "time") => {
                format!("{runner}: can't execute '{program}': No such file or directory")
            }
            (_, "timeout" | "nohup" | "chroot") => {
                format!("{runner}: failed to run command '{program}': No such file or directory")
            }
            (_, "env" | "nice") => format!("{runner}: '{program}': No such file or directory"),
            (_, "setsid") => format!("setsid: failed to execute {program}: No such file or directory"),
            _ => format!("{runner}: {program}: No such file or directory"),
        };
        self.complain(&format!("{said}\n"));
        self.status = 127;
    }
}
