//! Leases: keys that go when their time is up (etcd's `Lessor`). Kubernetes hangs Events on them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::kv::WeakKv;
use super::promise::Tally;
use super::state::Shared;
use super::{Error, Kv, LeaseId};
use clock::Clock;

/// The leases and what hangs on them. Bounded by the keys of the store and by who may grant leases.
#[derive(Debug, Default)]
pub(super) struct Leases {
    leases: BTreeMap<LeaseId, Lease>,
    /// Of each key that hangs on a lease, which.
    of_key: HashMap<Arc<str>, LeaseId>,
    /// Of all leases.
    tally: Tally,
}

#[derive(Debug)]
struct Lease {
    ttl: Duration,
    /// On the cluster's clock (`Clock::elapsed`).
    expires: Duration,
    keys: BTreeSet<Arc<str>>,
}

impl Leases {
    pub(super) fn insert(&mut self, lease: LeaseId, ttl: Duration, now: Duration) {
        self.leases.insert(lease, Lease { ttl, expires: now.saturating_add(ttl), keys: BTreeSet::new() });
        self.tally.add(lease.0, 0);
    }

    /// What the leases amount to.
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// What those up to a number amount to.
    pub(super) fn tally_upto(&self, newest: u64) -> Tally {
        let mut tally = self.tally;
        for (lease, _) in self.leases.range(LeaseId(newest.saturating_add(1))..) {
            tally.remove(lease.0, 0);
        }
        tally
    }

    /// What will be left without one of them.
    pub(super) fn tally_without(&self, lease: LeaseId) -> Tally {
        let mut tally = self.tally;
        tally.remove(lease.0, 0);
        tally
    }

    /// Each with the time that it was granted for.
    pub(super) fn all(&self) -> impl Iterator<Item = (LeaseId, Duration)> + '_ {
        self.leases.iter().map(|(lease, found)| (*lease, found.ttl))
    }

    pub(super) fn contains(&self, lease: LeaseId) -> bool {
        self.leases.contains_key(&lease)
    }

    /// Takes the lease away. Keys that still hang on it stay, without a lease.
    pub(super) fn remove(&mut self, lease: LeaseId) {
        let Some(found) = self.leases.remove(&lease) else { return };
        self.tally.remove(lease.0, 0);
        for key in found.keys {
            self.of_key.remove(&key);
        }
    }

    /// Hangs a key on a lease (None: on none), and takes it off the one it hung on.
    pub(super) fn attach(&mut self, key: &Arc<str>, lease: Option<LeaseId>) {
        if lease.is_none() && self.of_key.is_empty() {
            return;
        }
        if let Some(before) = self.of_key.remove(key).and_then(|before| self.leases.get_mut(&before)) {
            before.keys.remove(key);
        }
        let Some(lease) = lease else { return };
        if let Some(found) = self.leases.get_mut(&lease) {
            found.keys.insert(key.clone());
            self.of_key.insert(key.clone(), lease);
        }
    }

    pub(super) fn keys(&self, lease: LeaseId) -> Result<Vec<Arc<str>>, Error> {
        let found = self.leases.get(&lease).ok_or(Error::LeaseNotFound(lease))?;
        Ok(found.keys.iter().cloned().collect())
    }

    pub(super) fn keep_alive(&mut self, lease: LeaseId, now: Duration) -> Result<(), Error> {
        let found = self.leases.get_mut(&lease).ok_or(Error::LeaseNotFound(lease))?;
        found.expires = now.saturating_add(found.ttl);
        Ok(())
    }

    pub(super) fn is_expired(&self, lease: LeaseId, now: Duration) -> bool {
        self.leases.get(&lease).is_some_and(|lease| lease.expires <= now)
    }

    pub(super) fn expired(&self, now: Duration) -> Vec<LeaseId> {
        self.leases.iter().filter(|(_, lease)| lease.expires <= now).map(|(id, _)| *id).collect()
    }

    pub(super) fn next_expiry(&self) -> Option<Duration> {
        self.leases.values().map(|lease| lease.expires).min()
    }
}

/// How long after a failed write the next lease is tried.
const RETRY: Duration = Duration::from_secs(1);

/// Revokes leases when their time is up, as long as the store is open.
pub(super) async fn expire(shared: Arc<Shared>, kv: WeakKv, clock: Clock) {
    loop {
        let next = shared.read().leases.next_expiry();
        match next {
            None => {
                shared.leases_changed.notified().await;
                continue;
            }
            Some(expires) => tokio::select! {
                () = clock.sleep_until(expires) => {}
                () = shared.leases_changed.notified() => continue,
            },
        }
        let now = clock.elapsed();
        let expired = shared.read().leases.expired(now);
        let Some(kv) = kv.upgrade() else { return };
        for lease in expired {
            match kv.expire_lease(lease, now).await {
                Ok(()) => {}
                Err(Error::Closed) => return,
                Err(error) => {
                    // It takes no writes for now, and has said so.
                    tracing::debug!(%error, "a lease cannot expire yet");
                    drop(kv);
                    clock.sleep(RETRY).await;
                    break;
                }
            }
        }
    }
}

/// Grants leases for keys of similar life times, few of them (upstream's `leaseManager` in
/// `apiserver/pkg/storage/etcd3`): a lease is granted a little longer than asked for, and used again for keys
/// that come meanwhile. Expiry is thereby late by up to a minute or a twentieth of the time asked for.
#[derive(Debug)]
pub struct LeaseManager {
    kv: Kv,
    previous: std::sync::Mutex<Option<Granted>>,
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
        LeaseManager { kv, previous: std::sync::Mutex::default() }
    }

    /// A lease to hang one key on that shall live for `ttl`.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Closed`].
    pub async fn lease(&self, ttl: Duration) -> Result<LeaseId, Error> {
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Granted>> {
        self.previous.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
