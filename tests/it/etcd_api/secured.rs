//! TLS, and clients that must show who they are.

use std::net::{IpAddr, Ipv4Addr};

use pki::Authority;

use super::*;

#[test]
fn only_who_shows_a_certificate_gets_in() {
    let folder = tempfile::tempdir().unwrap();
    let now = Clock::real().now();
    let [ours, others] = [(); 2].map(|()| Authority::generate(now).unwrap());
    let serving = ours.server(&["localhost"], &[IpAddr::V4(Ipv4Addr::LOCALHOST)], now).unwrap();
    let file = |name: &str, text: &str| write(folder.path(), name, text);
    let certificate = file("server.crt", &serving.certificate_pem);
    let key = file("server.key", &serving.key_pem);
    let authority = file("ca.crt", ours.certificate_pem());
    let etcd = EtcdProcess::start(
        folder.path(),
        &[
            "--listen-client-urls",
            "https://127.0.0.1:0",
            "--cert-file",
            &certificate,
            "--key-file",
            &key,
            "--trusted-ca-file",
            &authority,
            "--client-cert-auth",
            "--unsafe-no-fsync",
        ],
    );
    let endpoint = format!("https://{}", etcd.address);
    let with = |who: Option<&Authority>| {
        let mut etcdctl = Etcdctl::new(&endpoint);
        let timeouts = ["--dial-timeout=3s", "--command-timeout=3s", "--cacert", &authority];
        etcdctl.flags.extend(timeouts.map(str::to_owned));
        if let Some(who) = who {
            let client = who.client("somebody", "anybody", now).unwrap();
            let [certificate, key] =
                [file("client.crt", &client.certificate_pem), file("client.key", &client.key_pem)];
            etcdctl.flags.extend(["--cert".to_owned(), certificate, "--key".to_owned(), key]);
        }
        etcdctl
    };
    assert_eq!(with(Some(&ours)).ok(&["put", "a", "1"]), "OK\n");
    assert_eq!(with(Some(&ours)).ok(&["get", "a"]), "a\n1\n");
    with(Some(&others)).fails(&["get", "a"]);
    with(None).fails(&["get", "a"]);
    // Nor without TLS.
    Etcdctl::new(etcd.address).fails(&["get", "a", "--dial-timeout=3s", "--command-timeout=3s"]);
}
