//! What a real etcd has saved, looked into without it.

use super::*;

const UID: &str = "get configmap a -o jsonpath={.metadata.uid},{.metadata.resourceVersion},{.data.k}";

#[test]
fn a_snapshot_and_a_members_own_file_are_shown_without_the_etcd() {
    let mut etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let prefix = ["--etcd-prefix", "/elsewhere/kube"];
    let protobuf = ["--storage-media-type", "application/vnd.kubernetes.protobuf"];
    let up = server(&etcd, &keys, &[&prefix[..], &protobuf, &["--nodes", "1"]].concat());
    let first = kubectl(&up);
    first.ok("create configmap a --from-literal=k=gone");
    first.ok("delete configmap a");
    first.ok("create configmap a --from-literal=k=v");
    first.ok("create deployment web --image nginx");
    first.ok("rollout status deployment/web --timeout=60s");
    let uid = first.ok(UID);
    let saved = keys.path().join("saved.db");
    etcd.ctl(&["snapshot", "save", saved.to_str().unwrap()]);
    drop(up);
    etcd.kill();
    for file in [saved, etcd.folder.path().join("data/member/snap/db")] {
        let from = ["--etcd-snapshot", file.to_str().unwrap(), "--read-only"];
        let shown = Up::start_with(&[&from[..], &prefix].concat());
        let kubectl = kubectl(&shown);
        assert_eq!(kubectl.ok(UID), uid);
        assert!(kubectl.ok("get pods").contains("Running"));
        assert!(kubectl.fails("delete configmap a").contains("only shows what is there"));
    }
}
