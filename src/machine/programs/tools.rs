//! Small programs that scripts lean on: `sed`, `xargs`, `timeout`, checksums, and those that tell of the
//! machine.

use std::time::Duration;

use sha2::{Digest, Sha256, Sha512};

use super::input::{input, read};
use crate::interpreter::player::{Flow, Player};

const PROGRAMS: &[&str] =
    &["sed", "xargs", "timeout", "sha256sum", "sha512sum", "nproc", "ps", "df", "free", "which"];
/// A pattern's program is no bigger.
const MAX_PATTERN_BYTES: usize = 1 << 18;

pub(crate) fn is_known(name: &str) -> bool {
    PROGRAMS.contains(&name)
}

/// All programs there are: whether there is one, and how it is run.
pub(crate) struct AllPrograms {
    pub(crate) is_known: fn(&str) -> bool,
    pub(crate) run: fn(&mut Player<'_>, &str, &[String]) -> Flow,
}

/// Runs one of them, which may run others.
pub(crate) fn run(player: &mut Player<'_>, name: &str, words: &[&str], all: &AllPrograms) -> Flow {
    match name {
        "sed" => sed(player, words),
        "xargs" => return xargs(player, words, all),
        "timeout" => return timeout(player, words, all),
        "sha256sum" | "sha512sum" => checksums(player, name, words),
        "which" => which(player, words, all),
        "nproc" => player.say("8\n"),
        "ps" => {
            player.say("PID   USER     TIME  COMMAND\n    1 root      0:00 {main}\n   12 root      0:00 ps\n")
        }
        "df" => player.say(
            "Filesystem           1K-blocks      Used Available Use% Mounted on\n\
             overlay              104857600  10485760  94371840  10% /\n",
        ),
        _ => player.say(
            "              total        used        free      shared  buff/cache   available\n\
             Mem:       33554432     1048576    32505856           0           0    32505856\n\
             Swap:             0           0           0\n",
        ),
    }
    Flow::Go
}

fn which(player: &mut Player<'_>, words: &[&str], all: &AllPrograms) {
    for word in words {
        if (all.is_known)(word) {
            player.say(&format!("/bin/{word}\n"));
        } else {
            player.status = 1;
        }
    }
}

fn checksums(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let sum = |text: &str| match name {
        "sha256sum" => format!("{:x}", Sha256::digest(text)),
        _ => format!("{:x}", Sha512::digest(text)),
    };
    if words.is_empty() {
        let text = player.input();
        return player.say(&format!("{}  -\n", sum(&text)));
    }
    for path in words {
        if let Some(text) = read(player, name, path) {
            player.say(&format!("{}  {path}\n", sum(&text)));
        }
    }
}

/// `timeout SECONDS PROGRAM`: what is not done by then is killed.
fn timeout(player: &mut Player<'_>, words: &[&str], all: &AllPrograms) -> Flow {
    let words: Vec<&str> = words.iter().copied().skip_while(|word| word.starts_with('-')).collect();
    let [time, program, arguments @ ..] = words.as_slice() else {
        player.fail("timeout: usage: timeout SECS PROG ARGS\n");
        return Flow::Go;
    };
    let seconds = time.trim_end_matches('s').parse().ok();
    let Some(limit) = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) else {
        player.fail(&format!("timeout: invalid number '{time}'\n"));
        return Flow::Go;
    };
    let end = player.elapsed.saturating_add(limit);
    let until = player.until;
    player.until = until.min(end);
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let flow = (all.run)(player, program, &arguments);
    player.until = until;
    let is_late = flow == Flow::OutOfTime && player.question.is_none() && player.steps_left > 0;
    if is_late && end <= until {
        player.elapsed = end;
        player.status = 143;
        return Flow::Go;
    }
    flow
}

/// `xargs [-n COUNT] [-I NAME] PROGRAM ...`
fn xargs(player: &mut Player<'_>, words: &[&str], all: &AllPrograms) -> Flow {
    let mut count = usize::MAX;
    let mut place = None;
    let mut words = words;
    while let [flag, tail @ ..] = words
        && flag.starts_with('-')
    {
        words = match (*flag, tail) {
            ("-n", [value, tail @ ..]) => {
                count = value.parse().unwrap_or(1).max(1);
                tail
            }
            ("-I", [value, tail @ ..]) => {
                place = Some(*value);
                tail
            }
            _ => tail,
        };
    }
    let text = player.input();
    let program = words.first().copied().unwrap_or("echo");
    let rest: Vec<String> = words.iter().skip(1).map(ToString::to_string).collect();
    let given: Vec<String> = match place {
        Some(_) => text.lines().map(str::to_owned).collect(),
        None => text.split_whitespace().map(str::to_owned).collect(),
    };
    let size = if place.is_some() { 1 } else { count.min(given.len().max(1)) };
    let mut failed = false;
    for some in given.chunks(size) {
        let arguments: Vec<String> = match place {
            Some(place) => rest.iter().map(|word| word.replace(place, &some[0])).collect(),
            None => rest.iter().chain(some).cloned().collect(),
        };
        player.status = 0;
        match (all.run)(player, program, &arguments) {
            Flow::Go => failed |= player.status != 0,
            flow => return flow,
        }
        if player.spend(1) != Flow::Go {
            return player.spend(0);
        }
    }
    player.status = if failed { 123 } else { 0 };
    Flow::Go
}

/// One command of `sed`.
enum SedCommand {
    Substitute {
        pattern: regex::Regex,
        with: String,
        is_global: bool,
    },
    /// `/x/p` and `/x/d`, `3p` and `3d`.
    Lines {
        chosen: Chosen,
        prints: bool,
    },
}

enum Chosen {
    Number(usize),
    Matching(regex::Regex),
}

/// `s/x/y/g`, `/x/d`, `/x/p` and `3p`, of files, also in their place (`-i`).
fn sed(player: &mut Player<'_>, words: &[&str]) {
    let flags: String =
        words.iter().filter(|word| word.starts_with('-') && **word != "-e").copied().collect();
    let mut others = words.iter().copied().filter(|word| !word.starts_with('-'));
    let Some(text) = others.next() else { return player.fail("sed: no script\n") };
    let paths: Vec<&str> = others.collect();
    player.handle(MAX_PATTERN_BYTES);
    let commands: Option<Vec<SedCommand>> = text
        .split([';', '\n'])
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(SedCommand::parse)
        .collect();
    let Some(commands) = commands else { return player.fail(&format!("sed: unsupported command {text}\n")) };
    let is_quiet = flags.contains('n');
    if flags.contains('i') {
        for path in paths {
            let Some(text) = read(player, "sed", path) else { continue };
            let edited = edited(&commands, &text, is_quiet);
            if let Err(why) = player.write_file(path, edited.into_bytes()) {
                player.fail(&format!("sed: {path}: {why}\n"));
            }
        }
        return;
    }
    let Some(text) = input(player, "sed", &paths) else { return };
    player.say(&edited(&commands, &text, is_quiet));
}

fn edited(commands: &[SedCommand], text: &str, is_quiet: bool) -> String {
    let mut said = String::new();
    for (at, line) in text.lines().enumerate() {
        let mut line = line.to_owned();
        let mut shows = usize::from(!is_quiet);
        for command in commands {
            match command {
                SedCommand::Substitute { pattern, with, is_global: true } => {
                    line = pattern.replace_all(&line, with.as_str()).into_owned();
                }
                SedCommand::Substitute { pattern, with, .. } => {
                    line = pattern.replace(&line, with.as_str()).into_owned();
                }
                SedCommand::Lines { chosen, prints } if chosen.fits(at + 1, &line) => {
                    shows = if *prints { shows + 1 } else { 0 };
                }
                SedCommand::Lines { .. } => {}
            }
        }
        said.extend((0..shows).flat_map(|_| [line.as_str(), "\n"]));
    }
    said
}

impl Chosen {
    fn fits(&self, number: usize, line: &str) -> bool {
        match self {
            Chosen::Number(wanted) => *wanted == number,
            Chosen::Matching(pattern) => pattern.is_match(line),
        }
    }
}

impl SedCommand {
    fn parse(text: &str) -> Option<SedCommand> {
        let compiled = |text: &str| regex::RegexBuilder::new(text).size_limit(MAX_PATTERN_BYTES).build().ok();
        if let Some(rest) = text.strip_prefix('s') {
            let separator = rest.chars().next().filter(|c| !c.is_alphanumeric())?;
            let parts: Vec<&str> = rest[separator.len_utf8()..].split(separator).collect();
            let [pattern, with, flags] = parts.as_slice() else { return None };
            let with = with.replace('$', "$$").replace('&', "${0}");
            let with = (1..=9).fold(with, |with, at| with.replace(&format!("\\{at}"), &format!("${{{at}}}")));
            let pattern = pattern.replace("\\(", "(").replace("\\)", ")");
            return Some(SedCommand::Substitute {
                pattern: compiled(&pattern)?,
                with,
                is_global: flags.contains('g'),
            });
        }
        let chosen = text.strip_suffix(['p', 'd'])?;
        let chosen = match chosen.strip_prefix('/').and_then(|chosen| chosen.strip_suffix('/')) {
            Some(pattern) => Chosen::Matching(compiled(pattern)?),
            None => Chosen::Number(chosen.parse().ok()?),
        };
        Some(SedCommand::Lines { chosen, prints: text.ends_with('p') })
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::exec;
    use crate::surroundings::Surroundings;

    fn run(script: &str) -> (i32, String) {
        let words = ["sh", "-c", script].map(str::to_owned);
        let ran = exec(&words, &Surroundings::default(), vec![], Some(vec![])).unwrap();
        (ran.end.unwrap().1, ran.out)
    }

    #[test]
    fn texts_are_edited_line_by_line() {
        for (script, said) in [
            ("printf 'aa\\nb\\n' | sed s/a/x/", "xa\nb\n"),
            ("printf 'aa\\nb\\n' | sed -e 's|a|[&]|g'", "[a][a]\nb\n"),
            ("printf 'a b\\n' | sed 's/\\(a\\) \\(b\\)/\\2 \\1/'", "b a\n"),
            ("printf 'a\\nb\\nc\\n' | sed -n 2p", "b\n"),
            ("printf 'a\\nb\\nc\\n' | sed '/b/d; s/c/$HOME/'", "a\n$HOME\n"),
            ("echo a > /tmp/x; sed -i s/a/b/ /tmp/x; cat /tmp/x", "b\n"),
        ] {
            assert_eq!(run(script), (0, said.to_owned()), "{script}");
        }
        assert_eq!(run("echo a | sed y/a/b/").0, 1);
    }

    #[test]
    fn programs_run_programs() {
        assert_eq!(run("printf 'a b\\nc' | xargs echo"), (0, "a b c\n".into()));
        assert_eq!(run("printf 'a b\\nc' | xargs -n 1 echo x"), (0, "x a\nx b\nx c\n".into()));
        assert_eq!(run("printf 'a b\\nc' | xargs -I {} echo '<{}>'"), (0, "<a b>\n<c>\n".into()));
        assert_eq!(run("echo a | xargs false").0, 123);
        assert_eq!(run("timeout 2 sleep 5; echo $?"), (0, "143\n".into()));
        assert_eq!(run("timeout 5 sleep 2; echo $?"), (0, "0\n".into()));
        let sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824  -\n";
        assert_eq!(run("printf hello | sha256sum"), (0, sum.into()));
        assert_eq!(run("which sh; which rsync"), (1, "/bin/sh\n".into()));
    }
}
