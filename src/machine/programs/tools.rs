//! Small programs that scripts lean on: `sed`, `xargs`, `timeout`, `dd` and their kin.

use std::time::Duration;

use super::checksums;
use super::filling;
use super::finding;
use crate::interpreter::player::{AfterCommand, Player};

const PROGRAMS: &[&str] = &["sed", "xargs", "timeout", "which", "yes", "dd", "fallocate", "watch"];
/// So much is said to a pipe whose reader takes no more.
const PIPE_BYTES: usize = 64 << 10;

pub(crate) fn is_known(name: &str) -> bool {
    PROGRAMS.contains(&name) || checksums::is_known(name)
}

/// How any program is run.
pub(crate) type RunProgram = fn(&mut Player<'_>, &str, &[String]) -> AfterCommand;

/// Runs one of them, which may run others.
pub(crate) fn run(
    player: &mut Player<'_>,
    name: &str,
    words: &[&str],
    run_program: RunProgram,
) -> AfterCommand {
    match name {
        "sed" => super::sed::run(player, words),
        "xargs" => return xargs(player, words, run_program),
        "timeout" => return timeout(player, words, run_program),
        _ if checksums::is_known(name) => checksums::run(player, name, words),
        "yes" => return yes(player, words),
        "dd" => filling::dd(player, words),
        "fallocate" => filling::fallocate(player, words),
        "watch" => return player.sleep(Duration::MAX),
        _ => finding::which(player, words),
    }
    AfterCommand::Go
}

/// One line for ever: to a pipe as much as it takes.
fn yes(player: &mut Player<'_>, words: &[&str]) -> AfterCommand {
    let line = if words.is_empty() { "y\n".to_owned() } else { words.join(" ") + "\n" };
    let at_once = line.repeat((PIPE_BYTES / line.len()).max(1));
    if player.is_piped {
        player.say(&at_once);
        return AfterCommand::Go;
    }
    while player.spend(1) == AfterCommand::Go {
        player.say(&at_once);
    }
    player.spend(0)
}

/// `timeout SECONDS PROGRAM`: what is not done by then is killed.
fn timeout(player: &mut Player<'_>, words: &[&str], run_program: RunProgram) -> AfterCommand {
    let mut words = words;
    while let [flag, rest @ ..] = words
        && flag.starts_with('-')
    {
        words = if matches!(*flag, "-s" | "-k" | "--signal" | "--kill-after") {
            rest.get(1..).unwrap_or_default()
        } else {
            rest
        };
    }
    let [time, program, arguments @ ..] = words else {
        player.fail("timeout: usage: timeout SECS PROG ARGS\n");
        return AfterCommand::Go;
    };
    let (number, factor) = match time.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) if time.ends_with('m') => (number, 60.0),
        Some(number) if time.ends_with('h') => (number, 3600.0),
        Some(number) if time.ends_with('d') => (number, 86_400.0),
        Some(number) => (number, 1.0),
        None => (*time, 1.0),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * factor);
    let Some(limit) = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) else {
        player.fail(&format!("timeout: invalid number '{time}'\n"));
        return AfterCommand::Go;
    };
    if !player.has_program(program) {
        player.miss_behind("timeout", program);
        return AfterCommand::Go;
    }
    let end = player.elapsed.saturating_add(limit);
    let until = player.until;
    player.until = until.min(end);
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let flow = run_program(player, program, &arguments);
    player.until = until;
    let is_late = flow == AfterCommand::OutOfTime && player.question.is_none() && player.steps_left > 0;
    if is_late && end <= until {
        player.elapsed = end;
        player.status = 143;
        return AfterCommand::Go;
    }
    flow
}

/// What `xargs` reads: by zeros, by lines, or by blanks.
fn parted(text: &str, by_zero: bool, by_lines: bool) -> Vec<String> {
    let parts: Vec<&str> = if by_zero {
        text.split('\0').filter(|word| !word.is_empty()).collect()
    } else if by_lines {
        text.lines().collect()
    } else {
        text.split_whitespace().collect()
    };
    parts.into_iter().map(str::to_owned).collect()
}

/// `xargs [-n COUNT] [-I NAME] PROGRAM ...`
fn xargs(player: &mut Player<'_>, words: &[&str], run_program: RunProgram) -> AfterCommand {
    let mut count = usize::MAX;
    let mut place = None;
    let mut by_zero = false;
    let mut needs_some = false;
    let mut words = words;
    while let [flag, tail @ ..] = words
        && flag.starts_with('-')
    {
        words = match (*flag, tail) {
            (joined, tail) if joined.len() > 2 && joined.starts_with("-n") => {
                count = joined[2..].parse().unwrap_or(1).max(1);
                tail
            }
            (joined, tail) if joined.len() > 2 && joined.starts_with("-I") => {
                place = Some(&joined[2..]);
                tail
            }
            ("-n", [value, tail @ ..]) => {
                count = value.parse().unwrap_or(1).max(1);
                tail
            }
            ("-I", [value, tail @ ..]) => {
                place = Some(*value);
                tail
            }
            ("-0", tail) => {
                by_zero = true;
                tail
            }
            ("-r" | "--no-run-if-empty", tail) => {
                needs_some = true;
                tail
            }
            ("-P" | "-L" | "-s" | "-d", [_, tail @ ..]) => tail,
            _ => tail,
        };
    }
    let text = player.input();
    let program = words.first().copied().unwrap_or("echo");
    let rest: Vec<String> = words.iter().skip(1).map(ToString::to_string).collect();
    let given = parted(&text, by_zero, place.is_some());
    if !player.has_program(program) {
        player.miss_behind("xargs", program);
        return AfterCommand::Go;
    }
    if given.is_empty() && !needs_some && place.is_none() {
        return run_program(player, program, &rest);
    }
    let size = if place.is_some() { 1 } else { count.min(given.len().max(1)) };
    let mut failed = false;
    for some in given.chunks(size) {
        let arguments: Vec<String> = match place {
            Some(place) => rest.iter().map(|word| word.replace(place, &some[0])).collect(),
            None => rest.iter().chain(some).cloned().collect(),
        };
        player.status = 0;
        match run_program(player, program, &arguments) {
            AfterCommand::Go => failed |= player.status != 0,
            flow => return flow,
        }
        if player.spend(1) != AfterCommand::Go {
            return player.spend(0);
        }
    }
    player.status = if failed { 123 } else { 0 };
    AfterCommand::Go
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
        for (script, said) in [
            ("echo abc | sed y/ab/xy/", "xyc\n"),
            ("printf 'a\\nb\\nc\\nd\\n' | sed -n '2,3p;$='", "b\nc\n4\n"),
            ("printf 'a\\nb\\nc\\n' | sed '/a/,/b/d'", "c\n"),
            ("printf 'a\\nb\\n' | sed -e 1q", "a\n"),
            ("printf 'a\\nb\\n' | sed '2i x' | sed '$a y'", "a\nx\nb\ny\n"),
            ("echo 'a=1,b=2' | sed -E 's/([a-z])=([0-9])/\\2\\1/2'", "a=1,2b\n"),
            ("echo '/etc/x' | sed 's#/#\\\\/#g'", "\\/etc\\/x\n"),
            ("echo aXb | sed -n 's/x/-/ip'", "a-b\n"),
            ("printf 'a\\nb\\n' | sed '1!d'", "a\n"),
        ] {
            assert_eq!(run(script), (0, said.to_owned()), "{script}");
        }
        assert_eq!(run("echo a | sed k").0, 1);
    }

    #[test]
    fn programs_run_programs() {
        assert_eq!(run("printf 'a b\\nc' | xargs echo"), (0, "a b c\n".into()));
        assert_eq!(run("printf 'a b\\nc' | xargs -n 1 echo x"), (0, "x a\nx b\nx c\n".into()));
        assert_eq!(run("printf 'a b\\nc' | xargs -I {} echo '<{}>'"), (0, "<a b>\n<c>\n".into()));
        assert_eq!(run("echo 1 2 | xargs -n1 echo v"), (0, "v 1\nv 2\n".into()));
        assert_eq!(run("printf 'a\\nb\\n' | xargs -I{} echo x{}y"), (0, "xay\nxby\n".into()));
        assert_eq!(run("echo a | xargs false").0, 123);
        assert_eq!(run("timeout 2 sleep 5; echo $?"), (0, "143\n".into()));
        assert_eq!(run("timeout 5 sleep 2; echo $?"), (0, "0\n".into()));
        let sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824  -\n";
        assert_eq!(run("printf hello | sha256sum"), (0, sum.into()));
        assert_eq!(run("which sh; which rsync"), (1, "/bin/sh\n".into()));
        assert_eq!(
            run("f() { :; }; type ls cd f"),
            (0, "ls is /bin/ls\ncd is a shell builtin\nf is a function\n".into())
        );
        assert_eq!(run("type rsync").0, 127);
        assert_eq!(
            run("date -u -d @0 +%F; date -d '2020-01-02 03:04:05' +%s"),
            (0, "1970-01-01\n1577934245\n".into())
        );
        assert_eq!(run("date -d never").0, 1);
        assert_eq!(
            run("date -I -d @0; date -Iseconds -d @0; date -R -d @0").1,
            "1970-01-01\n1970-01-01T00:00:00+00:00\nThu, 01 Jan 1970 00:00:00 +0000\n"
        );
        assert_eq!(
            run("dd if=/dev/zero bs=2 count=2 2>&1 | tail -1 | cut -d' ' -f1-2"),
            (0, "4 bytes\n".into())
        );
    }
}
