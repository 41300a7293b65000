//! Etcds for the suite: Debian's, and kubarium's own over a socket.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::body::Body;
use http::Request;
use tempfile::TempDir;

use crate::server::{Server, bind};
use apimachinery::wire::ApiService;
use clock::Clock;
use etcd::{Kv, Options};
use etcd_client::{EtcdClient, EtcdConfig};
use etcd_server::values::AsKept;
use etcd_server::{EtcdServer, ServerOptions};

/// So often is another port tried.
const TRIES: usize = 10;

/// One that ends with its test.
pub(super) enum TestEtcd {
    Debians { child: Child, address: SocketAddr, _folder: TempDir },
    Own { server: Server },
}

impl TestEtcd {
    /// Debian's, of a release that cannot be asked for the progress of watches.
    pub(super) async fn debians() -> TestEtcd {
        for _ in 0..TRIES {
            let mut etcd = TestEtcd::spawn_debians();
            if etcd.answers().await {
                return etcd;
            }
        }
        panic!("no two ports are free");
    }

    fn spawn_debians() -> TestEtcd {
        let folder = tempfile::tempdir().unwrap();
        let address = free_address();
        let peers = free_address();
        let child = Command::new(program())
            .args(["--data-dir", folder.path().to_str().unwrap(), "--unsafe-no-fsync"])
            .args(["--listen-client-urls", &format!("http://{address}")])
            .args(["--advertise-client-urls", &format!("http://{address}")])
            .args(["--listen-peer-urls", &format!("http://{peers}")])
            .args(["--initial-advertise-peer-urls", &format!("http://{peers}")])
            .args(["--initial-cluster", &format!("default=http://{peers}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        TestEtcd::Debians { child, address, _folder: folder }
    }

    /// Waits until it takes connections; false when it has ended instead.
    async fn answers(&mut self) -> bool {
        let TestEtcd::Debians { child, address, .. } = self else { return true };
        let clock = Clock::real();
        while tokio::net::TcpStream::connect(*address).await.is_err() {
            clock.sleep(std::time::Duration::from_millis(10)).await;
            if child.try_wait().unwrap().is_some() {
                return false;
            }
        }
        true
    }

    /// kubarium's own, which can be asked for the progress of watches.
    pub(super) async fn own() -> TestEtcd {
        let kv = Kv::open(Options::default(), Clock::real()).unwrap();
        let etcd =
            EtcdServer::new(Arc::new(move || Ok(kv.clone())), Arc::new(AsKept), ServerOptions::default());
        let service = ApiService::new(tower::service_fn(move |request: Request<Body>| {
            let etcd = etcd.clone();
            async move { Ok(etcd.serve(request).await) }
        }));
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        TestEtcd::Own { server: Server::start(listener, None, service).unwrap() }
    }

    /// A client whose keys begin with a prefix.
    pub(super) async fn client(&self, prefix: &str, clock: &Clock) -> EtcdClient {
        let address = match self {
            TestEtcd::Debians { address, .. } => *address,
            TestEtcd::Own { server } => server.address(),
        };
        let endpoints = vec![format!("http://{address}").parse().unwrap()];
        let config = EtcdConfig { endpoints, tls: None, prefix: prefix.into() };
        EtcdClient::open(config, clock.clone()).await.unwrap()
    }
}

impl Drop for TestEtcd {
    fn drop(&mut self) {
        if let TestEtcd::Debians { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The etcd on PATH, or the one that `make etcd` has brought; a test never passes by skipping.
fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let brought = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/etcd-server/usr/bin");
    let folders = std::env::split_paths(&path).chain([PathBuf::from(brought)]);
    let found = folders.map(|folder| folder.join("etcd")).find(|file| file.exists());
    found.expect("no etcd on PATH: run `make etcd`, which brings Debian's")
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
