//! `kubarium watch`: what it shows in a terminal, what its keys do, and what it says where there is none.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Up, eventually, texts};

#[test]
fn it_draws_the_lanes_and_its_keys_step_the_cluster() {
    let up = Up::start();
    let (_, refused) = texts(&up.kubarium(&["watch"]));
    assert!(refused.contains("kubarium trace --since 1m --follow"), "{refused}");
    let out = up.folder().join("screen");
    // `script` of util-linux makes a terminal.
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &format!("{} watch", env!("CARGO_BIN_EXE_kubarium")), "/dev/null"])
        .env("KUBARIUM_STATE_DIR", up.folder().join("state"))
        .env("HOME", up.folder())
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(fs::File::create(&out).unwrap())
        .spawn()
        .unwrap();
    let has_shown = |part: &str| {
        let screen = fs::read(&out).unwrap();
        String::from_utf8_lossy(&screen).contains(part)
    };
    let shows = |part: &str| eventually(part, || has_shown(part).then_some(()));
    shows("kubarium watch");
    shows("controllers");
    // A screen shows what happened last: where much happens between two frames, only the end of it.
    let mut count = 0;
    eventually("a screen with what was created", || {
        count += 1;
        assert!(up.kubectl(&["create", "configmap", &format!("watched-{count}")]).status.success());
        has_shown("created configmaps default/watched-").then_some(())
    });
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(b" ").unwrap();
    shows("held between two steps");
    keys.write_all(b" ").unwrap();
    eventually("the cluster to go on", || {
        let (shown, _) = texts(&up.kubarium(&["step", "show"]));
        shown.contains("goes on by itself").then_some(())
    });
    keys.write_all(b"q").unwrap();
    assert!(child.wait().unwrap().success());
    let screen = fs::read(&out).unwrap();
    assert!(String::from_utf8_lossy(&screen).contains("\u{1b}[?1049l"), "the terminal is left as it was");
}
