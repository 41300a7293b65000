//! The page about more than one process is true: its commands are run here, in their order.

use std::path::Path;

use super::*;
use crate::readme::{console_lines, path_for};
use crate::support::{at_home, command};

/// Where the page has its etcd.
const ADDRESS: &str = "127.0.0.1:2379";

/// Ends what the commands have started, should one of them fail.
struct Clusters<'a>(&'a Path);

impl Drop for Clusters<'_> {
    fn drop(&mut self) {
        let _ = command(self.0).args(["down", "--all"]).output();
    }
}

#[test]
fn a_cluster_moves_as_the_page_says() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/SCALE.md")).unwrap();
    let etcd = RealEtcd::start();
    let home = tempfile::tempdir().unwrap();
    let path = path_for(home.path());
    let _clusters = Clusters(home.path());
    let lines = console_lines(&page);
    for line in &lines {
        let line = line.replace(ADDRESS, &etcd.address.to_string());
        let mut shell = at_home(Command::new("sh"), home.path());
        let output = shell.args(["-c", &line]).current_dir(home.path()).env("PATH", &path).output().unwrap();
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{line}\n{out}{err}");
    }
    assert!(lines.len() > 12, "the page has lost its commands");
}
