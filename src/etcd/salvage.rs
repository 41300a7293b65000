//! `--recover`: going on with what can be read of a store that has lost something.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::facts::{COMPACT_REVISION, NEWEST_LEASE};
use super::folder;
use super::found::read_records;
use super::log::Log;
use super::place::LogPlace;
use super::promise::Promise;
use super::record;
use super::recovery;
use super::sled_log::SledLog;
use super::{Revision, StoreError};

/// What a store was opened without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Where the files are, as they were found.
    pub copy: PathBuf,
    /// What is gone, in words.
    pub gone: String,
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (gone, copy) = (&self.gone, self.copy.display());
        write!(f, "recovered what could be read: {gone}; a copy of the files is in {copy}")
    }
}

const UNKNOWN: &str = "what was acknowledged is not known, so nobody can say what is gone";

/// Nothing is known to be missing, but the note of what was acknowledged cannot be read.
pub(super) fn unknown(place: &LogPlace) -> Result<Recovery, StoreError> {
    Ok(Recovery { copy: recovery::back_up(&place.data_dir)?, gone: UNKNOWN.to_owned() })
}

/// Writes what can be read anew. Revisions go on after the promised one, so that none is given twice, and all
/// before is compacted: a watch that was away has to list again.
pub(super) fn take_what_is_there(
    place: &LogPlace,
    promised: Option<&Promise>,
    damage: &StoreError,
) -> Result<Recovery, StoreError> {
    tracing::debug!(%damage, "recovering");
    let copy = recovery::back_up(&place.data_dir)?;
    let old = open_somehow(place);
    let (folder, new) = place.new_log()?;
    let newest = old.as_ref().map_or(Ok(1), |old| copy_records(old, &new, promised))?;
    let (mut found, _) = read_records(new.clone(), promised, place.clock.elapsed())?;
    let gone = match promised {
        Some(promised) => {
            found.compact(promised.compact_revision);
            found.loss(promised, &place.data_dir).to_string()
        }
        None => UNKNOWN.to_owned(),
    };
    let revision = newest.max(promised.map_or(1, |promise| promise.revision));
    new.set_fact(COMPACT_REVISION, Some(revision))?;
    let newest_lease = found.newest_lease.max(promised.map_or(0, |promise| promise.newest_lease));
    new.set_fact(NEWEST_LEASE, Some(newest_lease))?;
    new.sync_all()?;
    drop((old, found, new));
    folder::complete(&folder, &*place.device)?;
    Ok(Recovery { copy, gone })
}

/// Opens the log without what is only there to save time or to check; None if it cannot be opened at all.
fn open_somehow(place: &LogPlace) -> Option<Arc<SledLog>> {
    let folder = folder::current(&place.data_dir);
    let without: [fn(&Path); 3] = [
        |_| {},
        |folder| drop(recovery::remove_snapshots(folder)),
        |folder| drop(std::fs::remove_file(folder.join(folder::SETTINGS))),
    ];
    without.into_iter().find_map(|take_away| {
        take_away(&folder);
        recovery::while_locked(&place.clock, || place.open_log()).ok()
    })
}

/// All records and facts that can be read; the newest revision among them.
fn copy_records(old: &SledLog, new: &SledLog, promised: Option<&Promise>) -> Result<Revision, StoreError> {
    let mut newest = 1;
    let mut copy = |revision: Revision, record: Bytes| match record::retain(revision, &record, |_| true) {
        Ok(_) => {
            newest = newest.max(revision);
            new.append(revision, record.to_vec()).map(drop)
        }
        Err(_) => Ok(()),
    };
    // In order as far as that goes; then one by one, since a page that is damaged hides only what is on it.
    if old.replay(&mut copy).is_err() {
        let newest = promised.map_or(0, |promise| promise.revision).max(old.newest_revision().unwrap_or(0));
        for revision in 2..=newest {
            if let Ok(Some(record)) = old.read(revision) {
                copy(revision, record)?;
            }
        }
    }
    for (name, value) in old.facts("").unwrap_or_default() {
        new.set_fact(&name, Some(value))?;
    }
    Ok(newest)
}
