//! Writing the log anew, so that what compaction has freed goes back to the file system.
//!
//! sled uses the freed parts of its file again, but never gives them back. Records do not change, so they are
//! copied to a new folder step by step, with writes in between; the last step copies what came meanwhile, and
//! from then on the new folder counts. A crash before that leaves the old one as it was.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::facts::{StoreFacts, set_facts};
use super::folder;
use super::log::Log;
use super::place::LogPlace;
use super::sled_log::SledLog;
use super::state::State;
use super::{KeySpan, Revision, StoreError, record};

/// How much one step copies, so that writes wait only that long.
const STEP_BYTES: usize = 1 << 20;

/// A log that is being written anew.
#[derive(Debug)]
pub(super) struct Rewrite {
    folder: PathBuf,
    log: Arc<SledLog>,
    /// What is to be copied, and how much of it is: each change, those of one revision side by side.
    records: Vec<(Revision, Arc<str>)>,
    copied: usize,
    is_finished: bool,
}

impl Rewrite {
    pub(super) fn begin(place: &LogPlace, records: Vec<(Revision, Arc<str>)>) -> Result<Rewrite, StoreError> {
        let (folder, log) = place.new_log()?;
        Ok(Rewrite { folder, log, records, copied: 0, is_finished: false })
    }

    /// Copies a little; whether there is more. What a compaction has taken away meanwhile is not missed.
    pub(super) fn step(&mut self, old: &dyn Log) -> Result<bool, StoreError> {
        let mut bytes = 0;
        while let Some((revision, _)) = self.records.get(self.copied)
            && bytes < STEP_BYTES
        {
            let changes = changes_at(*revision, &self.records[self.copied..]);
            if let Some(record) = read_changes(old, *revision, changes)? {
                bytes += record.len();
                self.log.append(*revision, record.to_vec())?;
            }
            self.copied += changes.len();
        }
        Ok(self.copied < self.records.len())
    }

    /// What the state has that the copy has not, and the other way round.
    pub(super) fn rest(&self, state: &State) -> RewriteRest {
        let upto = self.records.last().map_or(0, |(revision, _)| *revision);
        let is_known = |(revision, key): &(Revision, Arc<str>)| state.index.knows(key, *revision);
        let gone = self.records.iter().filter(|record| !is_known(record));
        let gone: BTreeSet<Revision> = gone.map(|(revision, _)| *revision).collect();
        let left = self.records.iter().filter(|record| gone.contains(&record.0) && is_known(record));
        RewriteRest {
            left: left.cloned().collect(),
            gone,
            later: state.index.changes(&KeySpan::ALL, upto + 1, usize::MAX),
            facts: StoreFacts::of(state),
        }
    }

    /// Brings it up to the state, and makes it the one that counts. Only the thread that calls this writes,
    /// so nothing is written meanwhile; readers go on.
    pub(super) fn finish(
        mut self,
        place: &LogPlace,
        rest: RewriteRest,
        old: &dyn Log,
        newest_lease: u64,
    ) -> Result<Arc<SledLog>, StoreError> {
        for revision in rest.gone {
            self.log.remove(revision)?;
        }
        for mut changes in [&rest.left[..], &rest.later] {
            while let Some((revision, _)) = changes.first() {
                let (of_revision, later) = changes.split_at(changes_at(*revision, changes).len());
                let missing = || StoreError::Corrupt(format!("the record of revision {revision} is missing"));
                let record = read_changes(old, *revision, of_revision)?.ok_or_else(missing)?;
                self.log.append(*revision, record.to_vec())?;
                changes = later;
            }
        }
        set_facts(&*self.log, &rest.facts, newest_lease)?;
        self.log.sync_all()?;
        folder::complete(&self.folder, &*place.device)?;
        self.is_finished = true;
        Ok(self.log.clone())
    }
}

/// The first of the changes, as far as they are of one revision.
fn changes_at(revision: Revision, changes: &[(Revision, Arc<str>)]) -> &[(Revision, Arc<str>)] {
    let others = changes.iter().position(|(other, _)| *other != revision);
    &changes[..others.unwrap_or(changes.len())]
}

/// The record of a revision, as far as it is about these keys.
fn read_changes(
    log: &dyn Log,
    revision: Revision,
    changes: &[(Revision, Arc<str>)],
) -> Result<Option<Bytes>, StoreError> {
    let Some(bytes) = log.read(revision)? else { return Ok(None) };
    record::retain(revision, &bytes, |key| changes.binary_search_by(|(_, known)| (**known).cmp(key)).is_ok())
}

impl Drop for Rewrite {
    fn drop(&mut self) {
        if !self.is_finished {
            self.log.give_up();
        }
    }
}

/// What is still to be done to a log that is written anew, when all that was there at first is copied.
pub(super) struct RewriteRest {
    /// With a change that nobody can see any more.
    gone: BTreeSet<Revision>,
    /// The other changes of these.
    left: Vec<(Revision, Arc<str>)>,
    later: Vec<(Revision, Arc<str>)>,
    facts: StoreFacts,
}
