//! JavaScript: the package as npm would install it, with npm's client (`tests/javascript/session.mjs`).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{blocks, texts};

#[test]
fn a_session_of_the_javascript_client() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let modules = root.join("target/javascript-client/node_modules");
    assert!(modules.exists(), "no JavaScript client: run `make javascript-client`, which installs it");
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join("node_modules");
    install(home.path());
    symlink(modules.join("@kubernetes"), own.join("@kubernetes")).unwrap();
    fs::copy(root.join("tests/javascript/session.mjs"), home.path().join("session.mjs")).unwrap();
    let mut files = vec!["session.mjs".to_owned()];
    for document in ["README.md", "src/bindings/javascript/README.md"] {
        for example in blocks(&root.join(document), "js") {
            files.push(format!("documented-{}.mjs", files.len()));
            fs::write(home.path().join(files.last().unwrap()), example).unwrap();
        }
    }
    assert_eq!(files.len(), 3, "an example in each document");
    let output = Command::new("node")
        .arg("--test")
        .args(files)
        .current_dir(home.path())
        .env("HOME", home.path())
        .env_remove("KUBARIUM")
        .env_remove("KUBECONFIG")
        .output()
        .expect("no node on PATH: run `make javascript-client`, which installs it");
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
}

/// The package as `npm pack` makes it and `npm install` installs it, but for its program: a line that leads to the one
/// that is tested, which would take long to pack.
fn install(home: &Path) {
    let package = home.join("package");
    fs::create_dir_all(package.join("bin")).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bindings/javascript");
    for file in fs::read_dir(source).unwrap().map(|file| file.unwrap()) {
        fs::copy(file.path(), package.join(file.file_name())).unwrap();
    }
    let about: Value = serde_json::from_slice(&fs::read(package.join("package.json")).unwrap()).unwrap();
    assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
    let program = package.join(about["bin"]["kubarium"].as_str().unwrap());
    fs::write(&program, format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_kubarium"))).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let packed = format!("kubarium-{}.tgz", env!("CARGO_PKG_VERSION"));
    npm(home, &package, &["pack", "--pack-destination", ".."]);
    npm(
        home,
        home,
        &["install", "--offline", "--no-audit", "--no-fund", "--no-save", &format!("./{packed}")],
    );
}

fn npm(home: &Path, folder: &Path, words: &[&str]) {
    let mut npm = Command::new("npm");
    npm.args(words).arg("--silent").current_dir(folder).env("HOME", home);
    let output = npm.output().expect("no npm on PATH: run `make javascript-client`, which installs it");
    assert!(output.status.success(), "npm {words:?}: {:?}", texts(&output));
}
