//! What a process does when it is sent its stop signal, as far as its command tells.
//!
//! Process 1 has no default action for signals: a shell without a trap, or `sleep`, does not hear SIGTERM,
//! and a real node kills it when its grace is over. Here nobody waits for that: whoever stops it may
//! kill it at once. Whoever says what is to be done, by a `trap` or as the modes of
//! agnhost that linger, is taken at their word.

use std::time::Duration;

use crate::agnhost::flags;
use crate::file_system::FileChange;
use crate::invocation::Invocation;
use crate::programs::{names, read_script};
use crate::signal_names::{is_heard, number_of};
use crate::surroundings::Surroundings;
use crate::{agnhost, exec, image_servers, process, program};

/// The signal of a container that names no other.
const DEFAULT_SIGNAL: &str = "SIGTERM";
/// Signals that servers end for.
const ENDING: [&str; 3] = ["INT", "QUIT", "TERM"];
/// With what Go ends a process that has no handler for a signal.
const BY_GO: i32 = 2;
/// agnhost's `serve-hostname` waits so long for its pod to be gone.
const SERVE_HOSTNAME_LINGERS: Duration = Duration::from_secs(60);

/// What a process says that it does about a signal.
#[derive(Clone, Debug, PartialEq)]
enum Handling {
    /// It goes on.
    Ignores,
    /// It ends so long after, with such a code.
    Lingers(Duration, i32),
    /// A script is run; its functions are those of the text.
    Runs(String),
}

/// Whether it says what it does about its stop signal.
pub fn is_known(invocation: &Invocation<'_>) -> bool {
    handling(invocation).is_some()
}

/// How long after its stop signal a process ends that has run for `ran`, and with what code; nothing when
/// it does not end by itself.
pub fn end(
    invocation: &Invocation<'_>,
    around: Option<&Surroundings>,
    ran: Duration,
) -> Option<(Duration, i32)> {
    let nothing = Surroundings::default();
    let around = around.unwrap_or(&nothing);
    let goes_on = || {
        let (end, code) = process::play(invocation, around, None)?.end?;
        Some((end.saturating_sub(ran), code))
    };
    match handling(invocation)? {
        Handling::Ignores => goes_on(),
        Handling::Lingers(time, code) => Some((time, code)),
        // A shell looks at its traps between commands, and `wait` waits no longer.
        Handling::Runs(script) => {
            let played = process::play(invocation, around, Some(ran));
            let is_in_wait = played.as_ref().is_some_and(|played| played.is_in_wait);
            let busy = played.filter(|_| !is_in_wait).map_or(ran, |played| played.until);
            let busy = busy.saturating_sub(ran);
            match exit_of(&script, &around.from(ran)) {
                Exits::With(took, code) if busy < Duration::MAX - ran => {
                    Some((busy.saturating_add(took), code))
                }
                Exits::Not if is_in_wait => goes_on_after_wait(invocation, around, ran),
                _ => goes_on(),
            }
        }
    }
}

/// What files the handler for its stop signal makes, changes and removes, of a process that ran for `ran`;
/// as if it did so at once, however long it lingers.
pub fn left_by_handler(invocation: &Invocation<'_>, around: &Surroundings, ran: Duration) -> Vec<FileChange> {
    let Some(Handling::Runs(handler)) = handling(invocation) else { return vec![] };
    if read_script(&handler).is_err() {
        return vec![];
    }
    let files = process::play(invocation, around, Some(ran)).map(|played| played.written).unwrap_or_default();
    run_handler(&handler, &around.from(ran), files).written
}

/// As [`end`], of a script whose handler ends nothing but its `wait`.
fn goes_on_after_wait(
    invocation: &Invocation<'_>,
    around: &Surroundings,
    ran: Duration,
) -> Option<(Duration, i32)> {
    let number = number_of(invocation.stop_signal.unwrap_or(DEFAULT_SIGNAL))?;
    let (end, code) = process::play_past_wait(invocation, around, (ran, 128 + number))?.end?;
    Some((end.saturating_sub(ran), code))
}

/// How long after a signal a process ends that has run for `ran`, and with what code, when somebody in its
/// container sends that one; nothing where it goes on. Servers end in order; of a program that nobody knows
/// it is taken that the signal ends it.
pub fn end_by(
    invocation: &Invocation<'_>,
    around: &Surroundings,
    ran: Duration,
    signal: &str,
) -> Option<(Duration, i32)> {
    let name = format!("SIG{signal}");
    let asked = Invocation { stop_signal: Some(&name), ..*invocation };
    // Nobody of a container kills its first process.
    if matches!(signal, "KILL" | "STOP") || handling(&asked) == Some(Handling::Ignores) {
        return None;
    }
    if handling(&asked).is_some() {
        return end(&asked, Some(around), ran);
    }
    if agnhost::mode(invocation).is_some() {
        return Some((Duration::ZERO, BY_GO));
    }
    let number = number_of(signal).filter(|_| ENDING.contains(&signal))?;
    if program::is_known(invocation) {
        return None;
    }
    let is_server = image_servers::server(invocation, &[], &[]).is_some();
    Some((Duration::ZERO, if is_server { 0 } else { 128 + number }))
}

fn run_handler(handler: &str, around: &Surroundings, files: Vec<FileChange>) -> exec::Executed {
    exec::type_lines(("sh", &format!("{handler}\n")), &exec::Shell::new(), around, files)
}

/// How a handler ends.
enum Exits {
    With(Duration, i32),
    /// The script goes on where it was.
    Not,
}

/// A handler that is not understood is taken to end its script at once.
fn exit_of(handler: &str, around: &Surroundings) -> Exits {
    if read_script(handler).is_err() {
        let mut words =
            handler.split(|c: char| c.is_whitespace() || c == ';').filter(|word| !word.is_empty());
        let code = words.find(|word| *word == "exit").and_then(|_| words.next());
        return Exits::With(Duration::ZERO, code.and_then(|code| code.parse().ok()).unwrap_or(0));
    }
    let ran = run_handler(handler, around, vec![]);
    match (ran.end, ran.shell) {
        (Some((took, code)), None) => Exits::With(took, code),
        _ => Exits::Not,
    }
}

fn handling(invocation: &Invocation<'_>) -> Option<Handling> {
    let words: Vec<String> = invocation.words().cloned().collect();
    let signal = invocation.stop_signal.unwrap_or(DEFAULT_SIGNAL);
    if let Some(handling) = agnhost::mode(invocation).and_then(|mode| of_agnhost(mode, &words)) {
        return Some(handling).filter(|_| signal == DEFAULT_SIGNAL);
    }
    let is_shell = words.first().is_some_and(|word| names::is_shell(names::base_name(word)));
    let at = words.iter().position(|word| names::is_command_flag(word)).filter(|_| is_shell)?;
    of_script(words.get(at + 1)?, signal)
}

/// Most of its modes have no handler: Go ends them with 2, as process 1 that no signal can kill.
fn of_agnhost(mode: &str, words: &[String]) -> Option<Handling> {
    let seconds = || flags::flag(words, "delay-shutdown").and_then(|seconds| seconds.parse().ok());
    match mode {
        "serve-hostname" => Some(Handling::Lingers(SERVE_HOSTNAME_LINGERS, 0)),
        "netexec" => Some(Handling::Lingers(Duration::from_secs(seconds().unwrap_or(0)), 0)),
        "nettest" | "net" if seconds().is_some_and(|seconds| seconds > 0) => {
            Some(Handling::Lingers(Duration::from_secs(seconds().unwrap_or(0)), 0))
        }
        "tcp-reset" => Some(Handling::Lingers(Duration::ZERO, 0)),
        mode if agnhost::is_mode(mode) => Some(Handling::Lingers(Duration::ZERO, 2)),
        _ => None,
    }
}

/// What the last trap of a script says that is for `signal`; nothing when that is the default.
fn of_script(script: &str, signal: &str) -> Option<Handling> {
    let signal = number_of(signal).filter(|number| is_heard(*number))?;
    let is_meant = |word: &String| number_of(word) == Some(signal);
    let mut handling = None;
    for trap in traps(script) {
        match trap.as_slice() {
            [handler, signals @ ..] if signals.iter().any(is_meant) => {
                handling = match handler.as_str() {
                    "-" => None,
                    "" => Some(Handling::Ignores),
                    handler => Some(Handling::Runs(body(script, handler).unwrap_or(handler).to_owned())),
                };
            }
            _ => {}
        }
    }
    handling
}

/// What stands between the braces of a function.
fn body<'a>(script: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = script.split_once(&format!("{name}()")).or(script.split_once(&format!("{name} ()")))?;
    let inner = rest.trim_start().strip_prefix('{')?;
    let mut depth = 1;
    let end = inner.find(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    Some(inner[..end?].trim().trim_end_matches(';'))
}

/// The arguments of all `trap` commands of a script, whether or not the rest of it is understood.
fn traps(script: &str) -> Vec<Vec<String>> {
    let is_trap = |words: &Vec<String>| words.first().is_some_and(|word| word == "trap");
    let commands = simple_commands(script).into_iter().filter(is_trap);
    commands.map(|words| words.into_iter().skip(1).skip_while(|word| word == "--").collect()).collect()
}

/// Words between what separates commands; quotations are words, or parts of them.
fn simple_commands(script: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word) = (vec![], vec![], None::<String>);
    let mut quote = None;
    let mut characters = script.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, ';' | '\n' | '&' | '|' | '(' | ')' | '{' | '}') => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            (None, c) if c.is_whitespace() => {
                let is_first = words.is_empty();
                words.extend(word.take().filter(|word| !(is_first && is_keyword(word))));
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    commands.push(words);
    commands
}

/// Whether a command begins behind `word`.
fn is_keyword(word: &str) -> bool {
    matches!(word, "do" | "then" | "else" | "if" | "while" | "until" | "!")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::{Given, given};

    fn ended(container: &Given, ran: u64) -> Option<(u64, i32)> {
        let invocation = container.invocation();
        assert!(is_known(&invocation), "{:?}", container.args);
        let around = Surroundings::default();
        let end = end(&invocation, Some(&around), Duration::from_secs(ran));
        end.map(|(after, code)| (after.as_secs(), code))
    }

    #[test]
    fn traps_are_taken_at_their_word() {
        for (script, wanted) in [
            ("trap '' TERM; while true; do sleep 1; done", None),
            ("trap \"\" SIGTERM\nsleep 3600", Some((3590, 0))),
            ("trap 'exit 3' 15; while true; do sleep 4; done", Some((2, 3))),
            ("trap 'sleep 5; exit 0' INT TERM; while true; do sleep 1; done", Some((6, 0))),
            ("trap 'echo no' TERM; sleep 30; exit 7", Some((20, 7))),
            ("trap 'exit 0' TERM; sleep infinity", None),
            ("export; trap 'exit 0' TERM; sleep 9999 & wait", Some((0, 0))),
            ("trap 'exit 3' TERM; sleep infinity & wait $!", Some((0, 3))),
            ("trap 'exit 3' TERM; sleep 4 & wait; sleep 10", Some((4, 3))),
            ("trap 'echo no' TERM; sleep 30 & wait; exit 7", Some((0, 7))),
            ("trap : TERM INT; sleep infinity & wait", Some((0, 143))),
            ("trap 'exit 3' TERM; (sleep 99 & wait) & sleep 30", Some((20, 3))),
            ("trap : TERM; sleep 30 & wait $!; echo $?; sleep 5", Some((5, 0))),
            ("trap : TERM; sleep 30 & wait; wait; exit 5", Some((20, 5))),
            ("trap : TERM; sleep 30 & wait -n; wait -n; exit 6", Some((20, 6))),
            ("trap 'exit 0' TERM; trap '' TERM; tail -f /dev/null", None),
            // Not understood as a whole.
            ("term() { my-stop; exit 4; }; trap term TERM; my-server & wait $!", Some((0, 4))),
            ("if my-check; then trap '' TERM; fi; my-server", None),
        ] {
            // What there is not in an image that is known ends such a script at once.
            let image = if script.contains("my-") { "my-app" } else { "busybox" };
            let container = given(image, &["sh", "-c"], &[script]);
            assert_eq!(ended(&container, 10), wanted, "{script}");
        }
    }

    #[test]
    fn whoever_says_nothing_is_not_known() {
        let known = |container: &Given| is_known(&container.invocation());
        let script = |script: &str| given("x", &["bash", "-c", script], &[]);
        assert!(!known(&script("while true; do sleep 1; done")));
        assert!(!known(&script("echo trap '' TERM; trap 'rm x' EXIT; trap '' TERM; trap - TERM; sleep 9")));
        assert!(!known(&given("nginx", &[], &[])));
        let other = |script: &str| {
            let stop_signal = Some("SIGUSR1".to_owned());
            Given { stop_signal, ..given("x", &["bash", "-c", script], &[]) }
        };
        assert!(!known(&other("trap '' TERM; sleep 9")));
        assert!(known(&other("trap '' USR1; sleep 9")));
    }

    #[test]
    fn every_signal_that_may_be_heard_ends_a_wait() {
        let with = |signal: &str, script: &str| {
            let stop_signal = Some(signal.to_owned());
            Given { stop_signal, ..given("busybox", &["sh", "-c", script], &[]) }
        };
        for (signal, script, code) in [
            ("SIGWINCH", "trap : WINCH; sleep infinity & wait", 156),
            ("SIGPWR", "trap : 30; sleep infinity & wait", 158),
            ("SIGPOLL", "trap : SIGIO; sleep infinity & wait", 157),
            ("SIGRTMIN+3", "trap : RTMIN+3; sleep infinity & wait", 165),
        ] {
            assert_eq!(ended(&with(signal, script), 10), Some((0, code)), "{signal}");
        }
        let killed = with("SIGKILL", "trap : KILL; sleep infinity & wait");
        assert!(!is_known(&killed.invocation()), "nobody hears of it");
    }

    #[test]
    fn somebody_in_its_container_ends_a_server() {
        let by = |container: &Given, signal: &str| {
            let end =
                end_by(&container.invocation(), &Surroundings::default(), Duration::from_secs(10), signal);
            end.map(|(after, code)| (after.as_secs(), code))
        };
        for (container, signal, wanted) in [
            (given("nginx", &[], &[]), "TERM", Some((0, 0))),
            (given("nginx", &[], &[]), "HUP", None),
            (given("nginx", &[], &[]), "KILL", None),
            (given("redis", &[], &[]), "INT", Some((0, 0))),
            (given("my-app", &[], &[]), "TERM", Some((0, 143))),
            (given("busybox", &["sleep", "100"], &[]), "TERM", None),
            (
                given("busybox", &["sh", "-c", "trap 'exit 4' USR1; sleep 15; sleep 9"], &[]),
                "USR1",
                Some((5, 4)),
            ),
            (given("busybox", &["sh", "-c", "trap '' TERM; sleep 15"], &[]), "TERM", None),
            (given("e2e/agnhost:2", &[], &["pause"]), "TERM", Some((0, 2))),
        ] {
            assert_eq!(
                by(&container, signal),
                wanted,
                "{} {:?} {signal}",
                container.image,
                container.command
            );
        }
    }

    #[test]
    fn modes_of_the_test_image_linger() {
        let agnhost = |words: &[&str]| given("e2e/agnhost:2", &[], words);
        assert_eq!(ended(&agnhost(&["serve-hostname"]), 10), Some((60, 0)));
        assert_eq!(ended(&agnhost(&["netexec", "--delay-shutdown=15"]), 10), Some((15, 0)));
        assert_eq!(ended(&agnhost(&["netexec"]), 10), Some((0, 0)));
        assert_eq!(ended(&agnhost(&["nettest", "--delay-shutdown", "7"]), 10), Some((7, 0)));
        for words in [&["liveness"][..], &["pause"], &[]] {
            assert_eq!(ended(&agnhost(words), 10), Some((0, 2)), "{words:?}");
        }
        let trapped = given("e2e/agnhost:2", &["sh", "-c", "trap 'exit 3' TERM; sleep 20"], &[]);
        assert_eq!(ended(&trapped, 10), Some((10, 3)));
    }

    #[test]
    fn a_handler_leaves_files_of_its_own() {
        let script = "end() {\nrm -f /tmp/ready; echo bye > /tmp/last; sleep 30; exit 0\n}\ntrap end TERM\n\
            touch /tmp/ready; while true; do sleep 10; done";
        let words = ["sh", "-c", script].map(str::to_owned);
        let invocation = Invocation { command: &words, ..Invocation::default() };
        let left = left_by_handler(&invocation, &Surroundings::default(), Duration::from_secs(3));
        let told: Vec<(&str, bool)> =
            left.iter().map(|(path, file)| (path.as_str(), file.is_some())).collect();
        assert_eq!(told, [("/tmp/last", true), ("/tmp/ready", false)]);
    }
}
