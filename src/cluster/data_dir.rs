//! What is kept over restarts: where the store and the keys are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use apiserver::endpoints::routes::healthz::{HealthCheck, at_once};
use apiserver::storage::ByteStore;
use apiserver::storage::options::EtcdOptions;

/// Where the objects are.
pub(super) fn store(data_dir: &Path) -> PathBuf {
    data_dir.join("etcd")
}

/// Where keys and certificates are.
pub(super) fn pki(data_dir: &Path) -> PathBuf {
    data_dir.join("pki")
}

/// The check that upstream names `etcd`. A store that only reads serves what it has: it is alive, not ready.
#[cfg_attr(not(feature = "etcd"), allow(unused, reason = "without a client of etcd nobody is asked"))]
pub(super) fn takes_writes(kv: ByteStore, etcd: &EtcdOptions) -> HealthCheck {
    match kv {
        ByteStore::Own(kv) => at_once(move || kv.writable().map_err(|error| error.to_string())),
        ByteStore::Etcd(client) => {
            let within = etcd.healthcheck_timeout;
            Arc::new(move || {
                let client = client.clone();
                Box::pin(async move { client.check(within).await.map_err(|error| error.to_string()) })
            })
        }
    }
}
