//! kubarium on a real etcd: Debian's, a process of its own for each test.

mod alone;
mod away;
mod bad_input;
mod chaos;
mod clocks;
mod copied;
mod leading;
mod peers;
mod refused;
mod repaired;
mod scale;
mod several;
mod snapshots;
mod trio;
mod way;

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::programs::{self, free_address};
use crate::support::{Kubectl, PATIENCE, Up, eventually, kubectls, texts};

/// So often are other ports tried.
const TRIES: usize = 10;

/// An etcd of one member; killed when dropped.
pub(crate) struct RealEtcd {
    child: Child,
    folder: TempDir,
    scheme: &'static str,
    address: SocketAddr,
    peers: SocketAddr,
    flags: Vec<String>,
}

impl RealEtcd {
    pub(crate) fn start() -> RealEtcd {
        RealEtcd::start_plain(&[])
    }

    /// With flags of TLS, so that it is reached by https.
    fn start_with(flags: &[&str]) -> RealEtcd {
        RealEtcd::start_at("https", flags)
    }

    /// With other flags.
    fn start_plain(flags: &[&str]) -> RealEtcd {
        RealEtcd::start_at("http", flags)
    }

    fn start_at(scheme: &'static str, flags: &[&str]) -> RealEtcd {
        let folder = tempfile::tempdir().unwrap();
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        for _ in 0..TRIES {
            let address = free_address();
            let peers = free_address();
            let mut child = run(&folder, scheme, [address, peers], &flags);
            if listens(&mut child, address) {
                return RealEtcd { child, folder, scheme, address, peers, flags };
            }
        }
        panic!("no two ports are free");
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// As a power cut would, but for the disk.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// With what it had.
    fn start_again(&mut self) {
        self.child = run(&self.folder, self.scheme, [self.address, self.peers], &self.flags);
        assert!(listens(&mut self.child, self.address), "its port is somebody else's by now");
    }

    /// What etcdctl prints.
    fn ctl(&self, words: &[&str]) -> String {
        ctl(&self.url(), words).unwrap_or_else(|said| panic!("etcdctl {words:?}\n{said}"))
    }
}

impl Drop for RealEtcd {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// What etcdctl prints when it asks these endpoints.
fn ctl(endpoints: &str, words: &[&str]) -> Result<String, String> {
    let mut etcdctl = Command::new("etcdctl");
    etcdctl.env("ETCDCTL_API", "3").args(["--endpoints", endpoints]).args(words);
    let output = etcdctl.stdin(Stdio::null()).output().expect("run `make etcdctl`");
    let (out, err) = texts(&output);
    if output.status.success() { Ok(out) } else { Err(out + &err) }
}

fn run(folder: &TempDir, scheme: &str, [address, peers]: [SocketAddr; 2], flags: &[String]) -> Child {
    let clients = format!("{scheme}://{address}");
    let cluster = format!("default=http://{peers}");
    let peers = &*format!("http://{peers}");
    member("default", &folder.path().join("data"), [&clients, peers, peers], &cluster, flags)
}

/// A member of an etcd, as `cluster` lists it; where clients reach it, where it listens for other members, and
/// where those reach it.
fn member(
    name: &str,
    data: &Path,
    [clients, peers, advertised]: [&str; 3],
    cluster: &str,
    flags: &[String],
) -> Child {
    Command::new(programs::of_debian("etcd", "etcd-server"))
        .args(["--name", name, "--data-dir", data.to_str().unwrap(), "--unsafe-no-fsync"])
        .args(["--listen-client-urls", clients, "--advertise-client-urls", clients])
        .args(["--listen-peer-urls", peers, "--initial-advertise-peer-urls", advertised])
        .args(["--initial-cluster", cluster])
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn listens(child: &mut Child, address: SocketAddr) -> bool {
    eventually("etcd to listen", || match child.try_wait().unwrap() {
        Some(_) => Some(false),
        None => TcpStream::connect(address).is_ok().then_some(true),
    })
}

/// A server on that etcd whose keys are those of every other that is given the same folder.
fn server(etcd: &RealEtcd, keys: &TempDir, flags: &[&str]) -> Up {
    let url = etcd.url();
    let own = ["--etcd-servers", &url, "--data-dir", keys.path().to_str().unwrap()];
    Up::start_with(&[&own[..], flags].concat())
}

fn kubectl(up: &Up) -> Kubectl {
    Kubectl::new(&kubectls()[0], up)
}

/// The revision that an etcd stands at.
fn newest(etcd: &RealEtcd) -> String {
    let status: serde_json::Value =
        serde_json::from_str(&etcd.ctl(&["endpoint", "status", "--write-out=json"])).unwrap();
    status[0]["Status"]["header"]["revision"].to_string()
}
