//! `EtcdStoreError`: why the etcd of `--etcd-servers` is not used.

use apiserver::storage::options::EtcdFlagError;
use apiserver::webhook::TlsFilesError;
use etcd_client::OpenError;

/// Why an etcd cannot be used. The text names the flag.
#[derive(Debug, thiserror::Error)]
pub enum EtcdStoreError {
    /// A flag that says something wrong, or does not go with it.
    #[error("{0}")]
    Flag(String),
    /// What it is, and where.
    #[error(transparent)]
    Options(#[from] EtcdFlagError),
    /// The certificates.
    #[error("--etcd-cafile, --etcd-certfile, --etcd-keyfile: {0}")]
    Tls(#[from] TlsFilesError),
    /// It does not answer as it should.
    #[error(transparent)]
    Open(#[from] OpenError),
}
