//! What `up` shows to somebody who looks at it.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use super::{Home, in_a_terminal};
use crate::support::{Up, eventually};

const PODS: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: homeless}
spec: {nodeSelector: {disk: ssd}, containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: crashes}
spec: {containers: [{name: c, image: busybox, command: [sh, -c, exit 3]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: works}
spec: {containers: [{name: c, image: nginx}]}
";

const ESCAPE: char = '\u{1b}';

/// `up` in a terminal of its own, until the pods are summed up.
fn shown_in_a_terminal(home: &Home, no_color: &str) -> String {
    let pods = home.file("pods.yaml", PODS);
    let out = home.path().join("shown");
    let up = format!("{} up -f {pods}", env!("CARGO_BIN_EXE_kubarium"));
    let child: Child = in_a_terminal(home.path(), &up, no_color)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .spawn()
        .unwrap();
    finished(child, home, &out)
}

fn finished(mut child: Child, home: &Home, out: &Path) -> String {
    let text = || fs::read_to_string(out).unwrap();
    eventually("the pods to be summed up", || {
        let text = text();
        assert!(child.try_wait().unwrap().is_none(), "it ended:\n{text}");
        text.contains("kubarium trace pod/crashes").then_some(())
    });
    home.ok("down");
    assert!(child.wait().unwrap().success(), "{}", text());
    text()
}

fn check(shown: &str) {
    let at = |wanted: &str| shown.find(wanted).unwrap_or_else(|| panic!("no {wanted:?} in:\n{shown}"));
    assert!(at("Ctrl-C stops it") < at("pods/homeless created"), "the hint comes at once:\n{shown}");
    assert!(at("kubarium trace pod/NAME") < at("pods/homeless created"), "{shown}");
    at("Unschedulable: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.");
    at("exit code 3 (Error)");
    at("  back-off 10s restarting failed container=c");
    assert!(!shown.contains("CrashLoopBackOff: "), "the reason is told once:\n{shown}");
    at("3 pods, ");
    at("2 not well");
    at("why: kubarium trace pod/crashes -n default");
}

#[test]
fn a_terminal_is_told_in_colour_what_keeps_pods_from_running() {
    let home = Home::new();
    let shown = shown_in_a_terminal(&home, "");
    check(&shown);
    assert!(shown.contains("\u{1b}[32m✓\u{1b}[0m ready"), "{shown}");
    assert!(
        shown.contains("\u{1b}[31mPending\u{1b}[0m") && shown.contains("\u{1b}[32mRunning\u{1b}[0m"),
        "{shown}"
    );
}

#[test]
fn who_wants_no_colour_gets_none() {
    let home = Home::new();
    let shown = shown_in_a_terminal(&home, "1");
    check(&shown);
    assert!(!shown.contains(ESCAPE), "{shown}");
}

#[test]
fn a_file_gets_no_colour() {
    let folder = tempfile::tempdir().unwrap();
    let pods = folder.path().join("pods.yaml");
    fs::write(&pods, PODS).unwrap();
    let up = Up::start_in(&["-f", pods.to_str().unwrap()], &[("TERM", "xterm")]);
    let shown = eventually("the pods to be summed up", || {
        let shown = up.log();
        shown.contains("kubarium trace pod/crashes").then_some(shown)
    });
    check(&shown);
    assert!(!shown.contains(ESCAPE), "{shown}");
}
