//! What a simulated script may not go over, and what becomes of one that does.
//!
//! Scripts come from whoever may make a pod, and they are played in the process that is the whole cluster.
//! So everything that they can make grow has a bound: a container whose script goes over one ends as if it
//! had been killed, with a reason; a command of `exec` and a hook fail; a probe does not pass.

use std::fmt;

/// How deeply commands, substitutions and shells within shells may be nested, when a script is read and
/// when it is played.
pub const MAX_DEPTH: usize = 64;
/// A script, a word of a command line or the value of a variable that a container starts with, in bytes:
/// Linux' own bound (`MAX_ARG_STRLEN`).
pub const MAX_WORD_BYTES: usize = 128 << 10;
/// The variables that a container starts with, and the words of its command line, in bytes together.
pub const MAX_START_BYTES: usize = 1 << 20;
/// The variables that all containers of a pod start with, together.
pub const MAX_POD_START_BYTES: usize = 4 << 20;
/// The steps of a script. One that uses up half of them or more without a pause is stopped; one that
/// pauses in between is taken to run for ever, and what it does later is not seen.
pub const MAX_STEPS: usize = 200_000;
/// A step is a command, or so many bytes of text that one reads, makes or compares.
pub const BYTES_PER_STEP: usize = 128;
/// The variables of a script.
pub const MAX_VARIABLES: usize = 10_000;
/// Their names and values in bytes together, and also what pipes and substitutions gather.
pub const MAX_MEMORY_BYTES: usize = 2 << 20;
/// What a command of `exec` says, with what is gathered within it: an archive of all files has room.
pub const MAX_EXEC_BYTES: usize = 2 * MAX_FILE_BYTES;
/// The files that the containers of a pod leave, each container for itself.
pub const MAX_FILES: usize = 1000;
/// Their paths and contents in bytes together. Of a file that `dd`, `fallocate` or `truncate` makes larger
/// nothing but its size is kept, and who reads it is stopped.
pub const MAX_FILE_BYTES: usize = 2 << 20;
/// The size of such a file, as on ext4; then its disk is full.
pub const MAX_UNHELD_BYTES: usize = 16 << 40;
/// A path in bytes (`PATH_MAX`).
pub const MAX_PATH_BYTES: usize = 4096;
/// A container's log: of a longer one the older half is gone, as after a rotation.
pub const MAX_LOG_BYTES: usize = 4 << 20;
/// What is typed into a shell, counted again for each line that belongs to a command not yet whole.
pub const MAX_TYPED_BYTES: usize = 4 << 20;

/// The reason of a container of which no process could be started.
pub const START_ERROR: &str = "StartError";

/// Why a script is stopped, or not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptFault {
    /// No shell could read it; what is wrong with it.
    Syntax(String),
    /// It is nested more deeply than [`MAX_DEPTH`].
    Depth,
    /// It goes on and on ([`MAX_STEPS`]).
    Steps,
    /// [`MAX_VARIABLES`], [`MAX_MEMORY_BYTES`].
    Memory,
    /// [`MAX_FILES`], [`MAX_FILE_BYTES`].
    Files,
    /// [`MAX_WORD_BYTES`], [`MAX_START_BYTES`].
    TooLong,
    /// There is no such program in its image.
    Missing(String),
    /// A mistake of ours: what plays scripts panicked. Only this container ends.
    Broken,
}

impl ScriptFault {
    /// The code that a process ends with which this happens to.
    pub fn code(&self) -> i32 {
        match self {
            ScriptFault::Syntax(_) => 2,
            // SIGSEGV, as after an overflow of the stack.
            ScriptFault::Depth | ScriptFault::Broken => 139,
            ScriptFault::Steps | ScriptFault::Memory | ScriptFault::Files => 137,
            ScriptFault::TooLong | ScriptFault::Missing(_) => 128,
        }
    }

    /// The reason of the terminated container.
    pub fn reason(&self) -> &'static str {
        match self {
            ScriptFault::Memory => "OOMKilled",
            ScriptFault::TooLong | ScriptFault::Missing(_) => START_ERROR,
            _ => "Error",
        }
    }
}

impl fmt::Display for ScriptFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptFault::Syntax(what) => write!(f, "syntax error: {what}"),
            ScriptFault::Depth => write!(f, "stopped: commands are nested over {MAX_DEPTH} levels deep"),
            ScriptFault::Steps => write!(f, "stopped: over {} steps without a pause", MAX_STEPS / 2),
            ScriptFault::Memory => write!(
                f,
                "stopped: over {MAX_MEMORY_BYTES} bytes or {MAX_VARIABLES} names of variables and output"
            ),
            ScriptFault::Files => {
                write!(f, "stopped: over {MAX_FILE_BYTES} bytes in files, or {MAX_FILES} files")
            }
            ScriptFault::Broken => write!(f, "stopped: it cannot be played, by a mistake of kubarium's"),
            ScriptFault::Missing(program) => write!(
                f,
                "failed to create containerd task: failed to create shim task: OCI runtime create failed: \
                 runc create failed: unable to start container process: error during container init: {}",
                not_started(program)
            ),
            ScriptFault::TooLong => write!(
                f,
                "argument list too long: over {MAX_WORD_BYTES} bytes in a word, or {MAX_START_BYTES} in all"
            ),
        }
    }
}

/// Why the runtime does not start a program that there is not.
fn not_started(program: &str) -> String {
    let why = if program.contains('/') {
        format!("stat {program}: no such file or directory")
    } else {
        "executable file not found in $PATH".to_owned()
    };
    format!("exec: {program:?}: {why}")
}

/// Why the runtime executes no program that there is not beside a container's process.
pub fn not_executed(program: &str) -> String {
    let why = not_started(program);
    format!("OCI runtime exec failed: exec failed: unable to start container process: {why}: unknown")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use chrono::DateTime;

    use super::*;
    use crate::given::{Given, given};
    use crate::process::{self, Played};
    use crate::surroundings::Surroundings;
    use crate::{exec, logs};

    fn container(command: &[&str]) -> Given {
        given("busybox", command, &[])
    }

    fn play(script: &str) -> Played {
        let container = container(&["sh", "-c", script]);
        process::play(&container.invocation(), &Surroundings::default(), None).unwrap()
    }

    fn syntax(what: &str) -> ScriptFault {
        ScriptFault::Syntax(what.into())
    }

    fn many(text: &str) -> String {
        text.repeat(5000)
    }

    /// In so many parts the scripts are played beside each other.
    const PARTS: usize = 4;

    /// A script for each way over each bound.
    fn bombs() -> Vec<(String, ScriptFault)> {
        let forever = "while [ 1 = 1 ]; do";
        let bombs = [
            ("echo 'open", syntax("unterminated quoted string")),
            ("if true; then echo", syntax("unexpected end of file (expecting \"fi\")")),
            ("x='sh -c \"$x\"'; export x; sh -c \"$x\"", ScriptFault::Depth),
            (&format!("{forever} :; done"), ScriptFault::Steps),
            ("while; do done", ScriptFault::Steps),
            ("(while; do done) | cat", ScriptFault::Steps),
            (&format!("x=$(seq 1 100000); {forever} case $x in *1*2*3*a) ;; esac; done"), ScriptFault::Steps),
            ("x=aaaaaaaaaaaaaaaa; for i in $(seq 1 34); do x=$x$x; done", ScriptFault::Memory),
            (&format!("i=0; {forever} i=$((i+1)); export V$i=1; done"), ScriptFault::Memory),
            ("for i in $(seq 1 100000); do seq 1 1000; done | wc -l", ScriptFault::Memory),
            ("x=$(for i in $(seq 1 100000); do seq 1 1000; done)", ScriptFault::Memory),
            (&format!("printf '{}%s' {}", "a".repeat(60_000), "b ".repeat(20_000)), ScriptFault::Memory),
            (&format!("echo a | sed{}", " -e s/a/aa/g".repeat(40)), ScriptFault::Steps),
            ("x=$(printf %60000s | tr ' ' a); echo $x | sed s/a/$x/g", ScriptFault::Memory),
            ("x=$(printf %60000s | tr ' ' '&'); echo $x | sed s/.*/$x/", ScriptFault::Memory),
            (
                &format!("x=$(printf %60000s | tr ' ' a); {forever} echo $x | sed -n s/b*//g; done"),
                ScriptFault::Steps,
            ),
            (
                &format!("echo a | sed{}", " -e s/a/aa/g".repeat(14) + &" -e p".repeat(150)),
                ScriptFault::Memory,
            ),
            ("x=$(printf %60000s | tr ' ' a); y=${x//a/$x}", ScriptFault::Memory),
            (&format!("x=$(printf %60000s | tr ' ' a); {forever} y=${{x//*b}}; done"), ScriptFault::Steps),
            (&format!("x=$(printf %60000s | tr ' ' a); {forever} y=${{x##*a*b}}; done"), ScriptFault::Steps),
            (&format!("x=$(printf %60000s | tr ' ' '['); {forever} echo $x*; done"), ScriptFault::Steps),
            (&format!("seq 1 100000 > /f; {forever} cat /f >> /g; done"), ScriptFault::Files),
            (&format!("i=0; {forever} i=$((i+1)); touch /tmp/$i; done"), ScriptFault::Files),
            (&format!("i=0; {forever} i=$((i+1)); mkdir /tmp/$i; done"), ScriptFault::Files),
            (
                &format!(
                    "seq 1 2000 | tr -d 0-9 > /f; {forever} awk '{{print {}}}' /f; done",
                    "$1 ".repeat(2000)
                ),
                ScriptFault::Steps,
            ),
            (
                &format!("for i in $(seq 1 9000); do export V$i=1; done; {forever} (unset V1); done"),
                ScriptFault::Steps,
            ),
            (&format!("x={}", "a".repeat(MAX_WORD_BYTES)), ScriptFault::TooLong),
        ];
        let nested = [
            format!("{}echo hi{}", many("("), many(")")),
            format!("{}echo hi{}", many("{ "), many("; }")),
            format!("{}echo hi{}", many("echo $("), many(")")),
            format!("{}echo hi{}", many("if true; then "), many("; fi")),
            format!("echo {}b{}", many("${a:-"), many("}")),
        ];
        let bombs = bombs.into_iter().map(|(script, fault)| (script.to_owned(), fault));
        bombs.chain(nested.into_iter().map(|script| (script, ScriptFault::Depth))).collect()
    }

    #[test]
    fn what_is_too_large_or_not_ascii_is_no_panic() {
        let played = play("sleep 18000000000000000000 18000000000000000000");
        assert_eq!((played.fault, played.end), (None, None), "it sleeps for ever");
        let unknown = container(&["sh", "-c", "awk '{print \u{e9}}' /dev/null"]);
        let misread = process::play(&unknown.invocation(), &Surroundings::default(), None).unwrap();
        assert_eq!(misread.end, Some((Duration::ZERO, 1)), "awk reads no such letter");
        let unknown = given("my-app", &["sh", "-c", "awk '{print \u{e9}}' /dev/null"], &[]);
        assert!(process::play(&unknown.invocation(), &Surroundings::default(), None).is_none());
        let unclosed = crate::interpreter::expansion::expand(&"$(".repeat(500_000), |_| None);
        assert_eq!(unclosed.len(), 1_000_000);
    }

    #[test]
    fn a_container_over_a_bound_ends_with_the_reason() {
        let bombs = &bombs();
        let check = |(script, fault): &(String, ScriptFault)| {
            let played = play(script);
            let shown = &script[..script.len().min(80)];
            assert_eq!(played.fault.as_ref(), Some(fault), "{shown}");
            assert_eq!(played.end.map(|(_, code)| code), Some(fault.code()), "{shown}");
            assert_eq!(played.lines.last().unwrap().text, format!("sh: {fault}"), "{shown}");
        };
        // They take longer than all other tests of the room.
        std::thread::scope(|scope| {
            for part in 0..PARTS {
                scope.spawn(move || bombs.iter().skip(part).step_by(PARTS).for_each(check));
            }
        });
    }

    #[test]
    fn commands_over_a_bound_fail() {
        let around = Surroundings::default();
        // One of each.
        let by_code: BTreeMap<_, _> =
            bombs().into_iter().map(|(script, fault)| (fault.to_string(), (script, fault))).collect();
        for (script, fault) in by_code.into_values() {
            let command = ["sh", "-c", &script].map(str::to_owned);
            let executed = exec::exec(&command, &around, vec![], None).unwrap();
            let shown = &script[..script.len().min(80)];
            assert_eq!(executed.end.map(|(_, code)| code), Some(fault.code()), "{shown}");
            assert!(executed.errors.ends_with(&format!("sh: {fault}\n")), "{shown}: {}", executed.errors);
            let typed = exec::type_lines(("sh", &format!("{script}\n")), &[].into(), &around, vec![]);
            assert!(typed.is_waiting || !typed.errors.is_empty(), "{shown}");
        }
    }

    /// What looks like a bomb, and what a shell plays all the same.
    #[test]
    fn what_stays_within_the_bounds_is_played() {
        let scripts = [
            format!("case {} in {}b) exit 4;; *) exit 3;; esac", "a".repeat(60), "*a".repeat(40)),
            format!("[ {} a ]; exit 3", many("! ")),
            format!("[ {} a ]; exit 3", many("a -a ")),
            format!("[ {} a ] && exit 3", many("a -o ")),
            format!("{} sh -c 'exit 3'", many("nohup exec ")),
            "x=$(seq 1 1000); y=$x$x; echo $y | tr 1 2 | wc -c; exit 3".to_owned(),
            "sleep 99999999999999999; date; uptime; exit 3".to_owned(),
            "seq -9223372036854775808 -1 9223372036854775807; exit 3".to_owned(),
        ];
        for script in scripts {
            let played = play(&script);
            let shown = &script[..script.len().min(80)];
            assert_eq!((played.fault, played.end.map(|(_, code)| code)), (None, Some(3)), "{shown}");
        }
        assert_eq!(play("while [ 1 = 1 ]; do sleep 1; done").end, None, "it pauses");
        assert_eq!(play("while true; do :; done").end, None, "it plainly never ends");
    }

    #[test]
    fn the_older_half_of_a_long_log_is_gone() {
        let played = play("for i in $(seq 1 3000); do seq 1 1000; done");
        let bytes: usize = played.lines.iter().map(|line| line.text.len()).sum();
        assert!(bytes <= MAX_LOG_BYTES && played.lines.len() > 10_000, "{bytes}");
        assert_eq!(played.lines.last().unwrap().text, "1000");
        let words = ["logs-generator", "--log-lines-total", "4000000000"];
        let generator = given("agnhost", &[], &words);
        let (around, started_at) = (Surroundings::default(), DateTime::UNIX_EPOCH);
        let until = started_at + Duration::from_secs(9);
        let invocation = generator.invocation();
        let run = logs::Run { name: "a", invocation: &invocation, around: Some(&around), started_at, until };
        assert!(!logs::lines(&run).is_empty());
    }

    #[test]
    fn a_command_line_that_grows_too_long_does_not_start() {
        let variables = [("A".to_owned(), "a".repeat(1000))].into();
        let around = Surroundings { variables, ..Surroundings::default() };
        for command in [["echo", &"$(A)".repeat(200)], ["sh", "$(A)"]] {
            let played = process::play(&container(&command).invocation(), &around, None);
            let fault = played.and_then(|played| played.fault);
            assert_eq!(fault, Some(ScriptFault::TooLong).filter(|_| command[0] == "echo"), "{}", command[0]);
        }
        let words: Vec<String> = (0..20).map(|_| "$(A)".repeat(100)).collect();
        let mut command = vec!["echo"];
        command.extend(words.iter().map(String::as_str));
        let played = process::play(&container(&command).invocation(), &around, None).unwrap();
        assert_eq!(played.end, Some((Duration::ZERO, 128)));
    }
}
