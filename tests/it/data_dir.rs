//! What a data dir goes through beside crashes: a full disk, damaged files, and what is told of them.

use std::fs;
use std::path::Path;
use std::process::Output;

use http::Method;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::support::wire::{Target, Wire};
use crate::support::{Up, command, texts};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str, length: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "x".repeat(length)}})
}

async fn names(wire: &mut Wire) -> Vec<String> {
    let list = wire.get(PATH).await.unwrap().json();
    let items = list["items"].as_array().unwrap().iter();
    let names = items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("c-")).collect()
}

fn target(up: &Up) -> Target {
    Target::of_kubeconfig(&up.folder().join("kubeconfig"))
}

fn stop(mut up: Up) {
    up.signal("-TERM");
    assert!(up.wait().success());
}

/// No file of the process may grow over so much from now on: to the process that is a full disk.
fn bound_files(up: &Up, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(up.pid()).unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_by_readyz_and_is_got_over_when_there_is_room() {
    let data_dir = tempfile::tempdir().unwrap();
    let arguments = ["--nodes", "1", "--data-dir", data_dir.path().to_str().unwrap()];
    let up = Up::start_after("trap '' XFSZ", &arguments);
    let mut wire = target(&up).http1().await.unwrap();
    assert_eq!(wire.get("/readyz/etcd").await.unwrap().code, 200);
    let mut made = Vec::new();
    for number in 0..3 {
        made.push(format!("c-{number:04}"));
        let body = config_map(&made[number], 50_000);
        assert_eq!(wire.send(Method::POST, PATH, &body).await.unwrap().code, 201);
    }
    // Less than the server wants to see before it tries again.
    bound_files(&up, Some(768 << 10));
    let refused = loop {
        let name = format!("c-{:04}", made.len());
        let answer = wire.send(Method::POST, PATH, &config_map(&name, 50_000)).await.unwrap();
        if answer.code != 201 {
            break answer;
        }
        made.push(name);
    };
    assert_eq!(refused.code, 500, "{}", refused.json());
    assert!(
        refused.json()["message"].as_str().unwrap().contains("cannot use its files"),
        "{}",
        refused.json()
    );
    let ready = wire.get("/readyz").await.unwrap();
    assert_eq!(ready.code, 500);
    assert!(String::from_utf8_lossy(&ready.body).contains("[-]etcd failed: reason withheld"));
    assert_eq!(wire.get("/readyz/etcd").await.unwrap().code, 500);
    assert_eq!(wire.get("/livez").await.unwrap().code, 200);
    assert_eq!(names(&mut wire).await, made, "reads go on");

    bound_files(&up, None);
    while wire.get("/readyz").await.unwrap().code != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    made.push("c-9999".into());
    let answer = wire.send(Method::POST, PATH, &config_map("c-9999", 10)).await.unwrap();
    assert_eq!(answer.code, 201, "{}", answer.json());
    assert_eq!(names(&mut wire).await, made);
    drop(wire);
    stop(up);
    let up = Up::start_with(&arguments);
    assert_eq!(names(&mut target(&up).http1().await.unwrap()).await, made);
}

/// `up` that is expected to end by itself.
fn refused(data_dir: &Path, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path());
    command
        .env("RUST_BACKTRACE", "1")
        .args(["up", "--name", "refused", "--data-dir"])
        .arg(data_dir)
        .args(more);
    command.output().unwrap()
}

/// In the middle of what is not zero.
fn spoil(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[used / 2..used / 2 + 2000].fill(0x55);
    fs::write(path, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_dir_that_has_lost_something_is_refused_in_one_line_and_recovered_on_demand() {
    let damages: [fn(&Path); 2] = [spoil, |path| fs::remove_file(path).unwrap()];
    for damage in damages {
        let data_dir = tempfile::tempdir().unwrap();
        let path = data_dir.path().to_str().unwrap();
        let arguments = ["--nodes", "1", "--unsafe-no-fsync", "--data-dir", path];
        let up = Up::start_with(&arguments);
        let mut wire = target(&up).http1().await.unwrap();
        for number in 0..20 {
            let name = format!("c-{number}");
            assert_eq!(wire.send(Method::POST, PATH, &config_map(&name, 100)).await.unwrap().code, 201);
        }
        let revision =
            |list: &Value| -> u64 { list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap() };
        let before = revision(&wire.get(PATH).await.unwrap().json());
        drop(wire);
        stop(up);
        damage(&data_dir.path().join("etcd/db"));
        for _ in 0..2 {
            let output = refused(data_dir.path(), &[]);
            let (_, error) = texts(&output);
            assert_eq!(output.status.code(), Some(1), "{error}");
            let told: Vec<&str> = error.lines().filter(|line| !line.contains(" WARN ")).collect();
            assert_eq!(told.len(), 1, "{error}");
            assert!(!error.contains("panicked") && !error.contains("RUST_BACKTRACE"), "{error}");
            assert!(told[0].starts_with("error: ") && told[0].contains("--recover"), "{error}");
            assert!(told[0].contains(path), "it says which: {error}");
        }
        let up = Up::start_with(&[&arguments[..], &["--recover"]].concat());
        let log = up.log();
        assert!(log.contains("recovered what could be read") && log.contains("gone: "), "{log}");
        let mut wire = target(&up).http1().await.unwrap();
        let after = revision(&wire.get(PATH).await.unwrap().json());
        assert!(after > before, "no revision is given twice: {before}, then {after}");
        drop(wire);
        stop(up);
        drop(Up::start_with(&arguments));
    }
}
