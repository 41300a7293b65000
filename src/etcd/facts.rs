//! The facts that a log keeps beside its records: how far it is compacted, and the leases.

use std::time::Duration;

use super::log::Log;
use super::state::State;
use super::{LeaseId, Revision, StoreError};

pub(super) const COMPACT_REVISION: &str = "compact-revision";
pub(super) const NEWEST_LEASE: &str = "newest-lease";
/// Before the number of a lease; the value is its time to live in milliseconds.
pub(super) const LEASE: &str = "lease/";
/// Before the number of a lease that is called by another one, which is the value.
pub(super) const LEASE_NAME: &str = "lease-name/";

/// The facts as they are in memory: copied, for no lock is held while the log is written.
pub(super) struct StoreFacts {
    compact_revision: Revision,
    leases: Vec<(LeaseId, Duration)>,
    names: Vec<(LeaseId, u64)>,
}

impl StoreFacts {
    pub(super) fn of(state: &State) -> StoreFacts {
        StoreFacts {
            compact_revision: state.compact_revision,
            leases: state.leases.all().collect(),
            names: state.leases.names().collect(),
        }
    }
}

/// Writes the facts to a log.
pub(super) fn set_facts(log: &dyn Log, facts: &StoreFacts, newest_lease: u64) -> Result<(), StoreError> {
    if facts.compact_revision > 0 {
        log.set_fact(COMPACT_REVISION, Some(facts.compact_revision))?;
    }
    log.set_fact(NEWEST_LEASE, Some(newest_lease))?;
    for (lease, name) in &facts.names {
        log.set_fact(&lease_name_fact(*lease), Some(*name))?;
    }
    for (lease, ttl) in &facts.leases {
        let milliseconds = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        log.set_fact(&lease_fact(*lease), Some(milliseconds))?;
    }
    Ok(())
}

pub(super) fn lease_name_fact(lease: LeaseId) -> String {
    format!("{LEASE_NAME}{}", lease.0)
}

pub(super) fn lease_fact(lease: LeaseId) -> String {
    format!("{LEASE}{}", lease.0)
}
