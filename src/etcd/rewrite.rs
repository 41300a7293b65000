//! Writing the log anew, so that what compaction has freed goes back to the file system.
//!
//! sled uses the freed parts of its file again, but never gives them back. Records do not change, so they are
//! copied to a new folder step by step, with writes in between; the last step copies what came meanwhile, and
//! from then on the new folder counts. A crash before that leaves the old one as it was.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::folder;
use super::log::Log;
use super::opening::Place;
use super::sled_log::SledLog;
use super::state::State;
use super::writer::{COMPACT_REVISION, NEWEST_LEASE, lease_fact};
use super::{Error, LeaseId, Revision};

/// How much one step copies, so that writes wait only that long.
const STEP_BYTES: usize = 1 << 20;

/// A log that is being written anew.
#[derive(Debug)]
pub(super) struct Rewrite {
    folder: PathBuf,
    log: Arc<SledLog>,
    /// What is to be copied, and how much of it is.
    records: Vec<(Revision, Arc<str>)>,
    copied: usize,
    is_finished: bool,
}

impl Rewrite {
    pub(super) fn begin(place: &Place, records: Vec<(Revision, Arc<str>)>) -> Result<Rewrite, Error> {
        let (folder, log) = place.new_log()?;
        Ok(Rewrite { folder, log, records, copied: 0, is_finished: false })
    }

    /// Copies a little; whether there is more. What a compaction has taken away meanwhile is not missed.
    pub(super) fn step(&mut self, old: &dyn Log) -> Result<bool, Error> {
        let mut bytes = 0;
        while let Some((revision, _)) = self.records.get(self.copied)
            && bytes < STEP_BYTES
        {
            if let Some(record) = old.read(*revision)? {
                bytes += record.len();
                self.log.append(*revision, record.to_vec())?;
            }
            self.copied += 1;
        }
        Ok(self.copied < self.records.len())
    }

    /// What the state has that the copy has not, and the other way round.
    pub(super) fn rest(&self, state: &State) -> Rest {
        let upto = self.records.last().map_or(0, |(revision, _)| *revision);
        let gone = self.records.iter().filter(|(revision, key)| !state.index.knows(key, *revision));
        Rest {
            gone: gone.map(|(revision, _)| *revision).collect(),
            later: state.index.changes("", upto + 1, usize::MAX),
            facts: Facts::of(state),
        }
    }

    /// Brings it up to the state, and makes it the one that counts. Only the thread that calls this writes,
    /// so nothing is written meanwhile; readers go on.
    pub(super) fn finish(
        mut self,
        place: &Place,
        rest: Rest,
        old: &dyn Log,
        newest_lease: u64,
    ) -> Result<Arc<SledLog>, Error> {
        for revision in rest.gone {
            self.log.remove(revision)?;
        }
        for (revision, _) in rest.later {
            let missing = || Error::Corrupt(format!("the record of revision {revision} is missing"));
            let record = old.read(revision)?.ok_or_else(missing)?;
            self.log.append(revision, record.to_vec())?;
        }
        set_facts(&*self.log, &rest.facts, newest_lease)?;
        self.log.sync_all()?;
        folder::complete(&self.folder, &*place.device)?;
        self.is_finished = true;
        Ok(self.log.clone())
    }
}

impl Drop for Rewrite {
    fn drop(&mut self) {
        if !self.is_finished {
            self.log.give_up();
        }
    }
}

/// What is still to be done to a log that is written anew, when all that was there at first is copied.
pub(super) struct Rest {
    gone: Vec<Revision>,
    later: Vec<(Revision, Arc<str>)>,
    facts: Facts,
}

/// The facts as they are in memory: copied, for no lock is held while the log is written.
pub(super) struct Facts {
    compact_revision: Revision,
    leases: Vec<(LeaseId, Duration)>,
}

impl Facts {
    pub(super) fn of(state: &State) -> Facts {
        Facts { compact_revision: state.compact_revision, leases: state.leases.all().collect() }
    }
}

/// Writes the facts to a log.
pub(super) fn set_facts(log: &dyn Log, facts: &Facts, newest_lease: u64) -> Result<(), Error> {
    if facts.compact_revision > 0 {
        log.set_fact(COMPACT_REVISION, Some(facts.compact_revision))?;
    }
    log.set_fact(NEWEST_LEASE, Some(newest_lease))?;
    for (lease, ttl) in &facts.leases {
        let milliseconds = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        log.set_fact(&lease_fact(*lease), Some(milliseconds))?;
    }
    Ok(())
}
