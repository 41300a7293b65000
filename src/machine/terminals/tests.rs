//! What is typed at a terminal, and what that shows.

use std::sync::Arc;
use std::time::Duration;

use super::{AtTerminal, Ground, Sitting, play};
use crate::standard_input::StandardInput;
use crate::surroundings::Surroundings;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn sitting(typed: &[(u64, &str)], ran: u64) -> Sitting {
    let mut input = StandardInput::new(true);
    typed.iter().for_each(|(after, text)| input.say(seconds(*after), text.as_bytes()));
    Sitting { input, ran: seconds(ran), ..Sitting::default() }
}

fn at_terminal(command: &[&str], sitting: &Sitting) -> AtTerminal {
    at_terminal_in("busybox", command, sitting).unwrap()
}

fn at_terminal_in(image: &str, command: &[&str], sitting: &Sitting) -> Option<AtTerminal> {
    let command: Vec<String> = command.iter().map(ToString::to_string).collect();
    let around = Surroundings { image: image.into(), folder: "/".into(), ..Surroundings::default() };
    play(&command, sitting, &Arc::new(Ground { around, files: vec![] }))
}

/// What a terminal shows in a minute, and how its command has ended.
fn talk(command: &[&str], typed: &[(u64, &str)]) -> (String, Option<i32>) {
    talk_in("busybox", command, typed)
}

fn talk_in(image: &str, command: &[&str], typed: &[(u64, &str)]) -> (String, Option<i32>) {
    let at = at_terminal_in(image, command, &sitting(typed, 60)).unwrap();
    let shown = at.transcript.behind(0, seconds(60)).into_iter().map(|(_, text)| text).collect();
    (shown, at.end)
}

#[test]
fn keys_end_the_program_in_front() {
    assert_eq!(talk(&["sleep", "100"], &[(1, "\u{3}")]), ("^C".into(), Some(130)));
    assert_eq!(talk(&["sleep", "100"], &[(1, "\u{1c}")]), ("^\\".into(), Some(131)));
    assert_eq!(talk(&["sleep", "100"], &[(1, "x\u{4}")]), (String::new(), None));
    let endless = ["sh", "-c", "while true; do echo x; sleep 1; done"];
    assert_eq!(talk(&endless, &[(2, "\u{3}")]), ("x\nx\nx\n^C".into(), Some(130)));
    assert_eq!(talk(&["wc", "-l"], &[(1, "a\n\u{3}")]), ("a\n^C".into(), Some(130)));
    assert_eq!(talk(&["cat"], &[(1, "ab\u{3}")]), ("ab^C".into(), Some(130)));
    let trapped = ["sh", "-c", "trap 'echo got' INT; sleep 9; echo $?"];
    assert_eq!(talk(&trapped, &[(2, "\u{3}")]), ("^Cgot\n130\n".into(), Some(0)));
}

#[test]
fn keys_interrupt_the_commands_of_a_shell_and_clear_its_line() {
    let typed = [
        (1, "sleep 100\r"),
        (2, "\u{3}"),
        (3, "echo $?\r"),
        (4, "while true; do date >/dev/null; sleep 1; done\r"),
        (9, "\u{1c}"),
        (10, "echo $?; no such\u{3}"),
        (11, "echo $?\r\u{4}"),
    ];
    let (shown, end) = talk(&["sh"], &typed);
    assert_eq!(
        shown,
        "/ # sleep 100\n^C\n/ # echo $?\n130\n\
         / # while true; do date >/dev/null; sleep 1; done\n^\\\n\
         / # echo $?; no such^C\n/ # echo $?\n130\n/ # "
    );
    assert_eq!(end, Some(0));
    assert_eq!(talk(&["sh"], &[(1, "cat | wc -c\r"), (2, "x\u{3}")]).0, "/ # cat | wc -c\nx^C\n/ # ");
    assert_eq!(
        talk(&["sh"], &[(1, "sh\r"), (2, "sleep 9\r"), (3, "\u{3}exit 4\r")]).0.matches("/ # ").count(),
        4
    );
    assert_eq!(talk(&["sh"], &[(1, "kill -INT $$; echo no\r"), (2, "kill -9 $$\r")]).1, Some(137));
}

#[test]
fn programs_read_what_is_typed() {
    assert_eq!(talk(&["cat"], &[(1, "one\r"), (2, "two\n\u{4}")]), ("one\none\ntwo\ntwo\n".into(), Some(0)));
    assert_eq!(talk(&["cat"], &[(1, "one\u{4}\u{4}")]), ("oneone".into(), Some(0)));
    assert_eq!(talk(&["cat"], &[(1, "ab\u{15}c\u{1b}[A\n")]).0, "ab\u{8} \u{8}\u{8} \u{8}c^[[A\nc\u{1b}[A\n");
    let typed = [
        (1, "read a; echo got$a\r"),
        (2, "x y\r"),
        (3, "cat\r"),
        (4, "line\r\u{4}"),
        (5, "wc -l\ra\rb\r\u{4}"),
    ];
    assert_eq!(
        talk(&["sh"], &typed).0,
        "/ # read a; echo got$a\nx y\ngotx y\n/ # cat\nline\nline\n/ # wc -l\na\nb\n2\n/ # "
    );
    let typed = [(1, "grep b\rabc\rno\r\u{4}sed s/a/x/\ra\r\u{4}head -n1\r1\r2\r\u{4}")];
    assert_eq!(
        talk(&["sh"], &typed).0,
        "/ # grep b\nabc\nno\nabc\n/ # sed s/a/x/\na\nx\n/ # head -n1\n1\n2\n1\n/ # "
    );
}

#[test]
fn a_command_that_its_image_has_not_never_begins() {
    for command in [&["bash"][..], &["curl", "x"], &["/usr/bin/curl"]] {
        assert!(at_terminal_in("busybox", command, &sitting(&[], 1)).is_none(), "{command:?}");
    }
    let (shown, _) =
        talk(&["sh"], &[(1, "curl x\r"), (2, "chroot /host\r"), (3, "curl --version | head -c 4\r")]);
    assert!(shown.contains("sh: curl: not found\n") && shown.ends_with("curl/ # "), "{shown}");
}

#[test]
fn lines_are_edited_and_come_back() {
    let typed = [
        (1, "echo one\r"),
        (2, "\u{1b}[A\u{1b}[D\u{1b}[D\u{1b}[Dt\u{7f}n\r"),
        (3, "history\r"),
        (4, "\u{4}"),
    ];
    let (shown, end) = talk_in("debian", &["bash"], &typed);
    assert!(shown.contains("\none\n") && shown.contains("\nnone\n"), "{shown}");
    assert!(shown.contains("    1  echo one\n    2  echo none\n    3  history\n"), "{shown}");
    assert!(shown.starts_with("root@:/# ") && shown.ends_with("# exit\n"), "{shown}");
    assert_eq!(end, Some(0));
    let (shown, _) = talk(&["sh"], &[(1, "true\r"), (2, "history\r")]);
    assert!(shown.contains("   0 true\n   1 history\n"), "{shown}");
}

#[test]
fn a_shell_at_its_prompt_can_begin_anew_with_what_it_remembers() {
    let begun = at_terminal(&["sh"], &sitting(&[(1, "x=4; f() { echo $x; }; cd /tmp\r"), (2, "")], 3));
    let memory = begun.memory.clone();
    assert!(memory.is_some());
    let next = Sitting { memory, ..sitting(&[(1, "f; history; sleep 5\r")], 2) };
    let at = at_terminal(&["sh"], &next);
    let shown: String = at.transcript.behind(0, seconds(2)).into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        shown,
        "f; history; sleep 5\n4\n   0 x=4; f() { echo $x; }; cd /tmp\n   1 f; history; sleep 5\n"
    );
    assert_eq!((at.next, at.memory.is_none()), (Some(seconds(6)), true), "it sleeps");
    let at = at_terminal(&["sh"], &Sitting { ran: seconds(7), ..next });
    assert!(at.memory.is_some());
    assert!(at.transcript.behind(0, seconds(7)).last().unwrap().1.ends_with("/tmp # "));
    for typed in ["ec", "if true\r", "sleep 9 &\r", "sh\r"] {
        assert!(at_terminal(&["sh"], &sitting(&[(1, typed)], 2)).memory.is_none(), "{typed}");
    }
}

#[test]
fn a_shell_that_begins_anew_keeps_its_chance_its_files_and_its_jobs() {
    let line = |memory, typed: &str, ran| {
        let at = at_terminal(&["sh"], &Sitting { memory, ..sitting(&[(1, typed)], ran) });
        let shown: String = at.transcript.behind(0, seconds(ran)).into_iter().map(|(_, text)| text).collect();
        (at, shown)
    };
    let draw = "head -c 8 /dev/urandom | xxd -p\r";
    let (first, one) = line(None, draw, 2);
    let (_, two) = line(first.memory.clone(), draw, 2);
    let digits = |shown: &str| shown.lines().find(|line| line.len() == 16).unwrap().to_owned();
    assert_ne!(digits(&one), digits(&two), "no number is drawn twice");
    let (opened, _) = line(first.memory, "exec 3>/tmp/log; sh -c 'exit 3' & sleep 1\r", 4);
    let memory = opened.memory.expect("its job has ended");
    let (_, shown) = line(Some(memory), "echo kept >&3; wait $!; echo $?\r", 3);
    assert!(shown.contains("\n3\n"), "{shown}");
    assert!(!shown.contains("\nkept\n"), "{shown}");
}

#[test]
fn what_is_to_be_done_at_the_end_is_done_when_a_key_ends_it() {
    let trapped = ["sh", "-c", "trap 'echo bye' EXIT; sleep 9; echo no"];
    assert_eq!(talk(&trapped, &[(2, "\u{3}")]), ("^Cbye\n".into(), Some(130)));
}

#[test]
fn a_shell_behind_a_pipe_begins_anew_between_lines() {
    let piped = |texts: &[&str], ran: u64| {
        let mut input = StandardInput::new(false);
        texts.iter().for_each(|text| input.pipe(seconds(1), text.as_bytes()));
        Sitting { input, ran: seconds(ran), ..Sitting::default() }
    };
    assert!(at_terminal(&["sh"], &piped(&["x=1\n"], 2)).memory.is_some());
    for (command, texts) in [
        // A line is not whole, a command is not, a program reads, and a script would be played again.
        (&["sh"][..], &["x=1\ny"][..]),
        (&["sh"], &["if true\n"]),
        (&["sh"], &["cat\n"]),
        (&["sh", "-c", "echo a; exec sh"], &["x=1\n"]),
    ] {
        assert!(at_terminal(command, &piped(texts, 2)).memory.is_none(), "{command:?} {texts:?}");
    }
}
