//! What processes make of what is said to them.

use std::time::Duration;

use crate::given::given;
use crate::invocation::Invocation;
use crate::process;
use crate::standard_input::{MAX_SAID_BYTES, StandardInput};
use crate::surroundings::Surroundings;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// What a process says by 60 s, and how it has ended.
fn talk(command: &[&str], is_terminal: bool, typed: &[(u64, &str)]) -> (String, Option<(Duration, i32)>) {
    let mut input = StandardInput::new(is_terminal);
    for (after, text) in typed {
        match *text {
            "" => input.close(seconds(*after)),
            text => input.say(seconds(*after), text.as_bytes()),
        }
    }
    let around = Surroundings { folder: "/".into(), input: Some(input.into()), ..Surroundings::default() };
    let given = given(if command == ["bash"] { "bash" } else { "busybox" }, command, &[]);
    let invocation = Invocation { stdin: true, ..given.invocation() };
    let said = process::said(&invocation, &around, seconds(60)).unwrap();
    let end = process::play(&invocation, &around, None).unwrap().end;
    (said.transcript.pieces().map(|piece| piece.text.as_str()).collect(), end)
}

#[test]
fn a_shell_waits_for_what_is_typed() {
    assert_eq!(talk(&[], true, &[]), ("/ # ".into(), None));
    let (said, end) = talk(&["sh"], true, &[(1, "x=5\rec"), (2, "ho $x\r"), (9, "exit 3\r")]);
    assert_eq!(said, "/ # x=5\n/ # echo $x\n5\n/ # exit 3\n");
    assert_eq!(end, Some((seconds(9), 3)));
}

#[test]
fn a_terminal_edits_and_interrupts() {
    let typed = [(1, "ecc\u{7f}ho a\u{3}"), (2, "sleep 50\r"), (5, "\u{3}"), (6, "if true\r"), (7, "\u{4}")];
    let (said, end) = talk(&["sh"], true, &typed);
    assert_eq!(
        said,
        "/ # ecc\u{8} \u{8}ho a^C\n/ # sleep 50\n^C\n/ # if true\n> sh: syntax error: unexpected end of file\n",
        "and end of transmission ends it"
    );
    assert_eq!(end, Some((seconds(7), 2)));
}

#[test]
fn a_pipe_echoes_nothing_and_ends() {
    let typed = [(1, "echo a\nfor i in 1 2\n"), (2, "do echo $i\ndone\nfalse"), (3, "")];
    assert_eq!(talk(&["sh"], false, &typed), ("a\n1\n2\n".into(), Some((seconds(3), 1))));
    let typed = [(1, "cat <<E; cat <<-'F'\na\n"), (2, "E\n\tb\n\tF\nread x <<<c; echo $x\n")];
    assert_eq!(talk(&["bash"], false, &typed).0, "a\nb\nc\n");
    let (said, end) = talk(&["sh"], false, &[(1, "nonsense here\n")]);
    assert_eq!((&*said, end), ("sh: nonsense: not found\n", None));
}

#[test]
fn programs_read_what_is_said() {
    let script = ["sh", "-c", "read a; echo got $a; cat; exit 4"];
    let typed = [(1, "one\n"), (2, "two\n"), (3, "thr"), (4, "ee"), (5, "")];
    assert_eq!(talk(&script, false, &typed), ("got one\ntwo\nthree".into(), Some((seconds(5), 4))));
    assert_eq!(talk(&script, false, &typed[..2]), ("got one\ntwo\n".into(), None));
    assert_eq!(talk(&["sh", "-c", "read a; exit 3"], false, &[]).1, None, "it waits");
    assert_eq!(talk(&["sh", "-c", "cat | wc -l"], false, &typed).0, "2\n");
}

#[test]
fn what_counts_a_stream_waits_for_its_end() {
    let typed = [(1, "ab\ncd"), (4, "e\n"), (6, "")];
    for (command, said) in [
        (&["wc", "-c"][..], "7\n"),
        (&["tee", "/tmp/a"], "ab\ncde\n"),
        (&["sort", "-r"], "cde\nab\n"),
        (&["sh", "-c", "cat > /tmp/a; wc -l < /tmp/a"], "2\n"),
        (&["base64"], "YWIKY2RlCg==\n"),
    ] {
        assert_eq!(talk(command, false, &typed), (said.to_owned(), Some((seconds(6), 0))), "{command:?}");
        let (early, end) = talk(command, false, &typed[..2]);
        assert!(said.starts_with(&early) && end.is_none(), "{command:?} has said {early:?}");
    }
    let script = [(1, "echo $# $2\nread x\nyes\necho $x; false\n"), (2, "echo no\n"), (3, "")];
    let flags = ["sh", "-e", "-o", "pipefail", "-s", "--", "a", "b"];
    assert_eq!(talk(&flags, false, &script), ("2 b\nyes\n".into(), Some((seconds(1), 1))));
}

#[test]
fn letters_may_come_in_pieces_and_there_is_a_bound() {
    let mut input = StandardInput::new(false);
    for byte in "\u{20ac}\n".as_bytes() {
        input.say(seconds(1), std::slice::from_ref(byte));
    }
    assert_eq!(input.pieces, [(seconds(1), "\u{20ac}\n".to_owned())]);
    input.say(seconds(2), &vec![b'a'; MAX_SAID_BYTES]);
    input.close(seconds(3));
    input.say(seconds(4), b"late");
    assert_eq!(input.pieces.len(), 1);
}
