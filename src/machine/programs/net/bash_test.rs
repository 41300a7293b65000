//! Connections that bash makes of redirections, with a network that a test plays.

use super::tests::{answered, around};
use crate::exec::exec;

fn run_of(shell: &str, script: &str) -> (i32, String, String) {
    let words = [shell, "-c", script].map(str::to_owned);
    let executed = answered(&around(), |around| exec(&words, around, vec![], Some(vec![])).unwrap());
    (executed.end.unwrap().1, executed.out, executed.errors)
}

#[test]
fn bash_looks_whether_anybody_is_there() {
    for (script, wanted) in [
        ("(echo > /dev/tcp/web/80) 2>/dev/null && echo open || echo closed", "open\n"),
        ("(echo > /dev/tcp/web/81) 2>/dev/null && echo open || echo closed", "closed\n"),
        ("</dev/tcp/web/80 && echo open", "open\n"),
        ("timeout 1 bash -c '</dev/tcp/web/80' && echo open", "open\n"),
        ("cat < /dev/null > /dev/tcp/web/80 && echo open", "open\n"),
        ("exec 3<>/dev/tcp/web/81; echo $?", "1\n"),
        ("until : < /dev/tcp/web/80; do sleep 1; done; echo open", "open\n"),
    ] {
        assert_eq!(run_of("bash", script).1, wanted, "{script}");
    }
    let refused = "bash: connect: Connection refused\nbash: line 1: /dev/tcp/web/81: Connection refused\n";
    assert_eq!(run_of("bash", ": > /dev/tcp/web/81"), (1, String::new(), refused.into()));
    let nobody = "bash: line 1: nobody: Name or service not known\n\
                  bash: line 1: /dev/tcp/nobody/80: Invalid argument\n";
    assert_eq!(run_of("bash", ": < /dev/tcp/nobody/80").2, nobody);
    assert!(run_of("bash", ": > /dev/tcp/web/x").2.contains("x: Servname not supported for ai_socktype\n"));
    // To other shells it is a file that there is not.
    assert_eq!(run_of("sh", ": < /dev/tcp/web/80").2, "/bin/sh: can't open /dev/tcp/web/80: no such file\n");
}

#[test]
fn bash_says_and_hears_over_a_connection() {
    for (script, wanted) in [
        ("exec 3<>/dev/tcp/web/80; echo hello >&3; cat <&3", "heard hello\n"),
        (
            "exec 3<>/dev/tcp/web/80; printf 'a\\nb\\nc\\n' >&3; read x <&3; read y <&3; echo $y-$x; cat <&3",
            "b-heard a\nc\n",
        ),
        (
            "exec 3<>/dev/tcp/web/80; echo one >&3; cat <&3; cat <&3; echo two >&3; cat <&3",
            "heard one\nheard two\n",
        ),
        ("cat < /dev/tcp/web/80", "heard "),
        ("exec 3<>/dev/udp/web/9; echo ping >&3; cat <&3", "ping\n"),
        ("{ echo GET; cat <&3; } 3<>/dev/tcp/web/80 >&3; echo done", "done\n"),
    ] {
        assert_eq!(run_of("bash", script).1, wanted, "{script}");
    }
    // Whoever hears no answer has said it all the same.
    let words = ["bash", "-c", "echo 'metric 1' > /dev/tcp/web/80; exec 3>&-"].map(str::to_owned);
    let asked = std::cell::RefCell::new(vec![]);
    answered(&around(), |around| {
        let executed = exec(&words, around, vec![], Some(vec![])).unwrap();
        asked.borrow_mut().extend(executed.question.as_ref().map(|(_, question)| format!("{question:?}")));
        executed
    });
    let said = format!("{:?}", b"metric 1\n");
    assert!(asked.borrow().last().unwrap().contains(&said), "{asked:?}");
}
