//! The programs as jenvtest and fabric8's kube-api-test start them: flags and values apart, `-data-dir` with one dash,
//! two issuers, one certificate that is the client and its authority, and SIGKILL in the end.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

use crate::support::programs::free_port;
use crate::support::{at_home, command, eventually, kubectls, texts};

use super::control_plane::get;

/// A certificate that is its own authority, without a word of what it is for.
fn certificate(folder: &Path, file: &str, subject: &[(DnType, &str)], names: Vec<SanType>) {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (part, text) in subject {
        params.distinguished_name.push(part.clone(), *text);
    }
    params.subject_alt_names = names;
    let key = KeyPair::generate().unwrap();
    let signed = params.self_signed(&key).unwrap();
    fs::write(folder.join(format!("{file}.crt")), signed.pem()).unwrap();
    fs::write(folder.join(format!("{file}.key")), key.serialize_pem()).unwrap();
}

/// A program of the folder, with its flags as one line.
struct Started(Child);

impl Started {
    fn new(assets: &str, name: &str, home: &Path, flags: &str) -> Started {
        let mut program = at_home(Command::new(format!("{assets}/{name}")), home);
        let log = fs::File::create(home.join(format!("{name}.log"))).unwrap();
        program
            .args(flags.split_whitespace())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        Started(program.spawn().unwrap())
    }

    fn assert_runs(&mut self) {
        let ended = self.0.try_wait().unwrap();
        assert!(ended.is_none(), "ended with {ended:?}");
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn etcd(assets: &str, home: &Path, port: u16) -> Started {
    let (clients, peers) = (format!("http://0.0.0.0:{port}"), format!("http://localhost:{}", free_port()));
    let [data, wal] = ["data", "wal"].map(|name| home.join(name).display().to_string());
    let flags = format!(
        "-data-dir {data} -wal-dir {wal} --listen-client-urls {clients} --advertise-client-urls {clients} \
         --initial-cluster default={peers} --initial-advertise-peer-urls {peers} --listen-peer-urls {peers}"
    );
    Started::new(assets, "etcd", home, &flags)
}

fn kube_apiserver(assets: &str, home: &Path, port: u16, etcd: u16) -> Started {
    let certs = home.join("certs").display().to_string();
    let key = format!("{certs}/apiserver.key");
    let flags = format!(
        "--min-request-timeout 1 --cert-dir {certs} --secure-port {port} --etcd-servers http://0.0.0.0:{etcd} \
         --authorization-mode RBAC --service-account-issuer https://localhost \
         --service-account-signing-key-file {key} --service-account-signing-key-file {key} \
         --service-account-key-file {key} --service-account-issuer {certs}/apiserver.crt \
         --disable-admission-plugins ServiceAccount --client-ca-file {certs}/client.crt \
         --service-cluster-ip-range 10.0.0.0/24 --allow-privileged"
    );
    Started::new(assets, "kube-apiserver", home, &flags)
}

#[test]
fn a_session_as_the_java_kits_have_it() {
    let home = tempfile::tempdir().unwrap();
    let printed = command(home.path()).arg("assets").output().unwrap();
    let assets = texts(&printed).0.trim_end().to_owned();
    let certs = home.path().join("certs");
    for folder in ["certs", "data", "wal"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    let address = SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST));
    certificate(&certs, "apiserver", &[(DnType::CommonName, "example.org")], vec![address]);
    let masters = [(DnType::OrganizationName, "system:masters"), (DnType::CommonName, "kubeapitest")];
    certificate(&certs, "client", &masters, vec![]);
    let [client, secure] = [(); 2].map(|()| free_port());
    let mut etcd = etcd(&assets, home.path(), client);
    eventually("etcd to be well", || {
        etcd.assert_runs();
        get(client, "/health").filter(|answer| answer.starts_with("HTTP/1.1 200"))
    });
    let mut apiserver = kube_apiserver(&assets, home.path(), secure, client);
    let certs = certs.display();
    let access = format!(
        "--client-certificate={certs}/client.crt --client-key={certs}/client.key --request-timeout=5s \
         --certificate-authority={certs}/apiserver.crt --server=https://127.0.0.1:{secure}"
    );
    let kubectl = |words: &str| {
        let mut kubectl = at_home(Command::new(kubectls().pop().unwrap()), home.path());
        kubectl.args(access.split_whitespace()).args(words.split_whitespace()).output().unwrap()
    };
    eventually("the namespace default", || {
        apiserver.assert_runs();
        kubectl("get ns default").status.success().then_some(())
    });
    let who = kubectl("auth whoami -o jsonpath={.status.userInfo.username}");
    assert_eq!(texts(&who).0, "kubeapitest", "{}", texts(&who).1);
}
