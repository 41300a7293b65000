//! What somebody types into a terminal: `kubectl exec -it` and `run -it`, with a terminal that is one
//! (`script`).

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::support::{Kubectl, with_each_kubectl};

/// So long a terminal may show nothing that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// A kubectl at a terminal.
pub(super) struct Terminal {
    child: Child,
    keys: ChildStdin,
    /// What is shown, piece by piece, until it ends.
    screen: Receiver<Vec<u8>>,
    shown: String,
    /// All that was shown by now.
    whole: String,
}

impl Terminal {
    pub(super) fn open(kubectl: &Kubectl, line: &str) -> Terminal {
        let kubectl = kubectl.command(line);
        let words = std::iter::once(kubectl.get_program()).chain(kubectl.get_args());
        let words = words.map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''")));
        let mut script = Command::new("script");
        script.args(["-qec", &words.collect::<Vec<_>>().join(" "), "/dev/null"]);
        kubectl.get_envs().for_each(|(name, value)| {
            script.env(name, value.unwrap_or_default());
        });
        let script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = script.spawn().expect("script, which is part of bsdutils");
        let (keys, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tells, screen) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                if tells.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keys, screen, shown: String::new(), whole: String::new() }
    }

    /// Types, and waits until that is shown.
    pub(super) fn types(&mut self, keys: &str, wanted: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.shows(wanted);
    }

    /// Waits until this is shown behind what was waited for before.
    fn shows(&mut self, wanted: &str) {
        let end = loop {
            if let Some(at) = self.shown.find(wanted) {
                break at + wanted.len();
            }
            match self.screen.recv_timeout(PATIENCE) {
                Ok(bytes) => self.show(&bytes),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended before {wanted:?}: {:?}", self.shown),
                Err(RecvTimeoutError::Timeout) => panic!("{wanted:?} is not shown: {:?}", self.shown),
            }
        };
        self.shown.drain(..end);
    }

    fn show(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.shown.push_str(&text);
        self.whole.push_str(&text);
    }

    /// The code with which it ends.
    fn ends(self) -> Option<i32> {
        self.ends_with().0
    }

    /// The code with which it ends, and all that it has shown.
    pub(super) fn ends_with(mut self) -> (Option<i32>, String) {
        loop {
            match self.screen.recv_timeout(PATIENCE) {
                Ok(bytes) => self.show(&bytes),
                Err(RecvTimeoutError::Disconnected) => {
                    let code = self.child.wait().unwrap().code();
                    return (code, std::mem::take(&mut self.whole));
                }
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {:?}", self.shown),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Whoever has ended and was waited for is not there any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn whoever_sits_at_a_terminal_is_heard_while_a_program_runs() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run box --image=busybox --restart=Never -- sleep 1000");
        kubectl.ok("wait --for=condition=Ready pod/box --timeout=60s");
        let mut shell = Terminal::open(kubectl, "exec -it box -- sh");
        shell.shows("/ # ");
        shell.types("sleep 100\r", "sleep 100\r\n");
        shell.types("\u{3}", "^C\r\n/ # ");
        shell.types("echo $?\r", "\r\n130\r\n/ # ");
        shell.types("while true; do echo tick; sleep 1; done\r", "\r\ntick\r\n");
        shell.types("\u{3}", "^C\r\n/ # ");
        shell.types("read a; echo got$a\r", "echo got$a\r\n");
        shell.types("one\r", "gotone\r\n/ # ");
        shell.types("cat\r", "cat\r\n");
        shell.types("line\r", "line\r\nline\r\n");
        shell.types("\u{4}", "/ # ");
        shell.types("\u{1b}[A\u{1b}[A", "echo got$a");
        shell.types("\u{3}", "^C\r\n/ # ");
        shell.types("\u{4}", "");
        assert_eq!(shell.ends(), Some(130));
        let mut cat = Terminal::open(kubectl, "exec -it box -- cat");
        cat.types("line\r", "line\r\nline\r\n");
        cat.types("\u{4}", "");
        assert_eq!(cat.ends(), Some(0));
        let mut sleep = Terminal::open(kubectl, "exec -it box -- sh -c 'echo begun; sleep 100'");
        sleep.shows("begun\r\n");
        sleep.types("\u{3}", "^C");
        assert_eq!(sleep.ends(), Some(130));
        let mut shell =
            Terminal::open(kubectl, "run -it --rm --restart=Never --image=busybox --quiet typed -- sh");
        shell.types("\r", "/ # ");
        shell.types("wc -l\r", "wc -l\r\n");
        shell.types("a\rb\r\u{4}", "2\r\n/ # ");
        shell.types("sleep 100\r", "sleep 100\r\n");
        shell.types("\u{3}", "^C\r\n/ # ");
        shell.types("exit 0\r", "exit 0");
        assert_eq!(shell.ends(), Some(0));
    });
}
