//! Leases for objects that expire (`storage/etcd3/lease_manager.go`): Events share one for a while, so that
//! there are few leases however many events.

use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use etcd::{LeaseId, StoreError};
use sync::Mutex;

use super::byte_store::ByteStore;
use super::metrics::StorageMetrics;

/// How long a lease is given to new objects: the least of this and a twentieth of the time to live. Objects
/// live longer than asked by at most this.
const REUSE: Duration = Duration::from_secs(60);
/// At most so many objects share a lease: its expiry deletes them all at once.
const MAX_OBJECTS: usize = 1000;

/// Hands out leases.
#[derive(Debug)]
pub(super) struct LeaseManager {
    kv: ByteStore,
    clock: Clock,
    current: Mutex<Option<SharedLease>>,
    /// Held while a lease is granted, so that all who come meanwhile share it.
    granting: tokio::sync::Mutex<()>,
    metrics: Arc<StorageMetrics>,
}

#[derive(Debug)]
struct SharedLease {
    id: LeaseId,
    expires_at: Duration,
    objects: usize,
}

impl LeaseManager {
    /// Over a store.
    pub(super) fn new(kv: ByteStore, clock: Clock, metrics: Arc<StorageMetrics>) -> LeaseManager {
        let granting = tokio::sync::Mutex::default();
        LeaseManager { kv, clock, current: Mutex::new(None), granting, metrics }
    }

    /// A lease that lasts at least `time_to_live` from now.
    ///
    /// # Errors
    /// As [`ByteStore::grant_lease`].
    pub(super) async fn lease(&self, time_to_live: Duration) -> Result<LeaseId, StoreError> {
        if let Some(id) = self.share(time_to_live) {
            return Ok(id);
        }
        let _turn = self.granting.lock().await;
        // Whoever had it before has perhaps got one.
        if let Some(id) = self.share(time_to_live) {
            return Ok(id);
        }
        let (now, reuse) = (self.clock.elapsed(), reuse(time_to_live));
        let id = self.kv.grant_lease(time_to_live + reuse).await?;
        let expires_at = now + time_to_live + reuse;
        let replaced = self.lock().replace(SharedLease { id, expires_at, objects: 1 });
        replaced.iter().for_each(|replaced| self.metrics.lease_was_shared(replaced.objects));
        Ok(id)
    }

    fn share(&self, time_to_live: Duration) -> Option<LeaseId> {
        let earliest = self.clock.elapsed() + time_to_live;
        let mut current = self.lock();
        let lease = current.as_mut()?;
        let fits = (earliest..=earliest + reuse(time_to_live)).contains(&lease.expires_at)
            && lease.objects < MAX_OBJECTS;
        fits.then(|| {
            lease.objects += 1;
            lease.id
        })
    }

    fn lock(&self) -> sync::MutexGuard<'_, Option<SharedLease>> {
        self.current.lock()
    }
}

fn reuse(time_to_live: Duration) -> Duration {
    REUSE.min(time_to_live / 20)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use component_base::metrics::Render;
    use etcd::{Kv, Options};

    use super::*;

    #[tokio::test]
    async fn a_herd_shares_as_few_leases_as_those_who_come_one_by_one() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let kv = Kv::open(Options::default(), clock.clone()).unwrap();
        let metrics = Arc::new(StorageMetrics::default());
        let leases = LeaseManager::new(kv.clone().into(), clock.clone(), metrics.clone());
        let hour = Duration::from_secs(3600);
        let herd = (0..2 * MAX_OBJECTS + 1).map(|_| leases.lease(hour));
        let given: Result<Vec<LeaseId>, StoreError> =
            futures::future::join_all(herd).await.into_iter().collect();
        let given = given.unwrap();
        assert_eq!(kv.leases().len(), 3, "one for each thousand");
        for lease in kv.leases() {
            let shared = given.iter().filter(|id| **id == lease.lease).count();
            assert!((1..=MAX_OBJECTS).contains(&shared), "{shared}");
        }
        clock.advance(REUSE + Duration::from_secs(1));
        leases.lease(hour).await.unwrap();
        assert_eq!(kv.leases().len(), 4, "the last one ends too early by now");
        let mut page = String::new();
        metrics.render(&mut page);
        let counted = "etcd_lease_object_counts_sum 2001\netcd_lease_object_counts_count 3\n";
        assert!(page.contains(counted), "{page}");
    }
}
