//! The Python client of PyPI, over TLS: `tests/python/session.py` says what is done and expected.

use std::path::Path;
use std::process::Command;

use crate::support::{Up, texts};

#[test]
fn a_session_of_the_python_client() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/python-client/bin/python");
    assert!(python.exists(), "no Python client: run `make python-client`, which installs it");
    let up = Up::start();
    let output = Command::new(python)
        .arg(root.join("tests/python/session.py"))
        .arg(up.folder().join("kubeconfig"))
        .env("HOME", up.folder())
        .output()
        .unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.ends_with("done\n"), "{out}{err}");
}
