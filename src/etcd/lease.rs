//! Leases: keys that go when their time is up (etcd's `Lessor`). Kubernetes hangs Events on them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use imbl::{OrdMap, OrdSet};

use super::promise::Tally;
use super::{Error, LeaseId};

/// The leases and what hangs on them. Bounded by the keys of the store and by who may grant leases. Cloning
/// shares the keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Leases {
    leases: BTreeMap<LeaseId, Lease>,
    /// Of each key that hangs on a lease, which.
    of_key: OrdMap<Arc<str>, LeaseId>,
    /// Of all leases.
    tally: Tally,
}

#[derive(Debug, Clone)]
struct Lease {
    ttl: Duration,
    /// On the cluster's clock (`Clock::elapsed`).
    expires: Duration,
    keys: OrdSet<Arc<str>>,
}

impl Leases {
    pub(super) fn insert(&mut self, lease: LeaseId, ttl: Duration, now: Duration) {
        self.leases.insert(lease, Lease { ttl, expires: now.saturating_add(ttl), keys: OrdSet::new() });
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

    /// The lease, if there is none yet: one that is over, whose time had come before a store was rewound.
    pub(super) fn insert_expired(&mut self, lease: LeaseId, now: Duration) {
        if !self.contains(lease) {
            self.insert(lease, Duration::ZERO, now);
        }
    }

    /// How long each has left.
    pub(super) fn remaining(&self, now: Duration) -> impl Iterator<Item = (LeaseId, Duration)> + '_ {
        self.leases.iter().map(move |(lease, found)| (*lease, found.expires.saturating_sub(now)))
    }

    /// Of a lease, how long it has left.
    pub(super) fn set_remaining(&mut self, lease: LeaseId, left: Duration, now: Duration) {
        if let Some(found) = self.leases.get_mut(&lease) {
            found.expires = now.saturating_add(left);
        }
    }

    /// The highest number of all that are there.
    pub(super) fn newest(&self) -> u64 {
        self.leases.last_key_value().map_or(0, |(lease, _)| lease.0)
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
            let hung_on = self.of_key.remove(&*key);
            debug_assert_eq!(hung_on, Some(lease), "a key hangs on the lease that has it");
        }
    }

    /// Hangs a key on a lease (None: on none), and takes it off the one it hung on.
    pub(super) fn attach(&mut self, key: &Arc<str>, lease: Option<LeaseId>) {
        if lease.is_none() && self.of_key.is_empty() {
            return;
        }
        if let Some(before) = self.of_key.remove(&**key).and_then(|before| self.leases.get_mut(&before)) {
            before.keys.remove(&**key);
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
