//! What carries the program to where people are: the GitHub Action, the image, the devcontainer feature. Nobody here
//! has a daemon or a runner, so what is declared is read, and what is run is run in a shell.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{at_home, eventually, kubectls, texts};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
    out
}

/// A PATH that begins with a folder that has the program and a kubectl.
fn path_of(folder: &Path) -> std::ffi::OsString {
    fs::create_dir_all(folder).unwrap();
    symlink(env!("CARGO_BIN_EXE_kubarium"), folder.join("kubarium")).unwrap();
    symlink(kubectls().pop().unwrap(), folder.join("kubectl")).unwrap();
    let rest = std::env::var_os("PATH").unwrap();
    std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&rest))).unwrap()
}

/// A runner of GitHub, as far as the action's steps see it.
struct Runner {
    home: TempDir,
    path: std::ffi::OsString,
}

impl Runner {
    fn new() -> Runner {
        let home = tempfile::tempdir().unwrap();
        let path = path_of(&home.path().join("kubarium-program/bin"));
        Runner { home, path }
    }

    fn step(&self, name: &str, command: &str, flags: &str) -> Output {
        let folder = root().join(".github/actions/kubarium");
        let mut step = at_home(Command::new("bash"), self.home.path());
        for file in ["GITHUB_PATH", "GITHUB_ENV", "GITHUB_OUTPUT"] {
            step.env(file, self.home.path().join(file));
        }
        step.arg(folder.join("steps.sh")).arg(name).env("GITHUB_ACTION_PATH", folder);
        step.env("RUNNER_TEMP", self.home.path()).env("PATH", &self.path).env("PROFILE", "quick");
        step.env("COMMAND", command).env("FLAGS", flags).stdin(Stdio::null()).output().unwrap()
    }

    fn told(&self, file: &str) -> String {
        fs::read_to_string(self.home.path().join(file)).unwrap_or_default()
    }
}

#[test]
fn the_actions_command_has_a_cluster_and_its_failure_leaves_a_folder() {
    let runner = Runner::new();
    assert!(runner.step("install", "", "").status.success());
    assert!(runner.told("GITHUB_PATH").trim_end().ends_with("kubarium-program/bin"));
    let output = runner.step("run", "kubectl get nodes -o name | sort", "--nodes 2 --name 'of-it'");
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.ends_with("node/node-1\nnode/node-2\n"), "{out}{err}");
    let left = runner.home.path().join("kubarium-left");
    assert!(!left.exists(), "nothing failed");
    let failed = runner.step("run", "kubectl get pods; exit 7", "");
    assert_eq!(failed.status.code(), Some(7), "{:?}", texts(&failed));
    assert!(fs::read_dir(left).unwrap().count() > 0, "nothing is left of it");
}

#[test]
fn without_a_command_the_action_starts_a_cluster_for_the_steps_that_follow() {
    let runner = Runner::new();
    let output = runner.step("run", "", "");
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
    let told = runner.told("GITHUB_ENV");
    let kubeconfig = told.trim_end().strip_prefix("KUBECONFIG=").unwrap();
    assert_eq!(runner.told("GITHUB_OUTPUT"), format!("kubeconfig={kubeconfig}\n"));
    let mut kubectl = at_home(Command::new("kubectl"), runner.home.path());
    let nodes = succeeds(kubectl.args(["get", "nodes", "-o", "name"]).env("KUBECONFIG", kubeconfig));
    assert_eq!(nodes, "node/node-1\n");
    succeeds(crate::support::command(runner.home.path()).arg("down"));
}

#[test]
fn the_action_declares_what_its_steps_use() {
    let text = fs::read_to_string(root().join(".github/actions/kubarium/action.yml")).unwrap();
    let action: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    assert_eq!(action["runs"]["using"], "composite");
    for step in action["runs"]["steps"].as_sequence().unwrap() {
        assert!(step["uses"].is_string() != step["run"].is_string(), "{step:?}");
        assert!(
            step["run"].is_null() || step["shell"] == "bash",
            "a composite step says its shell: {step:?}"
        );
    }
    let upload = &action["runs"]["steps"].as_sequence().unwrap().last().unwrap();
    assert!(upload["uses"].as_str().unwrap().starts_with("actions/upload-artifact"), "{upload:?}");
    // It holds every Secret of the cluster.
    assert!(upload["if"].as_str().unwrap().ends_with("&& inputs.upload == 'true'"), "{upload:?}");
    assert_eq!(action["inputs"]["upload"]["default"], "false");
    let used = regex::Regex::new(r"inputs\.([a-z]+)").unwrap();
    for (_, [input]) in used.captures_iter(&text).map(|found| found.extract()) {
        assert!(action["inputs"][input]["default"].is_string(), "{input}");
    }
}

/// The instructions of the image: each with its words.
fn instructions() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("src/bindings/container/Dockerfile")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap()).map(|(word, rest)| (word.into(), rest.into())).collect()
}

#[test]
fn the_image_runs_what_a_user_reaches_and_ends_when_it_is_told() {
    let instructions = instructions();
    let of = |word: &str| instructions.iter().rev().find(|(name, _)| name == word).unwrap().1.as_str();
    for word in ["FROM", "WORKDIR", "COPY", "RUN", "ENV", "EXPOSE", "VOLUME", "ENTRYPOINT", "CMD"] {
        of(word);
    }
    let copied = instructions.iter().filter(|(name, rest)| name == "COPY" && rest.contains("--from=build"));
    assert!(copied.clone().any(|(_, rest)| rest.contains("target/release/kubarium /usr/local/bin/kubarium")));
    assert_eq!(of("ENTRYPOINT"), "[\"kubarium\"]");
    let words: Vec<String> = serde_json::from_str(of("CMD")).unwrap();
    assert!(
        words.contains(&format!("0.0.0.0:{}", of("EXPOSE")))
            && words.contains(&format!("{}/config", of("VOLUME")))
    );
    // The same with a port and a folder of this test.
    let home = tempfile::tempdir().unwrap();
    let kubeconfig = home.path().join("config");
    let own = |word: &String| match word.as_str() {
        address if address.starts_with("0.0.0.0:") => "0.0.0.0:0".to_owned(),
        path if path.starts_with('/') => kubeconfig.display().to_string(),
        other => other.to_owned(),
    };
    let mut program = crate::support::command(home.path());
    program.args(words.iter().map(own)).stdout(Stdio::null());
    let mut child = program.spawn().unwrap();
    let record = home.path().join("state/kubarium.json");
    eventually("the cluster to be ready", || {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        record.exists().then_some(())
    });
    let mut kubectl = at_home(Command::new(kubectls().pop().unwrap()), home.path());
    kubectl.arg("--kubeconfig").arg(&kubeconfig).args(["get", "nodes", "-o", "name"]);
    assert_eq!(succeeds(&mut kubectl), "node/node-1\n");
    succeeds(Command::new("kill").args(["-TERM", &child.id().to_string()]));
    assert!(eventually("it to end", || child.try_wait().unwrap()).success());
}

#[test]
fn the_feature_installs_the_program_and_starts_one_cluster() {
    let folder = root().join("src/bindings/devcontainer");
    let feature: Value =
        serde_json::from_slice(&fs::read(folder.join("devcontainer-feature.json")).unwrap()).unwrap();
    assert_eq!(feature["id"], "kubarium");
    assert_eq!(feature["version"], env!("CARGO_PKG_VERSION"));
    let home = tempfile::tempdir().unwrap();
    let (feature_copy, image) = (home.path().join("feature"), home.path().join("image"));
    fs::create_dir(&feature_copy).unwrap();
    fs::copy(folder.join("install.sh"), feature_copy.join("install.sh")).unwrap();
    let install = || {
        let mut install = at_home(Command::new("sh"), home.path());
        install.arg(feature_copy.join("install.sh")).env("DESTDIR", &image);
        install
    };
    let without = install().output().unwrap();
    assert!(
        !without.status.success() && texts(&without).1.contains("there is no program: give the option url")
    );
    symlink(env!("CARGO_BIN_EXE_kubarium"), feature_copy.join("kubarium")).unwrap();
    let variable = |name: &str| name.to_uppercase();
    let options = feature["options"].as_object().unwrap();
    let defaults = options.iter().map(|(name, option)| (variable(name), option["default"].to_string()));
    let defaults = defaults.map(|(name, value)| (name, value.trim_matches('"').to_owned()));
    succeeds(install().envs(defaults));
    let own = |path: &str| image.join(path.trim_start_matches('/'));
    let start = own(feature["postStartCommand"].as_str().unwrap());
    let rest = std::env::var_os("PATH").unwrap();
    let folders: Vec<PathBuf> =
        std::iter::once(own("/usr/local/bin")).chain(std::env::split_paths(&rest)).collect();
    let started = || {
        let mut starting = at_home(Command::new("sh"), home.path());
        succeeds(starting.arg(&start).env("PATH", std::env::join_paths(&folders).unwrap()))
    };
    assert!(started().contains("is ready at"));
    assert_eq!(started(), "", "it runs already");
    succeeds(crate::support::command(home.path()).arg("down"));
}
