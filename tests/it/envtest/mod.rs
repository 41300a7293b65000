//! The programs that envtest starts are this one: a session as envtest has it, and what is said to who asks for
//! more.

mod control_plane;
mod java;

use std::fs;
use std::process::{Command, Stdio};

use http::Method;
use serde_json::{Value, json};

use crate::support::programs::free_port;
use crate::support::wire::Wire;
use crate::support::{command, eventually, texts};
use control_plane::{ControlPlane, get};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const NAMESPACES: &str = "/api/v1/namespaces";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

async fn create(wire: &mut Wire, path: &str, object: &Value) {
    let answer = wire.send(Method::POST, path, object).await.unwrap();
    assert_eq!(answer.code, 201, "{path}: {}", answer.json());
}

/// Asks until the object is as wanted; null is gone.
async fn until(wire: &mut Wire, path: &str, is_wanted: impl Fn(&Value) -> bool) {
    for _ in 0..2000 {
        let answer = wire.get(path).await.unwrap();
        let object = if answer.code == 404 { Value::Null } else { answer.json() };
        if is_wanted(&object) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("waited in vain for {path}");
}

/// Two starts of the server on one etcd.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_as_envtest_has_it() {
    let mut plane = ControlPlane::new(&[]);
    let help = plane.help("kube-apiserver");
    assert!(!help.lines().any(|line| line.trim_start().starts_with("--insecure-port")), "{help}");
    plane.start_etcd();
    let mut admin = plane.start_apiserver().await;
    create(&mut admin, MAPS, &map("kept")).await;
    // Nobody else touches what a test makes: there are no controllers.
    create(&mut admin, NAMESPACES, &json!({"metadata": {"name": "made"}})).await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(admin.get(deployments).await.unwrap().code, 200);
    let accounts = admin.get("/api/v1/namespaces/made/serviceaccounts").await.unwrap().json();
    assert_eq!(accounts["items"], json!([]));
    let service = admin.get("/api/v1/namespaces/default/services/kubernetes").await.unwrap().json();
    assert_eq!(service["spec"]["clusterIP"], "10.0.0.1");
    assert!(plane.stop_apiserver().success());
    let mut admin = plane.start_apiserver().await;
    assert_eq!(admin.get(&format!("{MAPS}/kept")).await.unwrap().code, 200, "kept over a restart");
    // A watch that is open does not keep it.
    let mut watch = admin.watch(&format!("{MAPS}?watch=true")).await.unwrap();
    assert!(watch.next_line().await.unwrap().is_some());
    assert!(plane.stop_apiserver().success());
    assert!(plane.stop_etcd().success());
    assert!(
        plane.log("kube-apiserver").contains("--allow-privileged=true is known, and changes nothing here")
    );
}

/// Told to end, it is not ready at once, and serves until its delay is over or it is told again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_serves_on_for_its_delay() {
    let mut plane = ControlPlane::new(&[]);
    plane.start_etcd();
    let mut admin = plane.start_apiserver_with(&["--shutdown-delay-duration=1h".into()]).await;
    assert_eq!(admin.get("/readyz/shutdown").await.unwrap().code, 200);
    plane.ask_apiserver_to_end();
    let ready = eventually_not_ready(&mut admin).await;
    assert_eq!(ready, "internal server error: process is shutting down\n");
    let whole = admin.get("/readyz").await.unwrap();
    let text = String::from_utf8_lossy(&whole.body).into_owned();
    assert!(whole.code == 500 && text.contains("[-]shutdown failed: reason withheld\n"), "{text}");
    for path in ["/livez", "/healthz", "/api/v1/namespaces/default"] {
        assert_eq!(admin.get(path).await.unwrap().code, 200, "{path}");
    }
    create(&mut admin, MAPS, &map("late")).await;
    assert!(!plane.stop_apiserver().success(), "told twice, it says that it was cut short");
    assert!(plane.log("kube-apiserver").contains("--shutdown-delay-duration is cut short"));
    assert!(plane.stop_etcd().success());
}

async fn eventually_not_ready(wire: &mut Wire) -> String {
    loop {
        let answer = wire.get("/readyz/shutdown").await.unwrap();
        if answer.code != 200 {
            return String::from_utf8(answer.body.to_vec()).unwrap();
        }
        tokio::task::yield_now().await;
    }
}

/// As suites of old have it: a port where everybody is an administrator.
#[tokio::test(flavor = "multi_thread")]
async fn a_port_without_tls_is_there_when_it_is_asked_for() {
    let mut plane = ControlPlane::new(&[]);
    plane.start_etcd();
    let port = free_port();
    plane.start_apiserver_with(&[format!("--insecure-port={port}")]).await;
    let answer = get(port, "/api/v1/namespaces/default").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn components_are_brought_by_a_variable() {
    let mut plane = ControlPlane::new(&[("KUBARIUM_COMPONENTS", "all")]);
    plane.start_etcd();
    let mut admin = plane.start_apiserver().await;
    create(&mut admin, NAMESPACES, &json!({"metadata": {"name": "goes"}})).await;
    create(&mut admin, "/api/v1/namespaces/goes/configmaps", &map("in-it")).await;
    let pod =
        json!({"metadata": {"name": "runs"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    create(&mut admin, "/api/v1/namespaces/default/pods", &pod).await;
    let path = "/api/v1/namespaces/default/pods/runs";
    until(&mut admin, path, |pod| pod["status"]["phase"] == "Running").await;
    let goes = format!("{NAMESPACES}/goes");
    assert_eq!(admin.ask(Method::DELETE, &goes, None).await.unwrap().code, 200);
    until(&mut admin, &goes, Value::is_null).await;
    assert!(plane.stop_apiserver().success() && plane.stop_etcd().success());
}

#[test]
fn the_folder_has_the_programs_and_kubectl() {
    let plane = ControlPlane::new(&[]);
    let mut names: Vec<_> =
        fs::read_dir(plane.assets()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["etcd", "kube-apiserver", "kubectl"]);
    let version = |name: &str, word: &str| texts(&plane.program(name).arg(word).output().unwrap()).0;
    assert_eq!(version("kube-apiserver", "--version"), "Kubernetes v1.36.2\n");
    assert!(version("etcd", "--version").starts_with("etcd Version: 3."));
    assert!(version("kubectl", "help").contains("kubectl"));
    // Where there is no kubectl, it says so, and the folder is there all the same.
    let home = tempfile::tempdir().unwrap();
    let output = command(home.path()).arg("assets").env("PATH", home.path()).output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success() && err.contains("no kubectl is on PATH"), "{out}{err}");
    assert!(fs::read_dir(out.trim_end()).unwrap().count() == 2);
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let mut plane = ControlPlane::new(&[]);
    plane.start_etcd();
    let flags = plane.apiserver_flags();
    let refused = |name: &str, flags: Vec<String>| {
        let output = plane.program(name).args(flags).output().unwrap();
        assert!(!output.status.success());
        texts(&output).1
    };
    let with = |flag: &str| [flags.clone(), vec![flag.to_owned()]].concat();
    for (flags, wanted) in [
        (with("--nonsense"), "Error: unknown flag: --nonsense\n"),
        (with("--etcd-servers-overrides=a"), "Error: --etcd-servers-overrides: "),
        (with("--secure-port=many"), "Error: invalid value 'many' for '--secure-port <PORT>'"),
        (vec![], "Error: --etcd-servers must be specified\n"),
        (vec!["--etcd-servers=unix://etcd:1".into()], "unix:// is not spoken"),
        (
            [with("--insecure-bind-address=0.0.0.0"), vec!["--insecure-port=1".into()]].concat(),
            "Error: --insecure-bind-address 0.0.0.0: everybody who reaches it is an administrator",
        ),
    ] {
        let said = refused("kube-apiserver", flags.clone());
        assert!(said.contains(wanted), "{flags:?}: {said}");
    }
    assert!(refused("etcd", vec!["-nonsense".into()]).contains("flag provided but not defined: -nonsense"));
    let url = "--listen-client-urls=https://127.0.0.1:0".to_owned();
    let unmade = plane.assets().join("unmade");
    let data = format!("--data-dir={}", unmade.display());
    assert!(refused("etcd", vec![url, data]).contains("https needs --cert-file and --key-file"));
    assert!(!unmade.exists(), "who is refused leaves nothing behind");
    let port = plane.etcd_port();
    let taken = format!("--listen-client-urls=http://127.0.0.1:{port}");
    let data = format!("--data-dir={}", plane.assets().display());
    assert!(refused("etcd", vec![taken, data]).contains("in use"));
    assert!(get(port, "/version").unwrap().contains("\"etcdserver\":\"3."));
    assert!(get(port, "/v3/kv/range").unwrap().contains("404 page not found"));
}

/// An address that answers, and is no etcd.
#[test]
fn what_is_no_etcd_is_told_apart() {
    use std::io::{Read, Write};
    let plane = ControlPlane::new(&[]);
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let answering = std::thread::spawn(move || {
        for stream in other.incoming() {
            let mut head = [0; 1024];
            let mut stream = stream.unwrap();
            let read = stream.read(&mut head).unwrap_or(0);
            if head[..read] == *b"enough" {
                return;
            }
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let output = plane.program("kube-apiserver").arg(format!("--etcd-servers=http://{address}")).output();
    std::net::TcpStream::connect(address).unwrap().write_all(b"enough").unwrap();
    answering.join().unwrap();
    let said = texts(&output.unwrap()).1;
    let wanted =
        format!("--etcd-servers http://{address}: http://{address}: it does not answer as etcd does: ");
    assert!(said.contains(&wanted), "{said}");
}

/// Who started them is killed: they do not stay.
#[test]
fn they_end_when_their_parent_is_gone() {
    let plane = ControlPlane::new(&[]);
    let home = tempfile::tempdir().unwrap();
    let said = fs::File::create(home.path().join("said")).unwrap();
    let line = format!(
        "\"$0\" --listen-client-urls=http://127.0.0.1:0 --data-dir={} & echo $!; wait",
        home.path().join("data").display()
    );
    let mut parent = plane
        .at_home(Command::new("sh"))
        .args(["-c", &line])
        .arg(plane.assets().join("etcd"))
        .stdin(Stdio::null())
        .stdout(said.try_clone().unwrap())
        .stderr(said)
        .spawn()
        .unwrap();
    let read = || fs::read_to_string(home.path().join("said")).unwrap();
    let pid = eventually("etcd to serve", || {
        let text = read();
        let pid = text.lines().find(|line| line.chars().all(|c| c.is_ascii_digit()))?.to_owned();
        text.contains("serving client traffic").then_some(pid)
    });
    parent.kill().unwrap();
    parent.wait().unwrap();
    let process = std::path::PathBuf::from(format!("/proc/{pid}/cmdline"));
    let runs = || fs::read_to_string(&process).is_ok_and(|line| line.contains("--listen-client-urls"));
    eventually("etcd to end", || (!runs()).then_some(()));
}
