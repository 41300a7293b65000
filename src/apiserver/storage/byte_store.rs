//! `ByteStore`: where the bytes are, which is our own store or an etcd that several servers share
//! (`storagebackend.Config`, which knows etcd alone).
//!
//! What both can do is here, with etcd's meaning. Asked of our own store nothing waits that need not; what is
//! asked of an etcd is behind a pointer, so that whoever has none carries none of it.

use std::time::Duration;

use clock::Clock;
use etcd::{Expect, KeyValue, Kv, LeaseId, Op, Range, Revision, StoreError, Txn, Watch, WatchBatch};
use etcd_client::{EtcdClient, EtcdWatch};

/// Keys, bytes and revisions. Cloning shares it.
#[derive(Clone, Debug)]
pub enum ByteStore {
    /// Our own store, which nobody else writes to.
    Own(Kv),
    /// An etcd.
    Etcd(EtcdClient),
}

/// A watch of either.
pub(super) enum ByteWatch {
    Own(Watch),
    Etcd(Box<EtcdWatch>),
}

impl From<Kv> for ByteStore {
    fn from(kv: Kv) -> ByteStore {
        ByteStore::Own(kv)
    }
}

impl From<EtcdClient> for ByteStore {
    fn from(client: EtcdClient) -> ByteStore {
        ByteStore::Etcd(client)
    }
}

impl ByteStore {
    /// Our own store.
    ///
    /// # Errors
    /// [`StoreError::NotOnEtcd`] where there is none: `what` needs it.
    pub fn own(&self, what: &'static str) -> Result<&Kv, StoreError> {
        match self {
            ByteStore::Own(kv) => Ok(kv),
            ByteStore::Etcd(_) => Err(StoreError::NotOnEtcd(what)),
        }
    }

    /// Whether other servers write to it, too: then nothing is known of it that was not read or watched.
    pub fn is_shared(&self) -> bool {
        matches!(self, ByteStore::Etcd(_))
    }

    /// How much room its files take: none in memory. None for an etcd, which would have to be asked.
    pub(super) fn bytes_on_disk(&self) -> Option<u64> {
        match self {
            ByteStore::Own(kv) => Some(kv.bytes_on_disk()),
            ByteStore::Etcd(_) => None,
        }
    }

    /// A key as it is called where it is kept: in an etcd below the prefix that was chosen.
    pub(super) fn kept_key(&self, key: &str) -> String {
        match self {
            ByteStore::Own(_) => key.to_owned(),
            ByteStore::Etcd(client) => client.kept_key(key),
        }
    }

    /// The newest revision.
    ///
    /// # Errors
    /// [`StoreError::Etcd`], [`StoreError::Closed`].
    pub async fn revision(&self) -> Result<Revision, StoreError> {
        match self {
            ByteStore::Own(kv) => Ok(kv.revision()),
            ByteStore::Etcd(client) => Box::pin(client.revision()).await,
        }
    }

    /// The newest revision that was heard of: of our own store the newest there is.
    pub fn seen_revision(&self) -> Revision {
        match self {
            ByteStore::Own(kv) => kv.revision(),
            ByteStore::Etcd(client) => client.seen_revision(),
        }
    }

    /// The oldest revision that can still be read, as far as that was heard of; 0 before the first
    /// compaction.
    pub fn compact_revision(&self) -> Revision {
        match self {
            ByteStore::Own(kv) => kv.compact_revision(),
            ByteStore::Etcd(client) => client.compact_revision(),
        }
    }

    /// The key as it was at a revision (None: now).
    ///
    /// # Errors
    /// As [`Kv::get`], and [`StoreError::Etcd`].
    pub async fn get(&self, key: &str, at: Option<Revision>) -> Result<Option<KeyValue>, StoreError> {
        let (found, _) = match self {
            ByteStore::Own(kv) => kv.get(key, at)?,
            ByteStore::Etcd(client) => Box::pin(client.get(key, at)).await?,
        };
        Ok(found)
    }

    /// The keys that start with `prefix`, as [`Kv::range`] reads them.
    ///
    /// # Errors
    /// As [`Kv::range`], and [`StoreError::Etcd`].
    pub async fn range(
        &self,
        prefix: &str,
        from: Option<&str>,
        limit: Option<usize>,
        at: Option<Revision>,
    ) -> Result<Range, StoreError> {
        match self {
            ByteStore::Own(kv) => kv.range(prefix, from, limit, at),
            ByteStore::Etcd(client) => Box::pin(client.range(prefix, from, limit, at)).await,
        }
    }

    /// As [`Kv::txn`]; of a put, what it replaced is told by our own store alone.
    ///
    /// # Errors
    /// As [`Kv::txn`]; [`StoreError::Etcd`], after which nobody knows whether it was done.
    pub async fn txn(&self, key: &str, expect: Expect, op: Op) -> Result<Txn, StoreError> {
        match self {
            ByteStore::Own(kv) => kv.txn(key, expect, op).await,
            ByteStore::Etcd(client) => Box::pin(client.txn(key, expect, op)).await,
        }
    }

    /// Makes a lease that expires after `ttl`.
    ///
    /// # Errors
    /// As [`Kv::grant_lease`], and [`StoreError::Etcd`].
    pub async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        match self {
            ByteStore::Own(kv) => kv.grant_lease(ttl).await,
            ByteStore::Etcd(client) => Box::pin(client.grant_lease(ttl)).await,
        }
    }

    /// Watches the keys that start with `prefix` for changes after a revision; one to come is waited for.
    ///
    /// # Errors
    /// As [`Kv::watch`], and [`StoreError::Etcd`].
    pub(super) async fn watch(&self, prefix: &str, after: Revision) -> Result<ByteWatch, StoreError> {
        match self {
            ByteStore::Own(kv) => kv.watch(prefix, after).map(ByteWatch::Own),
            ByteStore::Etcd(client) => {
                Ok(ByteWatch::Etcd(Box::new(Box::pin(client.watch(prefix, after)).await?)))
            }
        }
    }

    /// Whether [`ByteStore::request_progress`] is followed: an old etcd cannot.
    pub fn tells_progress(&self) -> bool {
        match self {
            ByteStore::Own(_) => true,
            ByteStore::Etcd(client) => client.tells_progress(),
        }
    }

    /// Makes every watch of exactly this prefix say how far it is.
    pub fn request_progress(&self, prefix: &str) {
        match self {
            ByteStore::Own(kv) => kv.request_progress(prefix),
            ByteStore::Etcd(client) => client.request_progress(prefix),
        }
    }

    /// Forgets the history before a revision.
    ///
    /// # Errors
    /// As [`Kv::compact`], and [`StoreError::Etcd`].
    pub async fn compact(&self, before: Revision) -> Result<(), StoreError> {
        match self {
            ByteStore::Own(kv) => kv.compact(before).await,
            ByteStore::Etcd(client) => client.compact(before).await,
        }
    }

    /// Forgets history by the clock, every `interval`; 0 is never.
    pub async fn compact_every(self, interval: Duration, clock: Clock) {
        match self {
            _ if interval.is_zero() => {}
            ByteStore::Own(kv) => {
                let compacting = etcd::compactor(&kv, interval);
                // It ends with the store, which it does not hold.
                drop(kv);
                clock.tracked(compacting).await;
            }
            ByteStore::Etcd(client) => clock.tracked(client.compact_every(interval)).await,
        }
    }

    /// Ends it: every read, write and watch answers [`StoreError::Closed`] from now on.
    pub async fn close(&self) {
        match self {
            ByteStore::Own(kv) => kv.close().await,
            ByteStore::Etcd(client) => client.close(),
        }
    }
}

impl ByteWatch {
    /// As [`Watch::next`].
    ///
    /// # Errors
    /// As [`Watch::next`], and [`StoreError::Etcd`].
    pub(super) async fn next(&mut self) -> Result<WatchBatch, StoreError> {
        match self {
            ByteWatch::Own(watch) => watch.next().await,
            ByteWatch::Etcd(watch) => Box::pin(watch.next()).await,
        }
    }
}
