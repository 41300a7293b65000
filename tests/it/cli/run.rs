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
fn what_is_open_is_told_beside_the_output_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let wishes = ["--ui", "--publish", "0:30080", "--publish", "0:80@loadbalancer"];
    let script = ["--", "sh", "-c", "printf %s $KUBARIUM_PUBLISHED"];
    let done = run(folder.path(), &[&wishes[..], &script[..]].concat());
    let (out, told) = (text(&done.stdout), text(&done.stderr));
    assert!(done.status.success(), "{told}");
    let addresses: Vec<&str> = out.split(',').collect();
    assert_eq!(addresses.len(), 2, "{out}");
    for address in addresses {
        assert!(address.starts_with("127.0.0.1:") && !address.ends_with(":0"), "{out}");
        assert!(told.contains(&format!("kubarium: {address} leads to ")), "{told}");
    }
    assert!(told.contains("kubarium: the page is http://127.0.0.1:"), "{told}");
    let refused = run(folder.path(), &["--ui", "--ui-listen", "0.0.0.0:0", "--", "true"]);
    assert!(text(&refused.stderr).contains("must be an address of loopback"), "{}", text(&refused.stderr));
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
    assert!(
        text(&failed.stderr).contains(&format!("kubarium up --snapshot {kept}\n")),
        "{}",
        text(&failed.stderr)
    );
    let up = Up::start_with(&["--snapshot", kept]);
    let found = up.kubectl(&["get", "configmap", "evidence", "-o", "jsonpath={.data.a}"]);
    assert_eq!(text(&found.stdout), "b", "{}", text(&found.stderr));
}

#[test]
fn a_run_begins_with_a_snapshot_and_junit_has_what_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let [kept, junit] =
        ["kept", "reports/junit.xml"].map(|name| folder.path().join(name).display().to_string());
    let script = ["--", "sh", "-c", "kubectl create configmap evidence && exit 3"];
    let failed =
        run(folder.path(), &[&["--nodes", "2", "--keep", &kept, "--junit", &junit], &script[..]].concat());
    assert_eq!(failed.status.code(), Some(3), "{}", text(&failed.stderr));
    let report = fs::read_to_string(&junit).unwrap();
    assert!(report.contains("exit status: 3</failure>"), "{report}");
    assert!(report.contains(&format!("\n[[ATTACHMENT|{kept}/audit.log]]\n")), "{report}");
    assert!(report.contains(&format!("\n[[ATTACHMENT|{kept}/trace.json]]\n")), "{report}");
    assert!(!report.contains("cluster.snapshot"), "{report}");
    let looks = ["--", "kubectl", "get", "configmap/evidence", "node/node-2", "-o", "name"];
    let again = run(folder.path(), &[&["--snapshot", &kept, "--junit", &junit], &looks[..]].concat());
    assert_eq!(text(&again.stdout), "configmap/evidence\nnode/node-2\n", "{}", text(&again.stderr));
    let report = fs::read_to_string(&junit).unwrap();
    assert!(report.contains("failures=\"0\"") && !report.contains("ATTACHMENT"), "{report}");
}

#[test]
fn a_second_failure_has_its_own_exit_code_and_leaves_what_happened_then() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("kept");
    for (name, code) in [("first", 7), ("second", 8)] {
        let script = format!("kubectl create configmap {name}; exit {code}");
        let failed = run(folder.path(), &["--keep", keep.to_str().unwrap(), "--", "sh", "-c", &script]);
        assert_eq!(failed.status.code(), Some(code), "{}", text(&failed.stderr));
        let objects = fs::read_to_string(keep.join("objects.yaml")).unwrap();
        assert!(objects.contains(&format!("name: {name}\n")), "{objects}");
        assert!(name == "first" || !objects.contains("name: first\n"), "{objects}");
    }
    assert!(keep.join("cluster.snapshot").exists() && keep.join("audit.log").exists());
}

#[test]
fn faults_and_a_clock_that_stands_keep_nothing_from_being_left() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("kept");
    let script =
        "kubectl create configmap evidence; \"$0\" fault add --verb list --latency 1h --user '*'; exit 4";
    let program = env!("CARGO_BIN_EXE_kubarium");
    let arguments =
        ["--clock", "stepped", "--keep", keep.to_str().unwrap(), "--", "sh", "-c", script, program];
    let failed = run(folder.path(), &arguments);
    assert_eq!(failed.status.code(), Some(4), "{}", text(&failed.stderr));
    assert!(!text(&failed.stderr).contains("in time"), "{}", text(&failed.stderr));
    assert!(fs::read_to_string(keep.join("objects.yaml")).unwrap().contains("name: evidence"));
}

#[test]
fn a_command_inherits_what_kubarium_was_started_with() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_kubarium");
    for (word, more) in [("run", &["--nodes", "0"][..]), ("explore", &["--nodes", "0", "--seeds", "1"])] {
        let script = "umask 027; ulimit -S -n 512; exec \"$0\" \"$@\"";
        let asked = ["-c", script, program, word];
        let mut shell = Command::new("sh");
        shell.args(asked).args(more).args(["--", "sh", "-c", "umask; ulimit -S -n"]);
        let said = shell.env("KUBARIUM_STATE_DIR", folder.path().join("state")).output().unwrap();
        let out = text(&said.stdout);
        assert!(out.starts_with("0027\n512\n"), "{word}: {out}{}", text(&said.stderr));
    }
}

#[test]
fn what_a_command_has_started_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let late = ["explore", "--nodes", "0", "--seeds", "1", "--timeout", "300ms"];
    for (words, rest) in [(&["run", "--nodes", "0"][..], ""), (&late, "; sleep 1000")] {
        let number = folder.path().join("number");
        let script = format!("sleep 1000 & echo $! > {}{rest}", number.display());
        let mut started = command(folder.path());
        started.env("TMPDIR", folder.path()).args(words).args(["--", "sh", "-c", &script]);
        let ended =
            started.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(ended.status.success(), rest.is_empty(), "{}", text(&ended.stderr));
        let process = Path::new("/proc").join(fs::read_to_string(&number).unwrap().trim()).join("cmdline");
        // Empty is one that has ended, and that nobody has asked how.
        eventually("the rest to end", || fs::read(&process).unwrap_or_default().is_empty().then_some(()));
    }
    let left = fs::read_dir(folder.path()).unwrap().filter_map(Result::ok);
    let left: Vec<_> = left.filter(|it| it.file_name().to_string_lossy().starts_with("kubarium-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn explore_ends_when_it_is_asked_to_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let mut running = command(folder.path())
        .env("TMPDIR", folder.path())
        .args([
            "explore",
            "--nodes",
            "0",
            "--",
            "sh",
            "-c",
            &format!("touch {}; sleep 1000", begun.display()),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the command to begin", || begun.exists().then_some(()));
    assert!(Command::new("kill").args(["-TERM", &running.id().to_string()]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(143));
    let left = fs::read_dir(folder.path()).unwrap().filter_map(Result::ok);
    let left: Vec<_> = left.filter(|it| it.file_name().to_string_lossy().starts_with("kubarium-")).collect();
    assert!(left.is_empty(), "{left:?}");
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
    assert_eq!(none.status.code(), Some(127));
    assert!(text(&none.stderr).contains("cannot run /nowhere/at-all"), "{}", text(&none.stderr));
    let no_program = run(folder.path(), &["--keep", keep.to_str().unwrap(), "--", "/"]);
    assert_eq!(no_program.status.code(), Some(126), "{}", text(&no_program.stderr));
    let manifest = folder.path().join("refused.yaml");
    fs::write(&manifest, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: UPPER}\n").unwrap();
    let arguments = ["-f", manifest.to_str().unwrap(), "--keep", keep.to_str().unwrap(), "--", "true"];
    let refused = run(folder.path(), &arguments);
    assert!(
        !refused.status.success() && text(&refused.stderr).contains("UPPER"),
        "{}",
        text(&refused.stderr)
    );
    assert!(!keep.exists());
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
