//! Leases for objects that expire (`storage/etcd3/lease_manager.go`): Events share one for a while, so that
//! there are few leases however many events.

use std::time::Duration;

use clock::Clock;
use etcd::{Error, LeaseId};
use sync::Mutex;

use super::byte_store::ByteStore;

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
}

#[derive(Debug)]
struct SharedLease {
    id: LeaseId,
    expires_at: Duration,
    objects: usize,
}

impl LeaseManager {
    /// Over a store.
    pub(super) fn new(kv: ByteStore, clock: Clock) -> LeaseManager {
        LeaseManager { kv, clock, current: Mutex::new(None) }
    }

    /// A lease that lasts at least `time_to_live` from now.
    ///
    /// # Errors
    /// As [`ByteStore::grant_lease`].
    pub(super) async fn lease(&self, time_to_live: Duration) -> Result<LeaseId, Error> {
        let now = self.clock.elapsed();
        let reuse = REUSE.min(time_to_live / 20);
        if let Some(id) = self.share(now + time_to_live, now + time_to_live + reuse) {
            return Ok(id);
        }
        let id = self.kv.grant_lease(time_to_live + reuse).await?;
        let expires_at = now + time_to_live + reuse;
        *self.lock() = Some(SharedLease { id, expires_at, objects: 1 });
        Ok(id)
    }

    fn share(&self, earliest: Duration, latest: Duration) -> Option<LeaseId> {
        let mut current = self.lock();
        let lease = current.as_mut()?;
        let fits = (earliest..=latest).contains(&lease.expires_at) && lease.objects < MAX_OBJECTS;
        fits.then(|| {
            lease.objects += 1;
            lease.id
        })
    }

    fn lock(&self) -> sync::MutexGuard<'_, Option<SharedLease>> {
        self.current.lock()
    }
}
