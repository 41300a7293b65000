//! etcd: revisions, compare-and-put, the log. What comes in are keys and bytes; what goes out are the same
//! bytes with the revision that wrote them. It has never heard of Kubernetes, and nothing outside knows sled.
//!
//! The contract is the part of etcd's v3 API that kube-apiserver uses
//! (`kubernetes/apiserver/pkg/storage/etcd3`), shaped so that a real etcd fits behind it: one counter of
//! revisions for the whole store, a put or delete that compares the key's `mod_revision` first, several reads
//! and writes in one step, ranges at a revision, watches from a revision, compaction, leases.
//!
//! Invariants:
//! - a revision is born in one place, in the same batch as its value;
//! - a watch is a read of the log: nothing is delivered that was not written, in no other order, none twice;
//! - a write is acknowledged when it is as durable as the store promises: with a data dir on the device,
//!   after an fdatasync, in memory without;
//! - what was acknowledged is there when the store is opened, or it is not opened: what is to be found is
//!   noted apart from the log, and held against it.

#![warn(missing_docs, unreachable_pub)]

pub mod contract;

mod compact;
mod device;
mod disk_times;
mod error;
mod facts;
mod folder;
mod fork;
mod found;
mod gathering;
mod held;
mod image;
mod index;
mod kv;
mod lease;
mod lease_manager;
mod lease_names;
mod log;
mod loss;
mod opening;
mod overflow;
mod past;
mod place;
mod promise;
mod recent;
mod record;
mod recovery;
mod request;
mod rewrite;
mod salvage;
mod segments;
mod sled_log;
mod span;
mod staged;
mod state;
mod sweep;
mod tasks;
#[cfg(test)]
mod tests;
mod transaction;
mod upkeep;
mod watch;
mod watchers;
mod writer;

pub use compact::{COMPACTION_INTERVAL, compactor};
pub use contract::{
    EventKind, Expect, HeldKeys, KeyEvent, KeyValue, LeaseId, LeaseStatus, LoggedChange, Op, Options, Range,
    Revision, Txn,
};
pub use disk_times::{DiskObserver, DiskStep};
pub use error::StoreError;
pub use image::{DamagedImage, ImageLease, StoreImage};
pub use kv::Kv;
pub use lease_manager::LeaseManager;
pub use loss::Loss;
pub use salvage::Recovery;
pub use span::KeySpan;
pub use transaction::Transaction;
pub use watch::{Watch, WatchBatch};
