//! The lease manager: one lease for many keys (upstream's `leaseManager` in `apiserver/pkg/storage/etcd3`).

use std::time::Duration;

use super::{Kv, LeaseId, StoreError};

/// Grants leases for keys of similar life times, few of them (upstream's `leaseManager` in
/// `apiserver/pkg/storage/etcd3`): a lease is granted a little longer than asked for, and used again for keys
/// that come meanwhile. Expiry is thereby late by up to a minute or a twentieth of the time asked for.
#[derive(Debug)]
pub struct LeaseManager {
    kv: Kv,
    previous: sync::Mutex<Option<Granted>>,
}

#[derive(Debug, Clone, Copy)]
struct Granted {
    lease: LeaseId,
    expires: Duration,
    uses: usize,
}

/// Upstream's defaults: how long at most, and for which share of its time, a lease is used again.
const REUSE: Duration = Duration::from_secs(60);
const REUSE_DIVISOR: u32 = 20;
/// Upstream's `--lease-max-object-count`: so that no expiry deletes too many keys at once.
const MAX_OBJECT_COUNT: usize = 1000;

impl LeaseManager {
    /// For the keys of one store.
    pub fn new(kv: Kv) -> LeaseManager {
        LeaseManager { kv, previous: sync::Mutex::default() }
    }

    /// A lease to hang one key on that shall live for `ttl`.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Closed`].
    pub async fn lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        let until = self.kv.clock().elapsed().saturating_add(ttl);
        let reuse = REUSE.min(ttl / REUSE_DIVISOR);
        if let Some(lease) = self.reusable(until, reuse) {
            return Ok(lease);
        }
        // Two callers at once get a lease each, and the later one is used again: not worth a lock to await.
        let lease = self.kv.grant_lease(ttl.saturating_add(reuse)).await?;
        *self.lock() = Some(Granted { lease, expires: until.saturating_add(reuse), uses: 1 });
        Ok(lease)
    }

    /// The lease granted before, if it lives long enough, not too long, and is not full.
    fn reusable(&self, until: Duration, reuse: Duration) -> Option<LeaseId> {
        let mut previous = self.lock();
        let granted = previous.as_mut().filter(|granted| {
            until <= granted.expires
                && granted.expires <= until.saturating_add(reuse)
                && granted.uses < MAX_OBJECT_COUNT
        })?;
        granted.uses += 1;
        Some(granted.lease)
    }

    fn lock(&self) -> sync::MutexGuard<'_, Option<Granted>> {
        self.previous.lock()
    }
}
