//! What `make upstream` runs, tried on programs that are none of upstream's: it starts them, asks over the wire, and
//! says what is not met.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::script::{Runner, Step};
use crate::support::texts;
use crate::support::upstream::{self, ControlPlane, NEEDED};

/// Ends when it is told to.
const IDLE: &str = "#!/bin/sh\nexec sleep 600\n";
/// Ours under the name of the real one: it takes two of its flags, and has its controllers inside.
const APISERVER: &str = r#"#!/bin/sh
for flag; do
    case $flag in
    --secure-port=*) port=${flag#*=} ;;
    --client-ca-file=*) authority=${flag#*=} ;;
    esac
done
mkdir -p data/pki && cp "$(dirname "$authority")"/* data/pki
export KUBARIUM_STATE_DIR=state HOME=.
exec "PROGRAM" up --kubeconfig own --data-dir data --listen "$port" --nodes 0
"#;

fn program(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

fn step(text: &str) -> Step {
    serde_yaml::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_is_asked_over_the_wire_and_its_nodes_are_ours() {
    let bin = tempfile::tempdir().unwrap();
    for name in ["etcd", "kube-controller-manager", "kube-scheduler"] {
        program(bin.path(), name, IDLE);
    }
    program(bin.path(), "kube-apiserver", &APISERVER.replace("PROGRAM", env!("CARGO_BIN_EXE_kubarium")));
    assert!(upstream::has_components(bin.path()));
    let plane = ControlPlane::start(bin.path(), Some(1)).await;
    let mut runner = Runner::new(plane.service(), &[]);
    for text in [
        "{do: GET /api/v1/nodes/node-1, eventually: true, answer: {spec: {taints: null}, status: {conditions: \
         {$has: [{type: Ready, status: 'True'}]}}}}",
        "{do: 'GET /api/v1/namespaces/default/serviceaccounts/default', eventually: true}",
        "{do: POST /api/v1/namespaces/default/pods, body: {metadata: {name: p}, spec: {containers: [{name: c, image: \
         nginx}]}}}",
        "{do: GET /api/v1/namespaces/default/pods/p, eventually: true, answer: {status: {phase: Running}}}",
        "{do: 'GET /api/v1/pods?watch=1&timeoutSeconds=5', events: [{type: ADDED, object: {metadata: {name: p}}}]}",
    ] {
        runner.run(&step(text)).await.unwrap();
    }
    let wrong = step("{do: GET /api/v1/namespaces/default/pods/p, answer: {spec: {nodeName: elsewhere}}}");
    let why = runner.run(&wrong).await.unwrap_err();
    assert!(why.contains("elsewhere") && why.contains("node-1"), "{why}");
}

#[tokio::test]
#[should_panic(expected = "--- kube-apiserver\nno such flag")]
async fn what_does_not_start_is_told_with_its_last_words() {
    let bin = tempfile::tempdir().unwrap();
    program(bin.path(), "etcd", IDLE);
    program(bin.path(), "kube-apiserver", "#!/bin/sh\necho no such flag\nexit 1\n");
    ControlPlane::start(bin.path(), None).await;
}

/// Before anything is built.
#[test]
fn a_folder_without_the_programs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bin = folder.path().to_str().unwrap();
    let make = |kube_bin: &str| {
        let mut make = Command::new("make");
        // What would be run must not be: the check comes first.
        make.args(["--no-print-directory", "upstream", "CARGO=false"]).current_dir(root);
        if !kube_bin.is_empty() {
            make.arg(format!("KUBE_BIN={kube_bin}"));
        }
        let output = make.env_remove("MAKEFLAGS").env_remove("KUBE_BIN").output().unwrap();
        assert!(!output.status.success());
        texts(&output).1
    };
    assert!(make("").contains("say where the programs are: make upstream KUBE_BIN=FOLDER"));
    let said = make(bin);
    assert!(said.contains(&format!("no etcd in {bin}")), "{said}");
    program(folder.path(), NEEDED[0], "");
    let said = make(bin);
    assert!(said.contains(&format!("no kube-apiserver in {bin}")) && !said.contains("no etcd"), "{said}");
}
