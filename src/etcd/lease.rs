//! Leases: keys that go when their time is up (etcd's `Lessor`). Kubernetes hangs Events on them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use imbl::{OrdMap, OrdSet};

use super::lease_names;
use super::promise::Tally;
use super::{LeaseId, LeaseStatus, StoreError};

/// The leases and what hangs on them. Bounded by the keys of the store and by who may grant leases. Cloning
/// shares the keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Leases {
    leases: BTreeMap<LeaseId, GrantedLease>,
    /// Of each key that hangs on a lease, which.
    of_key: OrdMap<Arc<str>, LeaseId>,
    /// Those that somebody has named, by name.
    names: BTreeMap<u64, LeaseId>,
    /// Of all leases.
    tally: Tally,
}

#[derive(Debug, Clone)]
struct GrantedLease {
    /// None: its number says what it is called.
    name: Option<u64>,
    ttl: Duration,
    /// On the cluster's clock (`Clock::elapsed`).
    expires: Duration,
    keys: OrdSet<Arc<str>>,
}

impl Leases {
    pub(super) fn insert(&mut self, lease: LeaseId, ttl: Duration, now: Duration) {
        self.leases.insert(
            lease,
            GrantedLease { name: None, ttl, expires: now.saturating_add(ttl), keys: OrdSet::new() },
        );
        self.tally.add(lease.0, 0);
    }

    /// Calls a lease by a number of somebody's own.
    pub(super) fn set_name(&mut self, lease: LeaseId, name: u64) {
        if let Some(found) = self.leases.get_mut(&lease) {
            found.name = Some(name);
            self.names.insert(name, lease);
        }
    }

    /// The lease that is called so.
    pub(super) fn named(&self, name: u64) -> Option<LeaseId> {
        let has_none = |lease: &LeaseId| self.leases.get(lease).is_some_and(|found| found.name.is_none());
        self.names.get(&name).copied().or_else(|| lease_names::number(name).map(LeaseId).filter(has_none))
    }

    /// What a lease is called, or was while it was there, unless somebody else has named it.
    pub(super) fn name(&self, lease: LeaseId) -> u64 {
        let given = self.leases.get(&lease).and_then(|found| found.name);
        given.unwrap_or_else(|| lease_names::name(lease.0))
    }

    /// Those that have names.
    pub(super) fn names(&self) -> impl Iterator<Item = (LeaseId, u64)> + '_ {
        self.names.iter().map(|(name, lease)| (*lease, *name))
    }

    /// What is to be told of one of them.
    pub(super) fn status(&self, lease: LeaseId, now: Duration) -> Option<LeaseStatus> {
        let found = self.leases.get(&lease)?;
        let name = found.name.unwrap_or_else(|| lease_names::name(lease.0));
        let remaining = found.expires.saturating_sub(now);
        Some(LeaseStatus { lease, name, ttl: found.ttl, remaining })
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
        if let Some(name) = found.name {
            self.names.remove(&name);
        }
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

    pub(super) fn keys(&self, lease: LeaseId) -> Result<Vec<Arc<str>>, StoreError> {
        let found = self.leases.get(&lease).ok_or(StoreError::LeaseNotFound(lease))?;
        Ok(found.keys.iter().cloned().collect())
    }

    pub(super) fn keep_alive(&mut self, lease: LeaseId, now: Duration) -> Result<(), StoreError> {
        let found = self.leases.get_mut(&lease).ok_or(StoreError::LeaseNotFound(lease))?;
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
