//! What is kept over restarts: where the store and the keys are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use apiserver::endpoints::routes::healthz::Check;
use etcd::Kv;

/// Where the objects are.
pub(super) fn store(data_dir: &Path) -> PathBuf {
    data_dir.join("etcd")
}

/// Where keys and certificates are.
pub(super) fn pki(data_dir: &Path) -> PathBuf {
    data_dir.join("pki")
}

/// The check that upstream names `etcd`. A store that only reads serves what it has: it is alive, not ready.
pub(super) fn takes_writes(kv: Kv) -> Check {
    Arc::new(move || kv.writable().map_err(|error| error.to_string()))
}
