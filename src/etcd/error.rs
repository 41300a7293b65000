//! What can go wrong in etcd, in words for people.

use std::path::PathBuf;

use super::loss::Loss;
use super::{LeaseId, Revision};

/// A failure of the store. The first two are etcd's own (`ErrCompacted`, `ErrFutureRev`): the caller's doing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The revision asked for is older than the last compaction: list again and watch from there.
    #[error("required revision has been compacted (compacted up to {compact_revision}, now at {current})")]
    Compacted {
        /// The oldest revision that can still be read.
        compact_revision: Revision,
        /// The newest revision.
        current: Revision,
    },
    /// The revision asked for has not been reached.
    #[error("required revision {requested} is a future revision (now at {current})")]
    FutureRevision {
        /// What was asked for.
        requested: Revision,
        /// The newest revision.
        current: Revision,
    },
    /// The lease to attach to, renew or revoke does not exist or has expired.
    #[error("requested lease {} not found", .0.0)]
    LeaseNotFound(LeaseId),
    /// There is a lease of that number already (etcd's `ErrLeaseExists`).
    #[error("lease {} exists already", .0.0)]
    LeaseExists(LeaseId),
    /// A transaction writes a key twice (etcd's `ErrDuplicateKey`): none of it is done.
    #[error("key {0:?} is written twice in one transaction")]
    KeyWrittenTwice(String),
    /// Another process, or another store of this one, has the data dir open.
    #[error(
        "the data dir {} is in use by {}: stop that one (kubarium down), or choose another --data-dir",
        data_dir.display(),
        process.map_or("another process".to_owned(), |process| format!("process {process}"))
    )]
    Locked {
        /// The data dir.
        data_dir: PathBuf,
        /// Who has it, if that can be known.
        process: Option<u32>,
    },
    /// What is on disk cannot be read, and could not be repaired.
    #[error("the data dir is damaged: {0}")]
    Corrupt(String),
    /// What is on disk is less than what was acknowledged.
    #[error("{0}; put back a copy of the files, or start with --recover to go on with what is there")]
    Lost(Box<Loss>),
    /// The disk refused. After a failed write the store takes no more writes until it has read back what is
    /// on disk: without that it is uncertain.
    #[error("the store cannot use its files: {0}")]
    Io(String),
    /// What a real etcd answered, or what became of the connection to it; of a write, it may have been done
    /// all the same.
    #[error("{0}")]
    Etcd(String),
    /// What only a store of our own can do.
    #[error(
        "{0}: the objects are kept in an etcd (--etcd-servers), and only kubarium's own store can do that"
    )]
    NotOnEtcd(&'static str),
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}
