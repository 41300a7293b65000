//! `kubarium run -- command`, `--ready-file` and `--ready-fd`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{Up, command, eventually};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder).arg("run").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_command_gets_a_cluster_and_its_exit_code_is_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("kept");
    let kept = keep.to_str().unwrap();
    let script =
        "kubectl get nodes -o name && \"$0\" settle && kubectl create configmap made --from-literal=a=b";
    let program = env!("CARGO_BIN_EXE_kubarium");
    let done = run(folder.path(), &["--nodes", "2", "--keep", kept, "--", "sh", "-c", script, program]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("node/node-2"), "{}", text(&done.stdout));
    assert!(!keep.exists() && done.stderr.is_empty(), "{}", text(&done.stderr));
    for (script, code) in [("exit 7", 7), ("kill -9 $$", 137)] {
        let ended = run(folder.path(), &["--keep", kept, "--", "sh", "-c", script]);
        assert_eq!(ended.status.code(), Some(code));
        assert!(text(&ended.stderr).contains(kept), "{}", text(&ended.stderr));
        fs::remove_dir_all(&keep).unwrap();
    }
    let state: Vec<_> = fs::read_dir(folder.path().join("state")).unwrap().collect();
    assert!(state.is_empty(), "{state:?}");
}

#[test]
fn what_failed_leaves_a_cluster_that_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("kept");
    let script = "kubectl create configmap evidence --from-literal=a=b; kubectl run p --image=busybox \
                  --restart=Never -- echo said; \"$0\" time until pod/p jsonpath={.status.phase}=Succeeded; exit 3";
    let program = env!("CARGO_BIN_EXE_kubarium");
    let kept = keep.to_str().unwrap();
    let failed = run(folder.path(), &["--keep", kept, "--", "sh", "-c", script, program]);
    assert_eq!(failed.status.code(), Some(3), "{}", text(&failed.stderr));
    let read = |name: &str| fs::read_to_string(keep.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    assert!(read("audit.log").contains("/api/v1/namespaces/default/configmaps"));
    assert!(read("trace.json").contains("\"evidence\""));
    assert!(read("objects.yaml").contains("name: evidence"));
    assert!(read("events.txt").contains("Normal Pod default/p Scheduled: "), "{}", read("events.txt"));
    assert_eq!(read("logs/default/p/p.log"), "said\n");
    let data = keep.join("data");
    let up = Up::start_with(&["--data-dir", data.to_str().unwrap()]);
    let found = up.kubectl(&["get", "configmap", "evidence", "-o", "jsonpath={.data.a}"]);
    assert_eq!(text(&found.stdout), "b", "{}", text(&found.stderr));
}

#[test]
fn what_asks_it_to_end_asks_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("begun");
    let script = format!("trap 'exit 5' TERM; touch {}; while :; do sleep 0.05; done", ready.display());
    let keep = folder.path().join("kept");
    let mut running = command(folder.path())
        .args(["run", "--keep", keep.to_str().unwrap(), "--", "sh", "-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the command to begin", || ready.exists().then_some(()));
    let pid = running.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(5));
}

#[test]
fn a_command_that_is_none_is_said_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("kept");
    let none = run(folder.path(), &["--keep", keep.to_str().unwrap(), "--", "/nowhere/at-all"]);
    assert!(!none.status.success());
    assert!(text(&none.stderr).contains("cannot run /nowhere/at-all"), "{}", text(&none.stderr));
    let detached = run(folder.path(), &["--detach", "--", "true"]);
    assert!(text(&detached.stderr).contains("--detach is for kubarium up"), "{}", text(&detached.stderr));
}

#[test]
fn whoever_started_it_is_told_when_it_is_ready() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ready");
    let pipe = folder.path().join("pipe");
    let shell = format!("exec 7<>{}", pipe.display());
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let up = Up::start_after(&shell, &["--ready-file", file.to_str().unwrap(), "--ready-fd", "7"]);
    eventually("the file", || file.exists().then_some(()));
    let server = fs::read_to_string(&file).unwrap();
    assert!(server.starts_with("https://127.0.0.1:") && server.ends_with('\n'), "{server}");
    let read = Command::new("head").args(["-n", "1"]).arg(&pipe).output().unwrap();
    assert_eq!(text(&read.stdout), server);
    drop(up);
}
