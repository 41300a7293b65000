//! Writing the log anew, so that what compaction has freed goes back to the file system.
//!
//! sled uses the freed parts of its file again, but never gives them back. Records do not change, so they are
//! copied to a new folder step by step, with writes in between; the last step copies what came meanwhile, and
//! from then on the new folder counts. A crash before that leaves the old one as it was.

use std::path::PathBuf;
use std::sync::Arc;

use super::folder;
use super::log::Log;
use super::opening::Place;
use super::sled_log::SledLog;
use super::state::State;
use super::writer::{COMPACT_REVISION, NEWEST_LEASE, lease_fact};
use super::{Error, Revision};

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
    pub(super) fn begin(place: &Place, state: &State) -> Result<Rewrite, Error> {
        let (folder, log) = place.new_log()?;
        let records = state.index.changes("", 0, usize::MAX);
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

    /// Brings it up to the state, and makes it the one that counts. Nothing is written meanwhile.
    pub(super) fn finish(
        mut self,
        place: &Place,
        state: &State,
        old: &dyn Log,
        newest_lease: u64,
    ) -> Result<Arc<SledLog>, Error> {
        let upto = self.records.last().map_or(0, |(revision, _)| *revision);
        for (revision, key) in &self.records {
            if !state.index.knows(key, *revision) {
                self.log.remove(*revision)?;
            }
        }
        let later = state.index.changes("", upto + 1, usize::MAX);
        for (revision, _) in later {
            let missing = || Error::Corrupt(format!("the record of revision {revision} is missing"));
            let record = old.read(revision)?.ok_or_else(missing)?;
            self.log.append(revision, record.to_vec())?;
        }
        set_facts(&*self.log, state, newest_lease)?;
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

/// The facts as they are in memory.
pub(super) fn set_facts(log: &dyn Log, state: &State, newest_lease: u64) -> Result<(), Error> {
    if state.compact_revision > 0 {
        log.set_fact(COMPACT_REVISION, Some(state.compact_revision))?;
    }
    log.set_fact(NEWEST_LEASE, Some(newest_lease))?;
    for (lease, ttl) in state.leases.all() {
        let milliseconds = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        log.set_fact(&lease_fact(lease), Some(milliseconds))?;
    }
    Ok(())
}
