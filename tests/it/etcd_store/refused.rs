//! What cannot be used is said within seconds, and by TLS one gets in with the right certificates alone.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use clock::Clock;
use pki::Authority;

use super::*;
use crate::support::command;

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What `up` says that does not start.
pub(super) fn said(flags: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let kubeconfig = home.path().join("kubeconfig");
    let mut up = command(home.path());
    up.args(["up", "--apiserver-only", "--kubeconfig"]).arg(kubeconfig).args(flags);
    let output = up.output().unwrap();
    assert!(!output.status.success());
    texts(&output).1
}

#[test]
fn certificates_count() {
    let folder = tempfile::tempdir().unwrap();
    let now = Clock::real().now();
    let [ours, others] = [(); 2].map(|()| Authority::generate(now).unwrap());
    let serving = ours.server(&["localhost"], &[IpAddr::V4(Ipv4Addr::LOCALHOST)], now).unwrap();
    let client = ours.client("kubarium", "kubarium", now).unwrap();
    let file = |name: &str, text: &str| write(folder.path(), name, text);
    let authority = file("ca.crt", ours.certificate_pem());
    let strange = file("other.crt", others.certificate_pem());
    let shown = file("client.crt", &client.certificate_pem);
    let key = file("client.key", &client.key_pem);
    let etcd = RealEtcd::start_with(&[
        "--cert-file",
        &file("server.crt", &serving.certificate_pem),
        "--key-file",
        &file("server.key", &serving.key_pem),
        "--trusted-ca-file",
        &authority,
        "--client-cert-auth",
    ]);
    let url = etcd.url();
    let identity = ["--etcd-certfile", &shown, "--etcd-keyfile", &key];
    let trusting = ["--etcd-servers", &url, "--etcd-cafile", &authority];
    let doubting = ["--etcd-servers", &url, "--etcd-cafile", &strange];
    let refused = said(&[&doubting[..], &identity].concat());
    assert!(refused.contains("TLS handshake: invalid peer certificate"), "{refused}");
    let refused = said(&trusting);
    assert!(refused.contains(&format!("--etcd-servers {url}: ")), "{refused}");
    let keys = tempfile::tempdir().unwrap();
    let data = ["--data-dir", keys.path().to_str().unwrap(), "--apiserver-only"];
    let up = Up::start_with(&[&trusting[..], &identity, &data].concat());
    kubectl(&up).ok("create configmap a");
}

#[test]
fn flags_that_go_not_together_are_refused_before_anybody_is_asked() {
    let nobody = "--etcd-servers=http://127.0.0.1:1";
    for (flags, wanted) in [
        (
            &["--etcd-servers=nowhere"][..],
            "--etcd-servers nowhere: has no port; must be as http://127.0.0.1:2379",
        ),
        (&[nobody, "--etcd-prefix=/"], "--etcd-prefix \"/\": must be a word, as /registry"),
        (
            &[nobody, "--listen-client-urls=127.0.0.1:0"],
            "--listen-client-urls does not go with --etcd-servers",
        ),
        (&[nobody, "--clock=stepped"], "--clock stepped does not go with --etcd-servers"),
        (&[nobody, "--etcd-certfile=a"], "--etcd-keyfile"),
    ] {
        let said = said(flags);
        assert!(said.contains(wanted), "{flags:?}: {said}");
    }
}

/// With one member away the other is asked.
#[test]
fn another_member_is_asked_when_one_is_away() {
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let servers = format!("http://{},{}", free_address(), etcd.url());
    let data = keys.path().to_str().unwrap();
    let up = Up::start_with(&["--etcd-servers", &servers, "--data-dir", data, "--apiserver-only"]);
    kubectl(&up).ok("create configmap a");
}
