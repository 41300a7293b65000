//! What the storage of one cluster counts, kind by kind (`storage/etcd3/metrics`, `storage/cacher/metrics`).
//!
//! It is counted where it happens: by the store that is asked, by the reflector that hears of changes, by the
//! watch cache that answers. Whoever serves one kind alone finds its counters once; counting is adding to a
//! number.

mod kind_counter;
mod render;
mod requests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use foldhash::fast::FixedState;
use sync::RwLock;

use super::watch_cache::WatchCache;
use apis::kind::Kind;
use component_base::metrics::{Histogram, REQUEST_BUCKETS};
use kind_counter::COUNTERS;
use requests::RequestCounts;

pub(super) use kind_counter::KindCounter;
pub(super) use requests::EtcdOperation;

/// Kinds that are counted; what becomes of further ones is not shown. Those that are no longer served stay,
/// as upstream's do.
const MAX_KINDS: usize = 4096;

/// How many of the buckets of requests `apiserver_watch_cache_read_wait_seconds` has: nobody waits longer.
const WAIT_BUCKETS: usize = 13;

/// Buckets of `etcd_lease_object_counts`.
const LEASE_OBJECTS: [f64; 7] = [10.0, 50.0, 100.0, 500.0, 1000.0, 2500.0, 5000.0];

/// The counters of all kinds of one store.
#[derive(Debug, Default)]
pub(super) struct StorageMetrics {
    /// By where the kind is stored.
    kinds: RwLock<HashMap<Arc<str>, Arc<KindMetrics>, FixedState>>,
    /// Of leases that are given to no more objects; once there is one.
    lease_objects: OnceLock<Histogram>,
}

/// What is counted of one kind.
#[derive(Debug)]
pub(super) struct KindMetrics {
    group: Arc<str>,
    resource: Arc<str>,
    /// What the store was asked.
    pub requests: RequestCounts,
    counts: [AtomicU64; COUNTERS],
    /// Lists of the newest state, by [`ConsistentRead`].
    consistent_reads: [AtomicU64; 3],
    /// How long reads waited for the watch cache, once one has.
    waits: OnceLock<Histogram>,
    /// What the watch cache is like. Without one, or before it has heard anything, its revision is 0.
    revision: AtomicU64,
    capacity: AtomicUsize,
    bytes: AtomicUsize,
}

/// How a list of the newest state was answered that was asked of a watch cache.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConsistentRead {
    /// From the cache.
    Cached,
    /// From the store, since the cache did not hear of that state in time.
    FellBack,
    /// The store could not answer it either.
    Failed,
}

impl StorageMetrics {
    /// The counters of a kind.
    pub(super) fn of(&self, kind: &Kind) -> Arc<KindMetrics> {
        let prefix = kind.storage_prefix();
        if let Some(known) = self.kinds.read().get(prefix) {
            return known.clone();
        }
        let mut kinds = self.kinds.write();
        let has_room = kinds.len() < MAX_KINDS;
        let made = || Arc::new(KindMetrics::new(kind));
        if has_room { kinds.entry(prefix.clone()).or_insert_with(made).clone() } else { made() }
    }

    /// A lease is replaced that so many objects share (`UpdateLeaseObjectCount`, which counts the first one
    /// of the next lease, too).
    pub(super) fn lease_was_shared(&self, objects: usize) {
        let counts = self.lease_objects.get_or_init(|| Histogram::of_amounts(&LEASE_OBJECTS));
        counts.observe_amount(objects as u64);
    }
}

impl KindMetrics {
    fn new(kind: &Kind) -> KindMetrics {
        KindMetrics {
            group: kind.group_version.group.clone(),
            resource: kind.plural.clone(),
            requests: RequestCounts::default(),
            counts: Default::default(),
            consistent_reads: Default::default(),
            waits: OnceLock::new(),
            revision: AtomicU64::new(0),
            capacity: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// So many more.
    pub(super) fn add(&self, counter: KindCounter, count: usize) {
        self.counts[counter as usize].fetch_add(count as u64, Ordering::Relaxed);
    }

    /// How many there were.
    pub(super) fn count(&self, counter: KindCounter) -> u64 {
        self.counts[counter as usize].load(Ordering::Relaxed)
    }

    /// A list was answered from the watch cache (`RecordListCacheMetrics`), which has no indexes.
    pub(super) fn listed_from_cache(&self, fetched: usize, returned: usize) {
        self.add(KindCounter::CacheLists, 1);
        self.add(KindCounter::CacheFetched, fetched);
        self.add(KindCounter::CacheReturned, returned);
    }

    /// A list was asked of the store (`RecordStorageListMetrics`), whatever came of it.
    pub(super) fn listed_from_store(&self, fetched: usize, evaluated: usize, returned: usize) {
        self.add(KindCounter::StorageLists, 1);
        self.add(KindCounter::StorageFetched, fetched);
        self.add(KindCounter::StorageEvaluated, evaluated);
        self.add(KindCounter::StorageReturned, returned);
    }

    /// A watch of the store has told so many changes; none is progress.
    pub(super) fn heard(&self, events: usize) {
        match events {
            0 => self.add(KindCounter::Bookmarks, 1),
            events => self.add(KindCounter::StorageEvents, events),
        }
    }

    /// A list of the newest state was answered, or not.
    pub(super) fn read_consistently(&self, how: ConsistentRead) {
        self.consistent_reads[how as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A read waited so long for the watch cache.
    pub(super) fn waited(&self, duration: Duration) {
        self.waits.get_or_init(|| Histogram::new(&REQUEST_BUCKETS[..WAIT_BUCKETS])).observe(duration);
    }

    /// The watch cache is like this now (`RecordResourceVersion`).
    pub(super) fn cache_is(&self, cache: &WatchCache) {
        self.revision.store(cache.revision(), Ordering::Relaxed);
        self.capacity.store(cache.capacity(), Ordering::Relaxed);
        self.bytes.store(cache.objects_bytes(), Ordering::Relaxed);
    }

    /// The kind is no longer served: of its cache nothing is shown.
    pub(super) fn cache_is_gone(&self) {
        self.revision.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
