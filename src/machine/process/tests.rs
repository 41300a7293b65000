//! What processes do that are played.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::given::{Given, given};
use crate::surroundings::kept_mount;

fn container(image: &str, command: &[&str]) -> Given {
    given(image, command, &[])
}

fn play(container: &Given, around: &Surroundings, until: Option<Duration>) -> Option<Played> {
    super::play(&container.invocation(), around, until)
}

fn end(container: &Given, around: &Surroundings) -> Option<(Duration, i32)> {
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
    let code = |script: &str, index: &str, unseen_runs: i64, mount: &str| {
        let variables = BTreeMap::from([("INDEX".to_owned(), index.to_owned())]);
        let mounts = vec![kept_mount(mount)];
        let around = Surroundings { variables, unseen_runs, mounts, ..Surroundings::default() };
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
    let view = |after, tree| file_system::View { after: Duration::from_secs(after), tree: Arc::new(tree) };
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
        (&["sh", "-c", "ls /etc/c; ls -l /etc/c | wc -l"], &["k", "2"]),
        (&["/bin/echo", "-n", "DONE"], &["DONE"]),
        (&["sh", "-c", "echo 'a b' > /tmp/x; cat /tmp/x | awk {'print $2'}"], &["b"]),
        (&["sh", "-c", "wc -l /etc/hosts_ | awk {'print $1'}"], &["0"]),
        (&["sh", "-c", "seq 1 3 > /tmp/x; wc -l /tmp/x | awk '{print $1}'"], &["3"]),
        (
            &["sh", "-c", "seq 1 3 > /tmp/x; wc -l /tmp/x /tmp/x; wc -lc < /tmp/x"],
            &["3 /tmp/x", "3 /tmp/x", "6 total", "        3         6"],
        ),
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
    let mounted =
        container("agnhost", &["/agnhost", "mounttest", "--file_mode=/etc/c/k", "--file_content=/etc/c/k"]);
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
        let around = Surroundings { message_path, falls_back_to_logs: falls_back, ..Surroundings::default() };
        termination_message(&played, code, &around)
    };
    assert_eq!(message("echo -n DONE > /dev/termination-log", false), "DONE");
    assert_eq!(message("/bin/echo -n DONE > /dev/termination-log", false), "DONE");
    assert_eq!(message("echo DONE; exit 1", true), "DONE\n");
    assert_eq!(message("/bin/echo -n DONE; /bin/false", true), "DONE");
    assert_eq!(message("echo a; printf b; exit 1", true), "a\nb");
    assert_eq!(message("echo DONE; exit 1", false), "");
    assert_eq!(message("echo DONE", true), "");
}

/// What a script says, and when and how it ends.
fn told(script: &str) -> (Vec<String>, Option<(u64, i32)>) {
    let played = play(&container("busybox", &["sh", "-c", script]), &Surroundings::default(), None).unwrap();
    let lines = played.lines.into_iter().map(|line| line.text).collect();
    (lines, played.end.map(|(time, code)| (time.as_secs(), code)))
}

#[test]
fn functions_are_called_with_their_arguments() {
    let lines = |script: &str| told(script).0;
    assert_eq!(
        lines("greet() { echo \"hi $1 of $#\"; }; greet a b; greet 'c d'"),
        ["hi a of 2", "hi c d of 1"]
    );
    assert_eq!(
        lines("f() { return 3; }; f; echo $?; echo $(g)\ng() { echo late; }"),
        ["3", "sh: g: not found", ""]
    );
    assert_eq!(lines("g() { for x; do echo \"<$x>\"; done; }; g 'a b' c"), ["<a b>", "<c>"]);
    assert_eq!(lines("g() { shift; echo \"$@\"; }; f() { g \"$@\"; echo $1; }; f 1 2 3"), ["2 3", "1"]);
    assert_eq!(told("f() { exit 4; }; f; echo no"), (vec![], Some((0, 4))));
    // The shell bomb, and what calls itself for ever.
    for bomb in [":(){ :|:; }; :", "f() { f; }; f", "f() { f & f; }; f"] {
        let (lines, end) = told(bomb);
        let is_killed = end.is_some_and(|(_, code)| code != 0) && lines[0].starts_with("sh: ");
        assert!(is_killed, "{bomb}: {lines:?} {end:?}");
    }
}

#[test]
fn the_background_takes_its_time_meanwhile() {
    assert_eq!(
        told("(sleep 3; echo slow) & sleep 1; echo quick; wait; echo all"),
        (vec!["quick".into(), "slow".into(), "all".into()], Some((3, 0)),)
    );
    assert_eq!(told("sleep 9 & echo on; exit 2"), (vec!["on".into()], Some((0, 2))));
    assert_eq!(told("while true; do sleep 1; done & sleep 2; exit 5").1, Some((2, 5)));
    assert_eq!(told("while true; do sleep 1; done & wait").1, None);
}

#[test]
fn here_documents_are_read() {
    let script =
        "A=b\ncat <<EOF\nit's \"$A\" $(echo c) \\$A\nEOF\ncat <<'END' <<-X\nno\nEND\n\tlast $A\n\tX\necho on";
    assert_eq!(told(script).0, ["it's \"b\" c $A", "last b", "on"]);
}

#[test]
fn failures_end_a_script_where_nothing_depends_on_them() {
    for (script, code) in [
        ("set -e; false || true; exit 3", 3),
        ("set -e; false && true; exit 3", 3),
        ("set -e; true && false; exit 3", 1),
        ("set -e; ! true; exit 3", 3),
        ("set -e; false | true; exit 3", 3),
        ("set -eo pipefail; false | true; exit 3", 1),
        ("set -o pipefail; false | true; exit $?", 1),
        ("set -e; if false; then true; fi; exit 3", 3),
    ] {
        assert_eq!(told(script).1, Some((0, code)), "{script}");
    }
}
