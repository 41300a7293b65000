//! One server on an etcd.

use super::*;

#[test]
fn what_a_cluster_is_told_is_in_the_etcd_and_there_after_a_restart() {
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let prefix = ["--etcd-prefix", "/elsewhere/kube"];
    let up = server(&etcd, &keys, &[&prefix[..], &["--nodes", "1"]].concat());
    let first = kubectl(&up);
    first.ok("create deployment web --image nginx");
    first.ok("rollout status deployment/web --timeout=60s");
    let key = "/elsewhere/kube/deployments/default/web";
    let value = etcd.ctl(&["get", key, "--print-value-only"]);
    assert!(value.starts_with(r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"#), "{value}");
    let stored = etcd.ctl(&["get", key, "--write-out=json"]);
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    let revision = first.ok("get deployment web -o jsonpath={.metadata.resourceVersion}");
    assert_eq!(stored["kvs"][0]["mod_revision"].to_string(), revision);
    // What others put there, as upstream's apiserver does.
    let other = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"other","namespace":"default","creationTimestamp":null},"data":{"k":"v"}}"#;
    etcd.ctl(&["put", "/elsewhere/kube/configmaps/default/other", other]);
    first.until("get configmap other -o jsonpath={.data.k}", |data| data == "v");
    let uid = first.ok("get deployment web -o jsonpath={.metadata.uid}");
    drop(up);
    let up = server(&etcd, &keys, &[&prefix[..], &["--nodes", "1"]].concat());
    let again = kubectl(&up);
    assert_eq!(again.ok("get deployment web -o jsonpath={.metadata.uid}"), uid);
    again.ok("scale deployment/web --replicas 2");
    again.ok("rollout status deployment/web --timeout=60s");
    // The events of before expire by a lease of etcd's.
    assert!(etcd.ctl(&["lease", "list"]).lines().count() > 1);
    let nothing = etcd.ctl(&["get", "/registry", "--prefix", "--keys-only"]);
    assert!(nothing.trim().is_empty(), "{nothing}");
}

#[test]
fn what_needs_a_store_of_our_own_says_so() {
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let up = server(&etcd, &keys, &["--apiserver-only"]);
    let file = up.folder().join("file");
    let file = file.to_str().unwrap();
    for words in [&["snapshot", "save", file][..], &["fork"]] {
        let output = up.kubarium(words);
        let (out, err) = texts(&output);
        assert!(!output.status.success(), "kubarium {words:?}: {out}");
        let wanted =
            "the objects are kept in an etcd (--etcd-servers), and only kubarium's own store can do that";
        assert!(err.contains(wanted), "kubarium {words:?}: {err}");
    }
}
