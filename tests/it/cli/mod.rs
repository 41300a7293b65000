//! The command line: what it does to files and processes, and what it says when something is wrong.

mod background;
mod choice;
mod contexts;
mod run;
mod screen;
mod terminal;
mod trace;
mod watch;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Up, at_home, command, eventually, kubectls, texts};

/// Runs `kubarium` with a home of its own.
fn run(home: &Path, arguments: &[&str]) -> Output {
    command(home).args(arguments).output().unwrap()
}

/// A shell's line in a terminal of its own, which `script` of util-linux makes.
fn in_a_terminal(home: &Path, line: &str, no_color: &str) -> Command {
    let mut script = at_home(Command::new("script"), home);
    script.args(["-q", "-e", "-c", line, "/dev/null"]);
    script.env("SHELL", "/bin/sh").env("TERM", "xterm").env("NO_COLOR", no_color);
    script
}

/// A home of its own for several clusters; those that still run when it is dropped are stopped.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// What a command that must succeed prints.
    fn ok(&self, line: &str) -> String {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = run(self.path(), &arguments);
        let (out, err) = texts(&output);
        assert!(output.status.success(), "kubarium {line}\n{out}{err}");
        out
    }

    /// What a command that must fail says.
    fn fails(&self, line: &str) -> String {
        let arguments: Vec<&str> = line.split(' ').collect();
        refusal(self.path(), &arguments)
    }

    /// The stock kubectl of the newest version, with this home's kubeconfig.
    fn kubectl(&self, line: &str) -> String {
        let output = Command::new(kubectls().pop().unwrap())
            .args(line.split(' '))
            .env("HOME", self.path())
            .env_remove("KUBECONFIG")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let (out, err) = texts(&output);
        assert!(output.status.success(), "kubectl {line}\n{out}{err}");
        out
    }

    /// Writes a file, its folder too, and says where.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Ends a cluster's process at once, and waits until the system has taken its lock back.
    fn kill(&self, name: &str) {
        let text = fs::read_to_string(self.path().join(format!("state/{name}.json"))).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        Command::new("kill").args(["-KILL", &record["pid"].to_string()]).status().unwrap();
        eventually("the process to go", || {
            let clusters: Vec<serde_json::Value> =
                serde_json::from_str(&self.ok("get clusters -o json")).unwrap();
            clusters.iter().all(|cluster| cluster["name"] != name).then_some(())
        });
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = run(self.path(), &["down", "--all"]);
    }
}

/// What a command that must fail says: one line, and an exit code that is not 0.
fn refusal(home: &Path, arguments: &[&str]) -> String {
    let output = run(home, arguments);
    let (out, err) = texts(&output);
    assert!(!output.status.success(), "{arguments:?} should have failed: {out}");
    let errors: Vec<&str> = err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{arguments:?}: {err}");
    errors[0].to_owned()
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let home = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let file = home.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let below_a_file = file.join("below");
    let below_a_file = below_a_file.to_str().unwrap();
    let own = home.path().join("own");
    let own = own.to_str().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["up", "--kubeconfig", own, "--listen", &address], "choose another with --listen"),
        (&["up", "--kubeconfig", own, "--data-dir", below_a_file], below_a_file),
        (&["up", "--kubeconfig", below_a_file], "choose another with --kubeconfig"),
        (&["up", "--kubeconfig", own, "--name", "Not A Name"], "use lower-case letters"),
        (&["up", "--kubeconfig", own, "--stages", below_a_file], "stages"),
        (&["up", "--kubeconfig", own, "-f", "nowhere.yaml"], "nowhere.yaml"),
        (&["up", "--listen", "0.0.0.0:0", "--insecure-http"], "lets everybody in"),
        (&["down"], "no cluster is running; start one with: kubarium up"),
        (&["down", "a"], "no cluster named \"a\" is running"),
        (&["down", "--name", "../a"], "use lower-case letters"),
        (&["get", "kubeconfig"], "no cluster is running"),
        (&["trace", "pod/x/y"], "try: kubarium trace deployment/web"),
    ];
    for (arguments, wanted) in cases {
        let said = refusal(home.path(), arguments);
        assert!(said.contains(wanted), "{arguments:?}: {said}");
    }
    for arguments in [&["up", "--nodes", "many"][..], &["up", "--listen", "nowhere"], &["sideways"]] {
        assert_eq!(run(home.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_name_is_taken_while_its_cluster_runs() {
    let up = Up::start_with(&[]);
    let output = up.kubarium(&["up", "--name", "test"]);
    assert!(texts(&output).1.contains("a cluster named \"test\" is running; stop it with"));
    let (clusters, _) = texts(&up.kubarium(&["get", "clusters"]));
    let line = clusters.lines().nth(1).unwrap_or_default().to_owned();
    assert!(line.starts_with("test ") && line.contains(" Ready "), "{clusters}");
    let (kubeconfig, _) = texts(&up.kubarium(&["get", "kubeconfig", "--name", "test"]));
    assert!(kubeconfig.contains("client-certificate-data") && kubeconfig.contains("current-context: test"));
}

#[test]
fn a_clean_stop_leaves_nothing_behind() {
    let mut up = Up::start_with(&[]);
    let kubeconfig = up.folder().join("kubeconfig");
    assert!(kubeconfig.exists());
    let pid = up.pid().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(up.wait().success(), "{}", up.log());
    assert!(!kubeconfig.exists());
    assert!(!up.folder().join("state").join("test.json").exists());
}

#[test]
fn in_the_background_it_has_a_context_among_others_until_it_goes_down() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join(".kube").join("config");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "apiVersion: v1\nkind: Config\ncurrent-context: work\ncontexts: [{name: work}]\n")
        .unwrap();
    let output = run(home.path(), &["up", "--detach"]);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{err}");
    assert!(out.contains("Cluster \"kubarium\" is ready at https://127.0.0.1:"), "{out}");
    let kubectl = kubectls().pop().unwrap();
    let nodes = Command::new(kubectl)
        .args(["get", "nodes", "-o", "name"])
        .env("HOME", home.path())
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    assert_eq!(texts(&nodes).0, "node/node-1\n", "{}", texts(&nodes).1);
    let again = refusal(home.path(), &["up", "--detach"]);
    assert!(again.contains("is running"), "{again}");
    let down = run(home.path(), &["down"]);
    assert!(texts(&down).0.contains("is gone"));
    let left = fs::read_to_string(&config).unwrap();
    assert!(left.contains("current-context: work") && !left.contains("kubarium"), "{left}");
    eventually("the record to go", || {
        let (clusters, _) = texts(&run(home.path(), &["get", "clusters"]));
        clusters.starts_with("No cluster is running").then_some(())
    });
}

#[cfg(unix)]
#[test]
fn secrets_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let data = tempfile::tempdir().unwrap();
    let data_dir = data.path().to_str().unwrap().to_owned();
    let up = Up::start_with(&["--data-dir", &data_dir]);
    for file in [up.folder().join("kubeconfig"), data.path().join("pki").join("ca.key")] {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn completion_and_version() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let (script, _) = texts(&run(home.path(), &["completion", shell]));
        assert!(script.contains("data-dir") && script.contains("kubarium"), "{shell}");
    }
    assert!(texts(&run(home.path(), &["version"])).0.contains("Kubernetes v1.36.2"));
}
