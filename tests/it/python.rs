//! Python, over TLS: the session of PyPI's client (`tests/python/session.py`), and the wheel with its fixtures
//! (`tests/python/plugin`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Up, at_home, blocks, texts};

/// The Python that `make python-client` has made.
fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python-client/bin/python");
    assert!(python.exists(), "no Python client: run `make python-client`, which installs it");
    python
}

#[test]
fn a_session_of_the_python_client() {
    let up = Up::start();
    let output = Command::new(python())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/session.py"))
        .arg(up.folder().join("kubeconfig"))
        .env("HOME", up.folder())
        .output()
        .unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.ends_with("done\n"), "{out}{err}");
}

/// By maturin, as `make wheel` does, of the program that is tested.
fn wheel(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ok(Command::new(python().with_file_name("maturin"))
        .args([
            "build",
            "--profile",
            "dev",
            "--auditwheel",
            "skip",
            "--compression-method",
            "stored",
            "--out",
        ])
        .arg(folder)
        .current_dir(root.join("src/bindings/python"))
        .env("CARGO", root.join("tests/python/built_already.py"))
        .env("KUBARIUM_PROGRAM", program_of_its_own(folder)));
    let mut made = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let wheel = made.next().unwrap();
    assert!(wheel.extension().unwrap() == "whl" && made.next().is_none(), "{}", wheel.display());
    wheel
}

/// maturin takes away the program that it packs, and others run it meanwhile.
fn program_of_its_own(folder: &Path) -> PathBuf {
    let own = folder.with_file_name("built");
    fs::create_dir(&own).unwrap();
    let (program, copy) = (env!("CARGO_BIN_EXE_kubarium"), own.join("kubarium"));
    fs::hard_link(program, &copy).or_else(|_| fs::copy(program, &copy).map(drop)).unwrap();
    copy
}

fn ok(words: &mut Command) {
    let output = words.output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
}

/// Built, installed as pip installs it, and used by pytest that knows nothing but that.
#[test]
fn the_wheel_and_its_fixtures() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let home = tempfile::tempdir().unwrap();
    let wheel = wheel(&home.path().join("wheel"));
    let documented = home.path().join("test_documented.py");
    let examples =
        ["README.md", "src/bindings/python/README.md"].map(|file| blocks(&root.join(file), "python"));
    fs::write(&documented, examples.concat().concat()).unwrap();
    let installed = home.path().join("installed");
    ok(Command::new(python())
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"])
        .arg("--target")
        .arg(&installed)
        .arg(wheel));
    ok(at_home(Command::new(python()), home.path())
        .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "."])
        .arg(&documented)
        .current_dir(root.join("tests/python/plugin"))
        .env_remove("KUBARIUM")
        .env("PYTHONPATH", &installed)
        .env("PYTHONDONTWRITEBYTECODE", "1"));
}
