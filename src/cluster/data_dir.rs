//! What is kept over restarts: where the store and the keys are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::config::Config;
use apiserver::endpoints::routes::healthz::Check;
use etcd::Kv;
use pki::Authority;

/// Where the store is, and how it writes.
pub(super) fn store_options(config: &Config) -> etcd::Options {
    etcd::Options {
        data_dir: config.data_dir.as_ref().map(|dir| dir.join("etcd")),
        unsafe_no_fsync: config.unsafe_no_fsync,
        recover: config.recover,
        ..etcd::Options::default()
    }
}

/// Who signs: that of the data dir, or a new one.
pub(super) fn authority(config: &Config) -> Result<Authority, pki::Error> {
    let now = config.clock.now();
    match &config.data_dir {
        Some(dir) => Authority::load_or_generate(&pki_folder(dir), now),
        None => Authority::generate(now),
    }
}

/// Where keys and certificates are.
pub(super) fn pki_folder(data_dir: &Path) -> PathBuf {
    data_dir.join("pki")
}

/// The check that upstream names `etcd`. A store that only reads serves what it has: it is alive, not ready.
pub(super) fn takes_writes(kv: Kv) -> Check {
    Arc::new(move || kv.writable().map_err(|error| error.to_string()))
}
