//! The contract of the store: keys, revisions, events, transactions and options, as etcd's v3 API has them
//! (`mvccpb`, `etcdserverpb`). Nothing here knows how they are kept.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

/// The number of a change to the store: etcd's revision, Kubernetes' resourceVersion. One counter for all
/// keys; an empty store stands at 1, and each committed put, delete or transaction is one higher than the one
/// before.
pub type Revision = u64;

/// A lease: keys attached to it are deleted when it expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// What is to be told of a lease (`LeaseTimeToLiveResponse`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseStatus {
    /// By its own number.
    pub lease: LeaseId,
    /// What it is called: what follows from its number, unless it was given another name.
    pub name: u64,
    /// What it was granted for.
    pub ttl: Duration,
    /// How long it has left.
    pub remaining: Duration,
}

/// A key as it was written at `mod_revision` (etcd's `mvccpb.KeyValue`). Cloning shares key and value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The whole key.
    pub key: Arc<str>,
    /// The bytes that were put; empty in a deletion.
    pub value: Bytes,
    /// The revision of the put that made the key exist.
    pub create_revision: Revision,
    /// The revision of this put or deletion.
    pub mod_revision: Revision,
    /// 1 for the put that made the key exist, one more with each further put; 0 in a deletion.
    pub version: u64,
    /// The lease the key hangs on.
    pub lease: Option<LeaseId>,
}

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The key was made or changed.
    Put,
    /// The key was deleted, by a caller or because its lease expired.
    Delete,
}

/// One change, as a watch delivers it (etcd's `mvccpb.Event` with `prev_kv`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEvent {
    /// Put or delete.
    pub kind: EventKind,
    /// The key after the change. For a deletion: the key, the revision of the deletion, and no value.
    pub kv: KeyValue,
    /// The key before the change; None if it did not exist.
    pub previous: Option<KeyValue>,
}

/// One change, as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChange {
    /// Put or delete.
    pub kind: EventKind,
    /// The key after the change.
    pub kv: KeyValue,
}

impl KeyEvent {
    /// The revision of the change.
    pub fn revision(&self) -> Revision {
        self.kv.mod_revision
    }
}

/// What [`Kv::txn`] compares before it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The key's newest `mod_revision` is this one; 0: the key does not exist.
    ModRevision(Revision),
    /// Whatever there is.
    Any,
}

/// What [`Kv::txn`] writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Sets the key.
    Put {
        /// The new value.
        value: Bytes,
        /// The lease to hang the key on. A put without a lease takes the key off the one it hung on.
        lease: Option<LeaseId>,
    },
    /// Deletes the key. A key that does not exist cannot be deleted: that is a conflict, and no revision is
    /// used.
    Delete,
}

/// What became of a [`Kv::txn`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Txn {
    /// It was written, and is as durable as the store promises.
    Committed {
        /// The revision of this write.
        revision: Revision,
        /// What it replaced or deleted.
        previous: Option<KeyValue>,
    },
    /// The compare failed; nothing was written.
    Conflict {
        /// What is there instead.
        current: Option<KeyValue>,
    },
}

/// The answer to [`Kv::range`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The keys in order, at most `limit` of them.
    pub kvs: Vec<KeyValue>,
    /// Whether `limit` cut the answer short.
    pub more: bool,
    /// How many keys there are from `from` on, the ones beyond `limit` included.
    pub count: usize,
    /// The revision all of them were read at.
    pub revision: Revision,
}

/// The keys that a store knows, and what it takes to know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldKeys {
    /// Those of which there is a change since the last compaction.
    pub keys: usize,
    /// The bytes of the keys and of the numbers of their changes.
    pub bytes: usize,
}

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the store lives: a folder of its own. None: in memory (what memory has no room for is then in
    /// temporary files, in `/dev/shm` where there is one).
    pub data_dir: Option<PathBuf>,
    /// How many bytes of recent changes are kept in memory, previous values counted too. The oldest are let
    /// go of at the bound; reads and watches that need them then go to sled, where they are from the start
    /// with a data dir, and without one to temporary files, where they are put when they are let go of.
    pub recent_bytes: usize,
    /// sled's page cache, in bytes. Pages over the bound are read again from the files.
    pub page_cache_bytes: u64,
    /// How many writes may wait for the writer. At the bound, [`Kv::txn`] waits for room.
    pub queue_length: usize,
    /// etcd's `--unsafe-no-fsync`: what is acknowledged survives the process, but no power cut.
    pub unsafe_no_fsync: bool,
    /// Goes on with what is there if something that was acknowledged is not ([`Kv::recovery`] says what).
    pub recover: bool,
    /// From which size on, in bytes, compaction writes the files of a data dir anew; a store that holds much
    /// is also let grow to four times what it took when that was last done.
    pub rewrite_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            data_dir: None,
            recent_bytes: 16 << 20,
            page_cache_bytes: 8 << 20,
            queue_length: 1024,
            unsafe_no_fsync: false,
            recover: false,
            rewrite_bytes: 8 << 20,
        }
    }
}
