//! Sessions as a person sees them, whole: what is typed, and what kubectl says to that. What varies from run to run,
//! or from one kubectl to the next, is replaced.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use regex::Regex;

use super::typing::Terminal;
use crate::support::golden::golden;
use crate::support::{Kubectl, PATIENCE, texts, with_each_kubectl};

/// Lines that only some kubectls say: that somebody sits there, that sessions are recorded, that a profile is old.
const OF_SOME_VERSIONS: &[&str] = &[
    "If you don't see a command prompt, try pressing enter.",
    "All commands and output from this session will be recorded",
    "--profile=legacy is deprecated",
    "Forwarding from [::1]",
    "warning: couldn't attach to pod",
    // Which of them looks at what tar says on the way back.
    "tar: removing leading",
];

/// What is replaced by what.
const VARIES: &[(&str, &str)] = &[
    ("\r", ""),
    // What client-go logs of a stream that it has closed before the server has.
    (r"(?m)^(! )?E\d{4} .* Unknown stream id \d+, discarding message\n", ""),
    (r" deleted from default namespace", " deleted"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"connection for \d+", "connection for PORT"),
    (r"node-debugger-(node-\d)-\w{5}", "node-debugger-$1-NAME"),
    (r"debugger-\w{5}\b", "debugger-NAME"),
    (r"/tmp/\.tmp\w+", "FOLDER"),
];

fn steady(text: &str) -> String {
    let kept = |line: &&str| !OF_SOME_VERSIONS.iter().any(|start| line.trim().starts_with(start));
    let text: String = text.lines().filter(kept).map(|line| format!("{}\n", line.trim_end())).collect();
    VARIES.iter().fold(text, |text, (pattern, with)| {
        Regex::new(pattern).unwrap().replace_all(&text, *with).into_owned()
    })
}

/// A session, as it is written down.
#[derive(Default)]
struct Transcript(String);

impl Transcript {
    /// What a command says that reads `input`, which stands below it.
    fn says(&mut self, kubectl: &Kubectl, line: &str, input: &str) {
        let mut command = kubectl.command(line);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Whoever has ended reads nothing.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let (out, errors) = texts(&output);
        self.0.push_str(&format!("$ kubectl {line}\n"));
        input.lines().for_each(|line| self.0.push_str(&format!("< {line}\n")));
        self.0.push_str(&out);
        let ended = if out.is_empty() || out.ends_with('\n') { "" } else { "\n" };
        self.0.push_str(ended);
        errors.lines().for_each(|line| self.0.push_str(&format!("! {line}\n")));
        if !output.status.success() {
            self.0.push_str(&format!("(code {})\n", output.status.code().unwrap_or(-1)));
        }
    }

    /// Holds it against the file of that name.
    fn is_told(&self, name: &str) {
        let lines = self.0.replace("! If you", "If you").replace("! All commands", "All commands");
        let lines =
            lines.replace("! --profile", "--profile").replace("! warning: couldn't", "warning: couldn't");
        golden(&format!("kubectl/{name}.txt"), &steady(&lines));
    }
}

#[test]
fn a_shell_that_is_run_and_goes() {
    with_each_kubectl(|_, kubectl| {
        let line = "run -it --rm --restart=Never --image=busybox box -- sh";
        let mut shell = Terminal::open(kubectl, line);
        shell.types("\r", "/ # ");
        shell.types("echo $((6 * 7)) on $HOSTNAME\r", "42 on box\r\n/ # ");
        shell.types("wc -l\r", "wc -l\r\n");
        shell.types("one\rtwo\r\u{4}", "2\r\n/ # ");
        shell.types("nothing\r", "not found\r\n/ # ");
        shell.types("exit\r", "exit");
        let (code, shown) = shell.ends_with();
        assert_eq!(code, Some(127), "{shown}");
        // How often a prompt is shown before anything is typed depends on how fast it is attached to.
        let begun = shown.find("/ # echo").unwrap_or_else(|| panic!("{shown}"));
        let told = Transcript(format!("$ kubectl {line}\n{}", &shown[begun..]));
        told.is_told("run");
    });
}

#[test]
fn files_are_copied_both_ways() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("hello.txt", "hello\n");
        let folder = file.trim_end_matches("/hello.txt");
        let mut told = Transcript::default();
        told.says(kubectl, "run box --image=busybox --restart=Never -- sleep 1000", "");
        told.says(kubectl, "wait --for=condition=Ready pod/box --timeout=60s", "");
        told.says(kubectl, &format!("cp {file} box:/tmp/there.txt"), "");
        told.says(
            kubectl,
            "exec box -- sh -c 'cat /tmp/there.txt; mkdir -p /data/sub; echo x > /data/sub/a'",
            "",
        );
        told.says(kubectl, &format!("cp box:/data {folder}/back"), "");
        told.says(kubectl, &format!("cp {folder}/back default/box:/again -c box"), "");
        told.says(kubectl, "exec box -- find /again", "");
        told.says(kubectl, &format!("cp box:/none {folder}/none"), "");
        told.says(kubectl, &format!("cp {folder}/missing box:/tmp"), "");
        assert_eq!(std::fs::read_to_string(format!("{folder}/back/sub/a")).unwrap(), "x\n");
        told.is_told("cp");
    });
}

#[test]
fn a_copy_and_a_node_are_debugged() {
    with_each_kubectl(|_, kubectl| {
        let mut told = Transcript::default();
        told.says(kubectl, "run web --image=nginx:1.25", "");
        told.says(kubectl, "wait --for=condition=Ready pod/web --timeout=60s", "");
        let copy = "debug -i web --copy-to=copy --container=web --image=busybox -- sh";
        told.says(kubectl, copy, "echo in $HOSTNAME\nexit\n");
        told.says(kubectl, "get pod copy -o jsonpath={.spec.containers[*].image}", "");
        told.says(
            kubectl,
            "debug -i node/node-1 --image=busybox -- sh",
            "echo on $(hostname)\nls -d /host\nexit 4\n",
        );
        told.says(kubectl, "debug web --copy-to=copy --image=busybox", "");
        told.is_told("debug");
    });
}

#[test]
fn a_port_leads_to_a_pod_until_that_goes() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run web --image=nginx:1.25 --port=80");
        kubectl.ok("wait --for=condition=Ready pod/web --timeout=60s");
        let line = "port-forward pod/web :80";
        let mut forward = kubectl.command(line);
        let mut child = forward.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut out, mut shown) = (child.stdout.take().unwrap(), String::new());
        // A whole line with that in it.
        let mut read_until = |shown: &mut String, wanted: &str| {
            let mut byte = [0];
            while !(shown.contains(wanted) && shown.ends_with('\n')) && out.read(&mut byte).unwrap() == 1 {
                shown.push(byte[0].into());
            }
        };
        read_until(&mut shown, "-> 80");
        let address = shown.split(' ').nth(2).unwrap().to_owned();
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        assert!(page.contains("Welcome to nginx!"), "{page}");
        read_until(&mut shown, "Handling connection for ");
        kubectl.ok("delete pod web --now");
        // It notices with the next connection.
        let _ = TcpStream::connect(&address).and_then(|mut late| late.read_to_string(&mut page));
        let output = child.wait_with_output().unwrap();
        let last = texts(&output).1.lines().last().unwrap_or_default().to_owned();
        let told = Transcript(format!("$ kubectl {line}\n{shown}! {last}\n(code 1)\n"));
        assert_eq!(output.status.code(), Some(1));
        told.is_told("port-forward");
    });
}
