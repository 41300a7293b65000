//! The README is true: every command in it is run here, in its order, as a user would.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{kubectls, texts};

#[test]
fn every_command_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = path_for(home.path());
    let mut ran = 0;
    for line in console_lines(&readme) {
        let line = line.split('#').next().unwrap().trim();
        if let Some(target) = line.strip_prefix("make ") {
            assert!(makefile.contains(&format!("\n{target}:")), "no target {target} in the Makefile");
            continue;
        }
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(root)
            .env("PATH", &path)
            .env("HOME", home.path())
            .env("KUBARIUM_STATE_DIR", home.path().join("state"))
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (out, err) = texts(&output);
        if !output.status.success() {
            stop(home.path());
            panic!("{line}\n{out}{err}");
        }
        ran += 1;
    }
    stop(home.path());
    assert!(ran >= 6, "the README has lost its commands: {ran}");
}

/// The lines behind a prompt.
pub(crate) fn console_lines(readme: &str) -> Vec<&str> {
    readme.lines().filter_map(|line| line.strip_prefix("$ ")).collect()
}

/// Ends the cluster that the README's commands have started, should it still run.
fn stop(home: &Path) {
    let _ = crate::support::command(home).arg("down").output();
}

/// A PATH that begins with our `kubarium` and a `kubectl`.
pub(crate) fn path_for(home: &Path) -> std::ffi::OsString {
    let bin = home.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let link = |name: &str, target: &Path| std::os::unix::fs::symlink(target, bin.join(name)).unwrap();
    link("kubarium", Path::new(env!("CARGO_BIN_EXE_kubarium")));
    link("kubectl", &kubectls().pop().unwrap());
    let rest = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&rest))).unwrap()
}
