//! Snapshots that etcdctl saves: looked into, and taken over.

use super::etcdctl::address;
use super::*;
use crate::support::{Kubectl, Up, kubectls};

const UID: &str = "get configmap a -o jsonpath={.metadata.uid},{.metadata.resourceVersion}";

/// A cluster of a Deployment and a ConfigMap in a file, and what the ConfigMap was there.
fn saved(folder: &Path) -> (String, String) {
    let up = Up::start_with(&["--nodes", "1", "--listen-client-urls", "127.0.0.1:0"]);
    let (kubectl, etcdctl) = (Kubectl::new(&kubectls()[0], &up), Etcdctl::new(address(&up)));
    kubectl.ok("create configmap a --from-literal=k=v");
    kubectl.ok("create deployment web --image=nginx");
    kubectl.ok("wait deployment/web --for=condition=Available --timeout=60s");
    let file = folder.join("snapshot.db").display().to_string();
    etcdctl.ok(&["snapshot", "save", &file]);
    (file, kubectl.ok(UID))
}

#[test]
fn a_snapshot_of_an_etcd_is_shown_and_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let (file, uid) = saved(folder.path());

    let shown = Up::start_with(&["--etcd-snapshot", &file, "--read-only"]);
    let kubectl = Kubectl::new(&kubectls()[0], &shown);
    assert_eq!(kubectl.ok(UID), uid);
    assert!(kubectl.ok("get pods").contains("Running"));
    let refused = "configmaps \"b\" is forbidden: this server only shows what is there (--read-only)";
    assert!(kubectl.fails("create configmap b").contains(refused));
    assert!(kubectl.fails("delete deployment web").contains("is forbidden"));
    assert!(kubectl.fails("annotate configmap a b=c").contains("is forbidden"));
    // What is only tried is not stored.
    assert!(kubectl.ok("create configmap b --dry-run=server").contains("created (server dry run)"));
    assert_eq!(kubectl.ok(UID), uid);

    let data = folder.path().join("data").display().to_string();
    let taken = Up::start_with(&["--etcd-snapshot", &file, "--data-dir", &data, "--nodes", "1"]);
    let kubectl = Kubectl::new(&kubectls()[0], &taken);
    assert_eq!(kubectl.ok(UID), uid);
    kubectl.ok("scale deployment web --replicas 2");
    kubectl.until("get deployment web -o jsonpath={.status.readyReplicas}", |ready| ready == "2");
}

#[test]
fn what_a_cluster_saves_for_etcd_is_a_snapshot_of_one() {
    let up = Up::start_with(&["--nodes", "1"]);
    let kubectl = Kubectl::new(&kubectls()[0], &up);
    kubectl.ok("create configmap a --from-literal=k=v");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster.db").display().to_string();
    let saved = up.kubarium(&["snapshot", "save", &file]);
    assert!(saved.status.success(), "{}", texts(&saved).1);
    let mut restore = Command::new("etcdctl");
    restore.env("ETCDCTL_API", "3").args(["snapshot", "restore", &file, "--data-dir"]);
    let restored = restore.arg(folder.path().join("etcd")).output().unwrap();
    assert!(restored.status.success(), "{}", texts(&restored).1);
    let shown = Up::start_with(&["--etcd-snapshot", &file, "--read-only"]);
    assert_eq!(Kubectl::new(&kubectls()[0], &shown).ok(UID), kubectl.ok(UID));
    let again = texts(&up.kubarium(&["snapshot", "save", &file])).1;
    assert!(again.contains("is there already: choose another file"), "{again}");
}

#[test]
fn what_is_no_snapshot_of_an_etcd_is_refused_with_words() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other");
    fs::write(&file, "apiVersion: v1").unwrap();
    let up = |words: &[&str]| {
        let mut up = command(folder.path());
        let output = up.arg("up").args(words).output().unwrap();
        assert!(!output.status.success());
        texts(&output).1
    };
    let shown = file.display().to_string();
    let said = up(&["--etcd-snapshot", &shown]);
    let why =
        "it is no file of bbolt: give the file that `etcdctl snapshot save` wrote, or member/snap/db of a";
    assert!(said.contains(&format!("{shown}: {why}")), "{said}");
    let missing = folder.path().join("missing").display().to_string();
    let said = up(&["--etcd-snapshot", &missing]);
    assert!(said.contains(&format!("{missing}: No such file or directory")), "{said}");
    for other in [["--filename", &shown], ["--listen-client-urls", "127.0.0.1:0"]] {
        assert!(up(&[&["--read-only"][..], &other].concat()).contains("cannot be used with"), "{other:?}");
    }
}
