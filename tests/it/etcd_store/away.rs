//! An etcd that goes and comes, and forgets.

use std::fs;

use super::*;

/// A program that goes with its test.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_etcd_that_was_away_loses_nothing_and_no_watch() {
    let mut etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let up = server(&etcd, &keys, &["--apiserver-only"]);
    let kubectl = kubectl(&up);
    let told = up.folder().join("told");
    let watching = kubectl
        .command("get configmaps -l kind=mine --watch --output-watch-events -o custom-columns=:type,:object.metadata.name --no-headers")
        .stdout(fs::File::create(&told).unwrap())
        .spawn()
        .unwrap();
    let _watching = Watching(watching);
    let create = |name: &str| {
        kubectl.ok(&format!("create configmap {name}"));
        kubectl.ok(&format!("label configmap {name} kind=mine"));
    };
    let lines = || fs::read_to_string(&told).unwrap_or_default();
    create("a");
    eventually("the first to be told", || lines().contains('a').then_some(()));
    for round in 0..2 {
        etcd.kill();
        let said = kubectl.fails("get --raw /readyz");
        assert!(said.contains("readyz check failed") || said.contains("etcd"), "{said}");
        // Upstream's liveness, too, is that of the store behind it; who wants to know of the server alone says so.
        let said = kubectl.fails("get --raw /livez");
        assert!(said.contains("livez check failed") || said.contains("etcd"), "{said}");
        kubectl.ok("get --raw /livez?exclude=etcd");
        etcd.start_again();
        eventually("the server to be ready", || {
            kubectl.run("get --raw /readyz").status.success().then_some(())
        });
        create(&format!("after-{round}"));
        // A watch that has not come back yet would be told that it is too late.
        eventually("the watch to go on", || lines().contains(&format!("after-{round}")).then_some(()));
        etcd.ctl(&["compaction", &newest(&etcd)]);
        create(&format!("compacted-{round}"));
    }
    eventually("the last to be told", || lines().contains("compacted-1").then_some(()));
    let names: Vec<String> = lines()
        .lines()
        .filter_map(|line| line.strip_prefix("ADDED"))
        .map(|name| name.trim().to_owned())
        .collect();
    assert_eq!(names, ["a", "after-0", "compacted-0", "after-1", "compacted-1"], "{}", lines());
    let listed = kubectl.ok("get configmaps -l kind=mine -o name");
    assert_eq!(listed.lines().count(), 5, "{listed}");
}
