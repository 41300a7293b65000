//! What a container's process does, as far as its command tells: how long it runs, how it ends, what it
//! says and writes.

use std::collections::BTreeMap;
use std::time::Duration;

use super::file_system::{self, File};
use super::player::{Flow, Player};
use super::shell::Script;
use super::surroundings::Surroundings;
use super::{agnhost, commands, expansion, images};
use crate::apis::views::pod::Container;

/// So many runs before the last one are played to know what they left.
const MAX_EARLIER_RUNS: i64 = 8;
/// Of a termination message (`MaxContainerTerminationMessageLength`).
const MAX_MESSAGE_BYTES: usize = 4096;
/// Of the log, when that is the termination message (`MaxContainerTerminationMessageLogLength`,
/// `...LogLines`).
const MAX_LOG_MESSAGE: (usize, usize) = (2048, 80);

/// A line that was said, and how long after the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// After the start of the process.
    pub after: Duration,
    /// Without its end.
    pub text: String,
}

/// A path, and the file that was written there; none when it was removed.
pub type Change = (String, Option<File>);

/// What a container left in a volume.
#[derive(Clone, Debug)]
pub struct Left {
    /// The volume's name.
    pub volume: String,
    /// In the volume.
    pub path: String,
    /// None when it was removed.
    pub file: Option<File>,
}

/// A process that was played until it ended, or as far as was asked.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// When it ended and with what code; nothing while it runs.
    pub end: Option<(Duration, i32)>,
    /// How far it was played: when the command ends that it is busy with.
    pub until: Duration,
    /// What it said.
    pub lines: Vec<Line>,
    /// What it wrote, and `None` where it removed something.
    pub written: Vec<Change>,
    /// When files changed.
    pub changes: Vec<Duration>,
}

/// What a container runs, as far as it is known.
enum Program {
    Script(Script),
    Agnhost(Vec<String>),
    /// Ends at once and well.
    Nothing,
}

/// Whether what the container's command does is known.
pub fn is_known(container: &Container) -> bool {
    program(container, None).is_some()
}

/// Whether its command is known and looks at files or at variables that are not the pod's own: then the
/// volumes and the services that it would find are asked for.
pub fn looks_around(container: &Container) -> bool {
    match program(container, None) {
        Some(Program::Script(script)) => {
            script.any_command(&|name, _| {
                !matches!(
                    commands::base_name(name),
                    "" | "echo" | "sleep" | "true" | "false" | "exit" | "date" | ":"
                )
            }) || names_services(container)
        }
        Some(Program::Agnhost(line)) => line.get(1).is_some_and(|name| name == "mounttest"),
        Some(Program::Nothing) | None => false,
    }
}

/// Whether its words name variables as a service's are named.
fn names_services(container: &Container) -> bool {
    let mut words = container.command.iter().chain(&container.args);
    words.any(|word| word.contains("_SERVICE_") || word.contains("_PORT"))
}

/// Plays the container's command for `until`, or without it to its end; nothing when it is not known.
/// What earlier runs left in volumes is there.
pub fn play(container: &Container, around: &Surroundings, until: Option<Duration>) -> Option<Played> {
    let program = program(container, Some(around))?;
    let mut left = Vec::new();
    for _ in 0..around.restart_count.clamp(0, MAX_EARLIER_RUNS) {
        let mut player = Player::new(around, None);
        player.written.extend(left);
        program.run(&mut player);
        left = player.written.into_iter().filter(|(path, _)| is_kept(around, path)).collect();
    }
    let mut player = Player::new(around, until);
    player.written.extend(left);
    let flow = program.run(&mut player);
    player.flush();
    let end = match flow {
        Flow::OutOfTime => None,
        Flow::Exit(code) => Some((player.elapsed, code)),
        _ => Some((player.elapsed, player.status)),
    };
    let Player { elapsed: until, lines, written, changes, .. } = player;
    Some(Played { end, until, lines, written: written.into_iter().collect(), changes })
}

/// A command that was run beside a container's process.
#[derive(Clone, Debug, Default)]
pub struct Executed {
    /// How long it took and its code; nothing when it never ends.
    pub end: Option<(Duration, i32)>,
    /// What it said.
    pub out: String,
    /// What it said of errors.
    pub errors: String,
    /// What it wrote, beside what was written before.
    pub written: Vec<Change>,
    /// It reads what is not there, or the line that was typed goes on in the next one.
    pub is_waiting: bool,
    /// What a shell remembers until the next line is typed; nothing when it has ended.
    pub shell: Option<Shell>,
}

/// A shell's variables; its folder is `PWD`.
pub type Shell = BTreeMap<String, String>;

/// Runs a command in a running container beside its process (`exec`); nothing when it is not known.
/// `files` are what the container's process wrote so far.
pub fn exec(
    command: &[String],
    around: &Surroundings,
    files: Vec<Change>,
    standard_input: Option<String>,
) -> Option<Executed> {
    let script = Script::of_command(command).filter(|_| shell_is_known(command))?;
    let mut player = Player::new(around, None).gathering();
    player.standard_input = standard_input;
    Some(executed(player, files, |player| player.list(&script.list)))
}

/// What a shell, `program`, makes of lines that are typed into it. `shell` is what it remembers; a new
/// one nothing.
pub fn type_lines(
    (program, text): (&str, &str),
    shell: &Shell,
    around: &Surroundings,
    files: Vec<Change>,
) -> Executed {
    let Some(scripts) = scripts(text) else { return Executed { is_waiting: true, ..Executed::default() } };
    let mut player = Player::new(around, None).gathering();
    player.standard_input = Some(String::new());
    if let Some(folder) = shell.get("PWD") {
        (player.variables, player.folder) = (shell.clone(), folder.clone());
    }
    executed(player, files, |player| {
        for script in &scripts {
            match script {
                Ok(script) => {
                    let flow = player.list(&script.list);
                    if matches!(flow, Flow::Exit(_) | Flow::OutOfTime) {
                        return flow;
                    }
                }
                Err(word) => {
                    player.complain(&format!("{program}: {word}: not found\n"));
                    player.status = 127;
                }
            }
        }
        Flow::Go
    })
}

/// Line by line, unless a command goes on in the next; the first word of what is not understood.
/// Nothing when the last one is not whole.
fn scripts(text: &str) -> Option<Vec<Result<Script, String>>> {
    let (mut scripts, mut open) = (Vec::new(), String::new());
    for line in text.split_inclusive('\n') {
        open.push_str(line);
        match Script::parse(&open) {
            None if Script::goes_on(&open) => continue,
            script => {
                let word = || open.split_whitespace().next().unwrap_or_default().to_owned();
                scripts.push(script.ok_or_else(word));
            }
        }
        open.clear();
    }
    open.is_empty().then_some(scripts)
}

fn executed<'a>(
    mut player: Player<'a>,
    files: Vec<Change>,
    play: impl FnOnce(&mut Player<'a>) -> Flow,
) -> Executed {
    let before: BTreeMap<String, Option<File>> = files.into_iter().collect();
    player.written.clone_from(&before);
    let flow = play(&mut player);
    let end = match flow {
        Flow::OutOfTime => None,
        Flow::Exit(code) => Some((player.elapsed, code)),
        _ => Some((player.elapsed, player.status)),
    };
    let (out, errors) = player.said();
    let mut shell = player.variables;
    shell.insert("PWD".into(), player.folder);
    let shell = Some(shell).filter(|_| !matches!(flow, Flow::Exit(_)));
    let written = player.written.into_iter().filter(|(path, file)| before.get(path) != Some(file)).collect();
    Executed { end, out, errors, written, is_waiting: player.is_waiting, shell }
}

/// Whether a command does the same whatever it finds.
pub fn is_constant(command: &[String]) -> bool {
    let text = |script: &Script| {
        !script.any_command(&|name, _| {
            !matches!(commands::base_name(name), "echo" | "sleep" | "true" | "false" | "exit" | ":")
        })
    };
    let at = command.iter().position(|word| commands::is_command_flag(word));
    match at
        .and_then(|at| command.get(at + 1))
        .filter(|_| command.first().is_some_and(|it| is_shell(commands::base_name(it))))
    {
        Some(script) => Script::parse(script).is_some_and(|script| text(&script)),
        None => Script::of_command(command).is_some_and(|script| text(&script)),
    }
}

/// Whether `sh -c script` has a script that is understood.
fn shell_is_known(command: &[String]) -> bool {
    let at = command.iter().position(|word| commands::is_command_flag(word));
    let is_shell = command.first().is_some_and(|program| is_shell(commands::base_name(program)));
    match at.and_then(|at| command.get(at + 1)) {
        Some(script) if is_shell => Script::parse(script).is_some(),
        _ => true,
    }
}

/// The last word of a process that ended with `code`: the file of its `terminationMessagePath`, or the
/// end of its log.
pub fn termination_message(played: &Played, code: i32, around: &Surroundings) -> String {
    let written = played.written.iter().find(|(written, _)| *written == around.message_path);
    let text = written.and_then(|(_, file)| file.as_ref()).map(File::text).unwrap_or_default();
    if !text.is_empty() {
        return cut(text, MAX_MESSAGE_BYTES);
    }
    if !around.falls_back_to_logs || code == 0 {
        return String::new();
    }
    let lines = &played.lines[played.lines.len().saturating_sub(MAX_LOG_MESSAGE.1)..];
    cut(lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect(), MAX_LOG_MESSAGE.0)
}

/// The last `limit` bytes.
fn cut(text: String, limit: usize) -> String {
    let mut from = text.len().saturating_sub(limit);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

/// What a container wrote into volumes that others see.
pub fn left_in_volumes(written: &[Change], around: &Surroundings) -> Vec<Left> {
    let in_volume = |(path, file): &Change| {
        let mount = file_system::mount_of(&around.mounts, path).filter(|mount| mount.is_kept)?;
        let inner = path[mount.path.trim_end_matches('/').len()..].trim_start_matches('/');
        let inner = format!("{}/{inner}", mount.sub_path);
        let (volume, path) = (mount.volume.clone(), inner.trim_matches('/').to_owned());
        Some(Left { volume, path, file: file.clone() })
    };
    written.iter().filter_map(in_volume).collect()
}

/// Whether what is written there stays, for others too.
pub fn is_kept(around: &Surroundings, path: &str) -> bool {
    file_system::mount_of(&around.mounts, path).is_some_and(|mount| mount.is_kept)
}

impl Program {
    fn run(&self, player: &mut Player<'_>) -> Flow {
        match self {
            Program::Script(script) => player.list(&script.list),
            Program::Agnhost(line) => agnhost::run(player, line),
            Program::Nothing => Flow::Go,
        }
    }
}

/// What the container runs. `$(NAME)` in its words is filled in as the kubelet does, when its variables
/// are known.
fn program(container: &Container, around: Option<&Surroundings>) -> Option<Program> {
    let filled = |word: &String| match around {
        Some(around) => expansion::expand(word, |name| around.variables.get(name).cloned()),
        None => expansion::expand(word, |_| Some(String::new())),
    };
    let command: Vec<String> = container.command.iter().map(filled).collect();
    let args: Vec<String> = container.args.iter().map(filled).collect();
    if let Some(line) = agnhost::command_line(&container.image, &command, &args) {
        return Some(Program::Agnhost(line));
    }
    if command.is_empty() && !images::runs_a_shell(&container.image) {
        return (images::base_name(&container.image) == "hello-world").then_some(Program::Nothing);
    }
    let words: Vec<String> = command.into_iter().chain(args).collect();
    let name = words.first().map(|program| commands::base_name(program));
    match (name, words.get(1..).unwrap_or_default()) {
        // A shell that nobody types into reads the end of its input at once.
        (None, []) => (!container.stdin).then_some(Program::Nothing),
        (Some(name), []) if is_shell(name) => (!container.stdin).then_some(Program::Nothing),
        (Some(name), [flags, text, ..]) if is_shell(name) && commands::is_command_flag(flags) => {
            Script::parse(text).map(Program::Script)
        }
        (Some(name), _) if is_shell(name) => None,
        _ => Script::of_command(&words).map(Program::Script),
    }
}

pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "ash")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn container(image: &str, command: &[&str]) -> Container {
        serde_json::from_value(json!({"name": "a", "image": image, "command": command})).unwrap()
    }

    fn end(container: &Container, around: &Surroundings) -> Option<(Duration, i32)> {
        play(container, around, None)?.end
    }

    #[test]
    fn commands_end_as_they_say() {
        type Case = (&'static str, &'static [&'static str], Option<(u64, i32)>);
        let cases: &[Case] = &[
            ("busybox", &["sleep", "5"], Some((5, 0))),
            ("busybox", &["/bin/sh", "-c", "sleep 2m; exit 3"], Some((120, 3))),
            ("busybox", &["sh", "-c", "false || sleep 1 && exit 7"], Some((1, 7))),
            ("busybox", &["sh", "-c", "while true; do sleep 1; done"], None),
            ("busybox", &["sh", "-c", "for i in 1 2 3; do sleep 2; done"], Some((6, 0))),
            ("busybox", &["sh", "-c", "false"], Some((0, 1))),
            ("busybox", &["sleep", "infinity"], None),
            ("busybox", &[], Some((0, 0))),
            ("nginx", &[], None),
            ("nginx", &["true"], Some((0, 0))),
            ("hello-world", &[], Some((0, 0))),
            ("busybox", &["sh", "-c", "if [ $((7 % 4 * 2)) -eq 6 ]; then exit 3; fi"], Some((0, 3))),
            ("busybox", &["sh", "-c", "i=0; while [ $i -lt 3 ]; do i=$((i+1)); sleep 2; done"], Some((6, 0))),
            ("busybox", &["sh", "-c", "false; exit $?"], Some((0, 1))),
            ("busybox", &["sh", "-c", "until test -e /x; do sleep 1; touch /x; done; exit 4"], Some((1, 4))),
            ("perl:5.34.0", &["perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"], Some((1, 0))),
            ("busybox", &["sh", "-c", "set -e; false; sleep 9"], Some((0, 1))),
            ("busybox", &["sh", "-c", "echo a | grep -q b || exit 5"], Some((0, 5))),
            (
                "busybox",
                &["sh", "-c", "while true; do sleep 1; if [ $((n)) = 0 ]; then break; fi; done"],
                Some((1, 0)),
            ),
            ("busybox", &["tail", "-f", "/dev/null"], None),
            ("agnhost", &[], None),
            ("agnhost", &["/agnhost", "mounttest", "--file_content=/x"], Some((0, 1))),
        ];
        for (image, command, ends) in cases {
            let ends = ends.map(|(seconds, code)| (Duration::from_secs(seconds), code));
            let around = Surroundings::default();
            assert_eq!(end(&container(image, command), &around), ends, "{image} {command:?}");
        }
    }

    #[test]
    fn loops_say_what_they_said_so_far() {
        let script = "i=1; while true; do echo \"line $i of '$HOSTNAME'\"; i=$((i+1)); sleep 1; done";
        let variables = BTreeMap::from([("HOSTNAME".to_owned(), "web".to_owned())]);
        let around = Surroundings { variables, ..Surroundings::default() };
        let container = container("busybox", &["sh", "-c", script]);
        let played = play(&container, &around, Some(Duration::from_secs(2))).unwrap();
        let lines: Vec<(u64, &str)> =
            played.lines.iter().map(|line| (line.after.as_secs(), line.text.as_str())).collect();
        assert!(played.end.is_none());
        assert_eq!(lines, [(0, "line 1 of 'web'"), (1, "line 2 of 'web'"), (2, "line 3 of 'web'")]);
    }

    #[test]
    fn scripts_go_by_their_surroundings() {
        let odd = "if [ $(expr ${INDEX} % 2) -ne 0 ]; then exit 1 ; else exit 0 ; fi";
        let once = "if [[ -r /data/foo ]] ; then exit 0 ; else touch /data/foo ; exit 1 ; fi";
        let code = |script: &str, index: &str, restart_count: i64, mount: &str| {
            let variables = BTreeMap::from([("INDEX".to_owned(), index.to_owned())]);
            let mounts = vec![super::super::surroundings::kept_mount(mount)];
            let around = Surroundings { variables, restart_count, mounts, ..Surroundings::default() };
            end(&container("busybox", &["sh", "-c", script]), &around).unwrap().1
        };
        assert_eq!([code(odd, "2", 0, "/m"), code(odd, "3", 0, "/m")], [0, 1]);
        assert_eq!([code(once, "", 0, "/data"), code(once, "", 1, "/data")], [1, 0]);
        // What is not in a volume is lost.
        assert_eq!(code(once, "", 3, "/other"), 1);
    }

    #[test]
    fn processes_say_what_they_find() {
        let tree = file_system::Tree::from([("/etc/c/k".to_owned(), File::new(*b"value-1", 0o644))]);
        let later = file_system::Tree::from([("/etc/c/k".to_owned(), File::new(*b"value-2", 0o644))]);
        let view =
            |after, tree| file_system::View { after: Duration::from_secs(after), tree: Arc::new(tree) };
        let around = Surroundings {
            variables: BTreeMap::from([("A".to_owned(), "a b".to_owned())]),
            views: vec![view(0, tree), view(3, later)],
            ..Surroundings::default()
        };
        let cases: &[(&[&str], &[&str])] = &[
            (&["cat", "/etc/c/k"], &["value-1"]),
            (&["sh", "-c", "sleep 5; cat /etc/c/k"], &["value-2"]),
            (&["sh", "-c", "echo $A \"$A\" '$A' ${B:-c} | tr a-z A-Z"], &["A B A B $A C"]),
            (
                &["sh", "-c", "echo hello > /tmp/x; cat /tmp/x >&2; x=$(cat /tmp/x); echo $x-"],
                &["hello", "hello-"],
            ),
            (&["cat", "/nothing"], &["cat: can't open '/nothing': No such file or directory"]),
            (&["env"], &["A=a b"]),
            (&["echo", "$(A)", "$(C)"], &["a b $(C)"]),
            (&["sh", "-c", "ls /etc/c; ls -l /etc/c | wc -l"], &["k", "1"]),
            (
                &["sh", "-c", "printf '%s=%s\\n' a 1 b 2; for x in $A; do echo .$x; done"],
                &["a=1", "b=2", ".a", ".b"],
            ),
        ];
        for (command, said) in cases {
            let played = play(&container("busybox", command), &around, None).unwrap();
            let lines: Vec<&str> = played.lines.iter().map(|line| line.text.as_str()).collect();
            assert_eq!(lines, *said, "{command:?}");
        }
        let mounted = container(
            "agnhost",
            &["/agnhost", "mounttest", "--file_mode=/etc/c/k", "--file_content=/etc/c/k"],
        );
        let said = play(&mounted, &around, None).unwrap();
        let lines: Vec<&str> = said.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(lines, ["mode of file \"/etc/c/k\": -rw-r--r--", "content of file \"/etc/c/k\": value-1"]);
    }

    #[test]
    fn the_last_word_is_a_file_or_the_log() {
        let message = |script: &str, falls_back: bool| {
            let played =
                play(&container("busybox", &["sh", "-c", script]), &Surroundings::default(), None).unwrap();
            let code = played.end.unwrap().1;
            let message_path = "/dev/termination-log".into();
            let around =
                Surroundings { message_path, falls_back_to_logs: falls_back, ..Surroundings::default() };
            termination_message(&played, code, &around)
        };
        assert_eq!(message("echo -n DONE > /dev/termination-log", false), "DONE");
        assert_eq!(message("echo DONE; exit 1", true), "DONE\n");
        assert_eq!(message("echo DONE; exit 1", false), "");
        assert_eq!(message("echo DONE", true), "");
    }
}
