//! JavaScript: the package as npm would install it, with npm's client (`tests/javascript/session.mjs`).

use std::fs;
use std::os::unix::fs::symlink;
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
    install(&root.join("src/bindings/javascript"), &own.join("kubarium"));
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

/// The files that the package names, and the program that is tested where it has its own.
fn install(package: &Path, target: &Path) {
    fs::create_dir_all(target).unwrap();
    let about = fs::read(package.join("package.json")).unwrap();
    fs::write(target.join("package.json"), &about).unwrap();
    let about: Value = serde_json::from_slice(&about).unwrap();
    for file in about["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()) {
        if file != "bin/" {
            fs::copy(package.join(file), target.join(file)).unwrap();
        }
    }
    fs::create_dir(target.join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_kubarium"), target.join(about["bin"]["kubarium"].as_str().unwrap())).unwrap();
    assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
}
