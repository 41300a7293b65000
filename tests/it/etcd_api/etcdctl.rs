//! What tutorials show of a cluster with etcdctl, and what one may change with it.

use std::io::Write;

use serde_json::Value;

use super::*;
use crate::support::{Kubectl, Up, eventually, kubectls};

pub(super) fn address(up: &Up) -> String {
    let log = up.log();
    let line = log.lines().find_map(|line| line.split("its API is served on ").nth(1));
    line.unwrap_or_else(|| panic!("{log}")).trim().to_owned()
}

#[test]
fn etcdctl_sees_a_cluster_as_upstream_keeps_it_and_changes_it() {
    let up = Up::start_with(&["--nodes", "1", "--listen-client-urls", "127.0.0.1:0"]);
    let (kubectl, etcdctl) = (Kubectl::new(&kubectls()[0], &up), Etcdctl::new(address(&up)));
    kubectl.ok("create configmap a --from-literal=k=v");
    kubectl.ok("create deployment web --image=nginx");
    let keys = etcdctl.ok(&["get", "/registry", "--prefix", "--keys-only"]);
    for key in [
        "/registry/configmaps/default/a",
        "/registry/deployments/default/web",
        "/registry/services/specs/default/kubernetes",
        "/registry/services/endpoints/default/kubernetes",
        "/registry/apiregistration.k8s.io/apiservices/v1.apps",
    ] {
        assert!(keys.lines().any(|line| line == key), "{key} is not in\n{keys}");
    }
    assert!(keys.contains("/registry/minions/") && !keys.contains("deployments.apps"), "{keys}");

    let value = || etcdctl.ok(&["get", "/registry/configmaps/default/a", "--print-value-only"]);
    let kept: Value = serde_json::from_str(&value()).unwrap();
    assert_eq!(
        (&kept["kind"], &kept["apiVersion"], &kept["data"]["k"]),
        (&"ConfigMap".into(), &"v1".into(), &"v".into())
    );
    assert!(value().starts_with(r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"#), "{}", value());

    // What is written there reaches the caches as any write does.
    let changed = value().replace(r#""k":"v""#, r#""k":"from etcdctl""#);
    etcdctl.ok(&["put", "/registry/configmaps/default/a", changed.trim()]);
    kubectl.until("get configmap a -o jsonpath={.data.k}", |data| data == "from etcdctl");
    let revision = kubectl.ok("get configmap a -o jsonpath={.metadata.resourceVersion}");
    let json = etcdctl.ok(&["get", "/registry/configmaps/default/a", "-w", "json"]);
    let found: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["kvs"][0]["mod_revision"].to_string(), revision);
    kubectl.ok("label configmap a by=kubectl");
    assert!(value().contains("from etcdctl") && value().contains(r#""by":"kubectl""#), "{}", value());
    etcdctl.ok(&["del", "/registry/configmaps/default/a"]);
    kubectl.until("get configmaps -o name", |names| !names.contains("configmap/a\n"));

    // Keys of nobody's.
    etcdctl.ok(&["put", "mine", "1"]);
    assert_eq!(etcdctl.ok(&["get", "mine"]), "mine\n1\n");
    assert!(up.log().lines().all(|line| !line.contains("ERROR")), "{}", up.log());
}

#[test]
fn objects_are_kept_as_protobuf_if_that_is_wanted() {
    let protobuf = "application/vnd.kubernetes.protobuf";
    let up = Up::start_with(&[
        "--nodes",
        "1",
        "--listen-client-urls",
        "127.0.0.1:0",
        "--storage-media-type",
        protobuf,
    ]);
    let (kubectl, etcdctl) = (Kubectl::new(&kubectls()[0], &up), Etcdctl::new(address(&up)));
    kubectl.ok("create configmap a --from-literal=k=v");
    let value = etcdctl.run(&["get", "/registry/configmaps/default/a", "--print-value-only"]).stdout;
    assert!(value.starts_with(b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap"), "{value:?}");
    assert_eq!(kubectl.ok("get configmap a -o jsonpath={.data.k}"), "v");
    // What upstream's server would have written, under another name of the same length.
    let mut copy = value.strip_suffix(b"\n").unwrap().to_vec();
    let name = copy.windows(3).position(|bytes| bytes == b"\n\x01a").unwrap();
    copy[name + 2] = b'b';
    let mut put = etcdctl.command(&["put", "/registry/configmaps/default/b"]);
    let mut put = put.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    put.stdin.take().unwrap().write_all(&copy).unwrap();
    assert!(put.wait().unwrap().success());
    kubectl.until("get configmaps -o name", |names| names.contains("configmap/b\n"));
    assert_eq!(kubectl.ok("get configmap b -o jsonpath={.data.k}"), "v");
    kubectl.until("get nodes", |nodes| nodes.contains(" Ready "));
}

#[test]
fn every_verb_of_etcdctl_works() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = EtcdProcess::start(
        folder.path(),
        &["--listen-client-urls", "http://127.0.0.1:0", "--unsafe-no-fsync"],
    );
    let etcdctl = Etcdctl::new(etcd.address);
    assert_eq!(etcdctl.ok(&["put", "a", "1"]), "OK\n");
    assert_eq!(etcdctl.ok(&["put", "a", "2", "--prev-kv"]), "OK\na\n1\n");
    assert_eq!(etcdctl.ok(&["get", "a", "--rev", "2"]), "a\n1\n");
    assert_eq!(etcdctl.ok(&["get", "", "--prefix", "--order", "DESCEND", "--sort-by", "MODIFY"]), "a\n2\n");
    let mut txn = etcdctl.command(&["txn"]);
    let mut txn = txn.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let text = "value(\"a\") = \"2\"\n\nput b 3\nget a\n\nput c 3\n\n";
    txn.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let done = String::from_utf8(txn.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(done, "SUCCESS\n\nOK\n\na\n2\n");
    let lease = etcdctl.ok(&["lease", "grant", "100"]);
    let lease = lease.split(' ').nth(1).unwrap();
    etcdctl.ok(&["put", "leased", "1", &format!("--lease={lease}")]);
    assert!(etcdctl.ok(&["lease", "keep-alive", "--once", lease]).contains("keepalived with TTL(100)"));
    let left = etcdctl.ok(&["lease", "timetolive", "--keys", lease]);
    assert!(left.contains("granted with TTL(100s)") && left.contains("attached keys([leased])"), "{left}");
    assert!(etcdctl.ok(&["lease", "list"]).contains(lease));
    etcdctl.ok(&["lease", "revoke", lease]);
    assert_eq!(etcdctl.ok(&["get", "leased"]), "");
    assert_eq!(etcdctl.ok(&["del", "b", "--prev-kv"]), "1\nb\n3\n");
    assert!(
        etcdctl.ok(&["endpoint", "health"]).is_empty()
            || etcdctl.run(&["endpoint", "health"]).status.success()
    );
    assert!(etcdctl.ok(&["endpoint", "status"]).contains("3.6.8"));
    assert!(etcdctl.ok(&["endpoint", "hashkv"]).contains(&etcd.address.to_string()));
    assert!(etcdctl.ok(&["member", "list"]).contains("8e9e05c52164694d, started, default"));
    assert_eq!(etcdctl.ok(&["alarm", "list"]), "");
    assert!(etcdctl.ok(&["defrag"]).contains("Finished defragmenting"));
    assert!(etcdctl.fails(&["user", "add", "x:y"]).contains("keeps no users"));
    let file = folder.path().join("snapshot.db");
    let file = file.to_str().unwrap();
    etcdctl.ok(&["snapshot", "save", file]);
    let status: Value =
        serde_json::from_str(&etcdctl.ok(&["snapshot", "status", file, "-w", "json"])).unwrap();
    assert_eq!(status["revision"], 7, "{status}");
    etcdctl.ok(&["compaction", "7"]);
    assert!(etcdctl.fails(&["get", "a", "--rev", "3"]).contains("required revision has been compacted"));
    let restored = folder.path().join("restored");
    etcdctl.ok(&["snapshot", "restore", file, "--data-dir", restored.to_str().unwrap()]);
    assert!(restored.join("member/snap/db").exists(), "etcd's own tool takes the file");
}

/// It reads the memory of the process from `/metrics` before and after, and deletes what it has written.
#[test]
fn etcdctl_checks_how_much_is_carried() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--listen-client-urls", "http://127.0.0.1:0", "--unsafe-no-fsync"];
    let etcd = EtcdProcess::start(folder.path(), &flags);
    let etcdctl = Etcdctl::new(etcd.address);
    let said = etcdctl.ok(&["check", "datascale", "--load", "s"]);
    assert!(said.contains("PASS: Approximate system memory used"), "{said}");
    assert_eq!(etcdctl.ok(&["get", "", "--prefix", "--keys-only"]), "");
}

#[test]
fn etcdctl_watches() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = EtcdProcess::start(
        folder.path(),
        &["--listen-client-urls", "http://127.0.0.1:0", "--unsafe-no-fsync"],
    );
    let etcdctl = Etcdctl::new(etcd.address);
    etcdctl.ok(&["put", "/a", "1"]);
    let mut watch = etcdctl.command(&["watch", "/", "--prefix", "--rev", "2", "--prev-kv"]);
    let heard = fs::File::create(folder.path().join("heard")).unwrap();
    let _watching = KilledAtEnd(watch.stdout(heard).stdin(Stdio::null()).spawn().unwrap());
    etcdctl.ok(&["put", "/b", "2"]);
    etcdctl.ok(&["del", "/a"]);
    // What was there before stands first; versions of etcdctl leave lines free or do not.
    let wanted = ["PUT", "/a", "1", "PUT", "/b", "2", "DELETE", "/a", "1", "/a"];
    eventually("the watch to tell everything", || {
        let heard = fs::read_to_string(folder.path().join("heard")).unwrap();
        heard.lines().filter(|line| !line.is_empty()).eq(wanted).then_some(())
    });
}
