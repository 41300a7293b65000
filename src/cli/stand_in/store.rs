//! Where `kube-apiserver` keeps its objects: in the data dir of the `etcd` that `--etcd-servers` names, which
//! is asked for it, or in that etcd, if it is a real one.

use std::time::Duration;

use super::place::{EtcdStore, STORE};
use super::program::log;
use crate::cli::connection::Context;
use crate::cli::outcome::Failure;
use crate::cluster::{Access, Cluster, Config, StartError};
use clock::Clock;

/// How long is waited for an `etcd` that starts at the same time; as envtest waits for a start.
const FOR_ETCD: Duration = Duration::from_secs(20);
/// How long is waited for a server that ends on the same store; then the error says who holds it.
const FOR_STORE: Duration = Duration::from_secs(5);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);
/// Asks each of the servers in turn until one answers; None if it is not kubarium's own, as one with TLS.
pub(crate) async fn ask(servers: &[String]) -> Result<Option<EtcdStore>, Failure> {
    if servers.is_empty() {
        return Err(Failure("--etcd-servers must be specified".into()));
    }
    if servers.iter().any(|server| !server.starts_with("http://")) {
        return Ok(None);
    }
    let clock = Clock::real();
    let waiting = async {
        loop {
            for server in servers {
                match ask_one(server).await {
                    EtcdAnswer::Nothing => {}
                    EtcdAnswer::Own(store) => return Ok(Some(store)),
                    EtcdAnswer::Other => return Ok(None),
                }
            }
            clock.sleep(PAUSE).await;
        }
    };
    let shown = servers.join(",");
    clock.timeout(FOR_ETCD, waiting).await.unwrap_or_else(|_| {
        let waited = FOR_ETCD.as_secs();
        Err(Failure(format!("--etcd-servers {shown}: nobody has answered for {waited} s; start etcd first")))
    })
}

/// Who is there.
enum EtcdAnswer {
    /// Nobody listens yet.
    Nothing,
    /// kubarium's own.
    Own(EtcdStore),
    /// A real etcd, or something else, which will be found out.
    Other,
}

async fn ask_one(server: &str) -> EtcdAnswer {
    let address = server.trim_end_matches('/');
    let access = Access { server: address.into(), authority_pem: None, identity: None };
    let told = match Context::of(access).get(STORE).await {
        Ok(told) => told,
        Err(Failure(why)) if why.starts_with("cannot ask") => return EtcdAnswer::Nothing,
        Err(_) => return EtcdAnswer::Other,
    };
    serde_json::from_slice(&told).map_or(EtcdAnswer::Other, EtcdAnswer::Own)
}

/// Starts a cluster; a store that is still held by a server that ends is waited for.
pub(crate) async fn start(config: Config) -> Result<Cluster, Failure> {
    let clock = Clock::real();
    let deadline = clock.elapsed() + FOR_STORE;
    let mut is_told = false;
    loop {
        match Cluster::start(config.clone()).await {
            Err(StartError::Store(etcd::StoreError::Locked { .. })) if clock.elapsed() < deadline => {
                if !std::mem::replace(&mut is_told, true) {
                    log("the store is held by another kube-apiserver: waiting for its end");
                }
                clock.sleep(PAUSE).await;
            }
            done => return done.map_err(|error| Failure(error.to_string())),
        }
    }
}
