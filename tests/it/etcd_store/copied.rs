//! A cluster that moves from a data dir to an etcd and back.

use super::*;
use crate::support::command;

const TAB: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: tabs, singular: tab, kind: Tab}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"#;
/// Name, uid and revision of each.
const ROWS: &str = "-o custom-columns=:metadata.name,:metadata.uid,:metadata.resourceVersion --no-headers";

fn copy(words: &[&str]) -> Result<String, String> {
    let home = tempfile::tempdir().unwrap();
    let output = command(home.path()).args(["store", "copy"]).args(words).output().unwrap();
    let (out, err) = texts(&output);
    if output.status.success() { Ok(out + &err) } else { Err(err) }
}

/// What must be the same everywhere.
fn rows(kubectl: &Kubectl) -> Vec<String> {
    ["configmaps", "serviceaccounts -A", "tabs", "deployments"]
        .map(|kind| kubectl.ok(&format!("get {kind} {ROWS}")))
        .to_vec()
}

#[test]
fn a_cluster_moves_to_an_etcd_and_back_with_its_uids_and_revisions() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (data, back, file, from_file) = (path("data"), path("back"), path("cluster.db"), path("from-file"));
    let alone = |data: &str| Up::start_with(&["--apiserver-only", "--data-dir", data]);
    let up = alone(&data);
    let first = kubectl(&up);
    first.ok("create configmap gone");
    first.ok("delete configmap gone");
    first.ok("create configmap a --from-literal=k=v");
    first.ok(&format!("apply -f {}", up.file("tab.yaml", TAB)));
    first.ok("wait --for=condition=Established crd/tabs.example.com --timeout=30s");
    let tab =
        up.file("one.yaml", "apiVersion: example.com/v1\nkind: Tab\nmetadata: {name: a}\nspec: {n: 1}\n");
    eventually("the kind", || first.run(&format!("apply -f {tab}")).status.success().then_some(()));
    first.ok("create deployment web --image nginx");
    let before = rows(&first);
    let running = copy(&["--from", &data, "--to", &path("other")]).unwrap_err();
    assert!(running.contains("the store: "), "{running}");
    drop(up);
    let etcd = RealEtcd::start();
    let said = copy(&["--from", &data, "--to", &etcd.url()]).unwrap();
    assert!(said.contains("the same revisions, up to "), "{said}");
    let left = etcd.ctl(&["get", "kubarium_store_copy"]);
    assert!(left.is_empty(), "{left}");
    for (key, head) in [
        ("/registry/configmaps/default/a", r#"{"kind":"ConfigMap","apiVersion":"v1","#),
        ("/registry/example.com/tabs/default/a", r#"{"apiVersion":"example.com/v1","kind":"Tab","#),
    ] {
        let value = etcd.ctl(&["get", key, "--print-value-only"]);
        assert!(value.starts_with(head), "{value}");
    }
    let refused = copy(&["--from", &data, "--to", &etcd.url()]).unwrap_err();
    assert!(refused.contains("the etcd has ") && refused.contains(" keys below /registry"), "{refused}");
    let up = Up::start_with(&["--apiserver-only", "--data-dir", &data, "--etcd-servers", &etcd.url()]);
    let on_etcd = kubectl(&up);
    assert_eq!(rows(&on_etcd), before);
    on_etcd.ok("create configmap b");
    let before = rows(&on_etcd);
    drop(up);
    copy(&["--from", &etcd.url(), "--to", &back]).unwrap();
    let up = alone(&back);
    assert_eq!(rows(&kubectl(&up)), before);
    drop(up);
    copy(&["--from", &back, "--to", &file]).unwrap();
    let status = etcd.ctl(&["snapshot", "status", &file]);
    assert!(!status.is_empty());
    copy(&["--from", &file, "--to", &from_file]).unwrap();
    assert_eq!(rows(&kubectl(&alone(&from_file))), before);
}

#[test]
fn an_etcd_that_is_not_new_gives_revisions_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let up = Up::start_with(&["--apiserver-only", "--data-dir", &data]);
    kubectl(&up).ok("create configmap a");
    let uid = kubectl(&up).ok("get configmap a -o jsonpath={.metadata.uid}");
    drop(up);
    let etcd = RealEtcd::start();
    (0..10).for_each(|_| drop(etcd.ctl(&["put", "mine", "x"])));
    let refused = copy(&["--from", &data, "--to", &etcd.url()]).unwrap_err();
    assert!(refused.contains("the etcd stands at revision 11, and "), "{refused}");
    let said = copy(&["--from", &data, "--to", &etcd.url(), "--new-revisions"]).unwrap();
    assert!(said.contains("new revisions"), "{said}");
    let up = Up::start_with(&["--apiserver-only", "--data-dir", &data, "--etcd-servers", &etcd.url()]);
    assert_eq!(kubectl(&up).ok("get configmap a -o jsonpath={.metadata.uid}"), uid);
    let nothing = folder.path().join("nothing").to_str().unwrap().to_owned();
    let refused = copy(&["--from", &nothing, "--to", &etcd.url()]).unwrap_err();
    assert!(refused.contains("has no store: give the --data-dir of a cluster"), "{refused}");
}

#[test]
fn of_two_clusters_in_one_etcd_the_one_that_is_named_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, etcd) = (path("saved.db"), RealEtcd::start());
    for (prefix, name) in [("/registry", "of-one"), ("/kube", "of-other")] {
        let value = format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"default","uid":"u"}}}}"#
        );
        etcd.ctl(&["put", &format!("{prefix}/configmaps/default/{name}"), &value]);
    }
    etcd.ctl(&["snapshot", "save", &file]);
    for (at, (from, prefix, kept, other)) in [
        (&etcd.url(), "/registry", "of-one", "of-other"),
        (&etcd.url(), "/kube", "of-other", "of-one"),
        (&file, "kube", "of-other", "of-one"),
    ]
    .into_iter()
    .enumerate()
    {
        let to = path(&format!("to-{at}"));
        copy(&["--from", from, "--etcd-prefix", prefix, "--to", &to]).unwrap();
        let up = Up::start_with(&["--apiserver-only", "--data-dir", &to]);
        let names = kubectl(&up).ok("get configmaps -o name");
        assert!(names.contains(kept) && !names.contains(other), "{from} {prefix}: {names}");
        let refused = copy(&["--from", from, "--etcd-prefix", "/nothing", "--to", &path("nothing")]);
        assert!(refused.unwrap_err().contains("it has no key below /nothing/: say with --etcd-prefix"));
    }
}
