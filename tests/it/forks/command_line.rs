//! `kubarium fork`, `snapshot` and `diff`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::support::{Kubectl, Up, command, kubectls, texts};

fn ok(up: &Up, arguments: &[&str]) -> String {
    let output = up.kubarium(arguments);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{arguments:?}\n{out}{err}");
    out
}

/// By whoever names it, and by whoever's kubectl talks to it; the cluster itself by all others.
fn the_fork_is_meant(up: &Up, kubeconfig: &str) {
    ok(up, &["fault", "add", "doomed", "--answer", "409", "--user", "nobody", "--name", "mine"]);
    ok(up, &["settle", "--name", "mine"]);
    assert!(ok(up, &["fault", "list", "--name", "mine"]).contains("doomed"));
    assert!(!ok(up, &["fault", "list"]).contains("doomed"));
    let listed = command(up.folder()).env("KUBECONFIG", kubeconfig).args(["fault", "list"]).output().unwrap();
    assert!(texts(&listed).0.contains("doomed"), "{:?}", texts(&listed));
    let refused = up.kubarium(&["down", "mine"]);
    assert!(texts(&refused).1.contains("\"mine\" is a fork of "), "{:?}", texts(&refused));
}

/// A snapshot need not be a file: it goes through pipes, and what a failed run has left is a folder.
fn through_pipes_and_folders(up: &Up, before: &str) {
    let written = up.kubarium(&["snapshot", "save", "-"]);
    assert!(written.status.success() && written.stdout.starts_with(b"kubarium snapshot\n"));
    for (arguments, wanted) in [(["diff", "-", "live"], ""), (["snapshot", "export", "-"], "colour: blue")] {
        let mut read = command(up.folder());
        read.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut read = read.spawn().unwrap();
        read.stdin.take().unwrap().write_all(&written.stdout).unwrap();
        let read = read.wait_with_output().unwrap();
        assert!(read.status.success() && texts(&read).0.contains(wanted), "{arguments:?} {:?}", texts(&read));
    }
    // What a failed run has left is a folder.
    let left = up.folder().join("left").display().to_string();
    std::fs::create_dir(&left).unwrap();
    std::fs::copy(before, format!("{left}/cluster.snapshot")).unwrap();
    assert_eq!(up.kubarium(&["diff", before, &left]).status.code(), Some(0));
}

#[test]
fn a_cluster_is_forked_saved_compared_exported_and_started_again() {
    let up = Up::start_with(&["--nodes", "1"]);
    let kubectl = Kubectl::new(&kubectls().pop().unwrap(), &up);
    kubectl.ok("create configmap settings --from-literal=colour=red");
    let file = |name: &str| up.folder().join(name).to_str().unwrap().to_owned();
    let (before, kubeconfig) = (file("before"), file("fork-kubeconfig"));
    assert!(ok(&up, &["snapshot", "save", &before]).contains("resourceVersion"));
    let mode = std::fs::metadata(&before).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // Whoever has a context of that name keeps it, and no fork is left that nobody can reach.
    let theirs = up.file("theirs", "{contexts: [{name: theirs, context: {user: me}}]}");
    let refused = texts(&up.kubarium(&["fork", "theirs", "--kubeconfig", &theirs])).1;
    assert!(refused.contains("\"theirs\" that is not kubarium's"), "{refused}");
    assert!(ok(&up, &["fork", "--list"]).starts_with("There is no fork"));
    let said = ok(&up, &["fork", "mine", "--kubeconfig", &kubeconfig]);
    assert!(said.contains("fork \"mine\" of ") && said.contains(&kubeconfig), "{said}");
    assert!(ok(&up, &["fork", "--list"]).starts_with("mine  https://"));
    let of_fork = |line: &str| kubectl.ok(&format!("--kubeconfig {kubeconfig} {line}"));
    of_fork("delete configmap settings");
    kubectl.ok("get configmap settings");
    the_fork_is_meant(&up, &kubeconfig);
    ok(&up, &["fork", "mine", "--delete", "--kubeconfig", &kubeconfig]);
    assert!(!std::path::Path::new(&kubeconfig).exists());
    assert!(ok(&up, &["fork", "--list"]).starts_with("There is no fork"));
    assert_eq!(std::fs::read_to_string(file("state/test.forks")).unwrap(), "", "what has ended is forgotten");

    let same = up.kubarium(&["diff", &before]);
    assert_eq!(same.status.code(), Some(0), "{:?}", texts(&same));
    kubectl.ok("patch configmap settings -p {\"data\":{\"colour\":\"blue\"}}");
    let differs = up.kubarium(&["diff", &before, "live"]);
    assert_eq!(differs.status.code(), Some(1));
    let expected = "~ v1 ConfigMap default/settings\n    data.colour: \"red\" -> \"blue\"\n";
    assert_eq!(texts(&differs), (expected.into(), String::new()));
    let json = up.kubarium(&["diff", &before, "-o", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["changed"][0]["fields"][0]["path"], "data.colour");
    let yaml = up.kubarium(&["diff", &before, "-o", "yaml"]);
    assert!(texts(&yaml).0.contains("path: data.colour"));
    let missing = up.kubarium(&["diff", "nothing-there"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(texts(&missing).1.starts_with("error: nothing-there: "), "{:?}", texts(&missing));

    let exported = ok(&up, &["snapshot", "export"]);
    assert!(exported.contains("colour: blue") && !exported.contains("kube-system"), "{exported}");
    assert!(ok(&up, &["snapshot", "export", &before]).contains("colour: red"));
    through_pipes_and_folders(&up, &before);
    let data_dir = file("data");
    let restored = ok(&up, &["snapshot", "restore", &before, "--data-dir", &data_dir]);
    assert!(restored.contains("start it with: kubarium up --data-dir"), "{restored}");
    let again = up.kubarium(&["snapshot", "restore", &before, "--data-dir", &data_dir]);
    assert!(texts(&again).1.contains("is not empty"), "{:?}", texts(&again));
    for arguments in [["--snapshot", before.as_str()], ["--data-dir", data_dir.as_str()]] {
        let other = Up::start_with(&arguments);
        let kubectl = Kubectl::new(&kubectls().pop().unwrap(), &other);
        assert_eq!(kubectl.ok("get configmap settings -o jsonpath={.data.colour}"), "red");
    }
}
