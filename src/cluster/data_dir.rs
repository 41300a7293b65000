//! What is kept over restarts: where the store and the keys are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use apiserver::endpoints::routes::healthz::{HealthCheck, HealthChecks, at_once};
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

/// The checks that upstream names `etcd` and `etcd-readiness`. A store that only reads serves what it has: it
/// is alive, not ready.
pub(super) fn store_checks(health: HealthChecks, kv: &ByteStore, etcd: &EtcdOptions) -> HealthChecks {
    let writes = takes_writes(kv.clone(), etcd);
    let reads = match kv {
        // What it has is in memory.
        ByteStore::Own(_) => at_once(|| Ok(())),
        ByteStore::Etcd(_) => writes.clone(),
    };
    let health = health.with_liveness("etcd", reads).with("etcd", writes.clone(), false);
    health.with_readiness("etcd-readiness", writes)
}

/// Whether the store takes writes.
#[cfg_attr(not(feature = "etcd"), allow(unused, reason = "without a client of etcd nobody is asked"))]
fn takes_writes(kv: ByteStore, etcd: &EtcdOptions) -> HealthCheck {
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
