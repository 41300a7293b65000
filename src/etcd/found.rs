//! What the log of a store holds, held against what was promised.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::facts::{COMPACT_REVISION, LEASE, LEASE_NAME, NEWEST_LEASE};
use super::lease::Leases;
use super::log::Log;
use super::loss::Loss;
use super::place::LogPlace;
use super::promise::{Promise, Tally};
use super::recent::Recent;
use super::recovery;
use super::sled_log::{OPENER, SledLog};
use super::state::{self, State};
use super::sweep::Superfluous;
use super::{KeySpan, LeaseId, Revision, StoreError};

/// What a log holds.
pub(super) struct FoundStore {
    pub state: State,
    pub newest_lease: u64,
    /// The records of revisions beyond the promised one, with their checksums.
    beyond: Vec<(Revision, u32)>,
    superfluous: Superfluous,
}

/// What is there, on the device, and no less than was promised.
pub(super) fn find(
    place: &LogPlace,
    promised: Option<&Promise>,
) -> Result<(FoundStore, Arc<SledLog>), StoreError> {
    let log = recovery::while_locked(&place.clock, || place.open_log())?;
    let mut found = read(place, &log, promised)?;
    if let Some(first) = found.first_after_a_gap(promised) {
        // Nobody was told of these, and what came between did not get onto the disk.
        for (revision, _) in found.beyond.iter().filter(|(revision, _)| *revision >= first) {
            log.remove(*revision)?;
        }
        found = read(place, &log, promised)?;
    }
    // Readers are shown it, so it stays.
    log.sync_all()?;
    Ok((found, log))
}

/// What is there in a store that is at work, and no less than was acknowledged.
pub(super) fn find_acknowledged(
    place: &LogPlace,
    promise: &Promise,
) -> Result<(FoundStore, Arc<SledLog>), StoreError> {
    std::thread::scope(|scope| run_quietly(scope, || find(place, Some(promise))))
}

/// On a thread of which panics are not told.
pub(super) fn run_quietly<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    attempt: impl FnOnce() -> Result<T, StoreError> + Send + 'scope,
) -> Result<T, StoreError> {
    let opener = std::thread::Builder::new().name(OPENER.into()).spawn_scoped(scope, attempt);
    let opener = opener.map_err(|error| StoreError::Io(error.to_string()))?;
    opener.join().unwrap_or_else(|_| Err(StoreError::Corrupt("what the files say makes no sense".into())))
}

fn read(place: &LogPlace, log: &Arc<SledLog>, promised: Option<&Promise>) -> Result<FoundStore, StoreError> {
    let (mut found, compact_revision) = read_records(log.clone(), promised, place.clock.elapsed())?;
    if let Some(promised) = promised {
        found.compact(promised.compact_revision);
        found.hold_against(promised, compact_revision, &place.data_dir)?;
    }
    found.finish(place.recent_bytes);
    Ok(found)
}

/// What a log holds, and the number of the newest lease ever granted.
pub(super) fn read_state(
    log: Arc<dyn Log>,
    recent_bytes: usize,
    now: Duration,
) -> Result<(State, u64), StoreError> {
    let (mut found, _) = read_records(log.clone(), None, now)?;
    found.finish(recent_bytes);
    found.remove_superfluous(&*log)?;
    Ok((found.state, found.newest_lease))
}

/// Everything, nothing compacted yet; and the compaction that the log knows of.
pub(super) fn read_records(
    log: Arc<dyn Log>,
    promised: Option<&Promise>,
    now: Duration,
) -> Result<(FoundStore, Revision), StoreError> {
    let fact = |name| Ok::<_, StoreError>(log.facts(name)?.first().map_or(0, |(_, value)| *value));
    let (compact_revision, newest_lease) = (fact(COMPACT_REVISION)?, fact(NEWEST_LEASE)?);
    let mut leases = Leases::default();
    for (name, milliseconds) in log.facts(LEASE)? {
        let lease =
            name[LEASE.len()..].parse().map_err(|_| StoreError::Corrupt("a lease is damaged".into()))?;
        leases.insert(LeaseId(lease), Duration::from_millis(milliseconds), now);
    }
    for (fact, name) in log.facts(LEASE_NAME)? {
        let lease =
            fact[LEASE_NAME.len()..].parse().map_err(|_| StoreError::Corrupt("a lease is damaged".into()))?;
        leases.set_name(LeaseId(lease), name);
    }
    let mut state = State {
        // Of an empty log: 1, as of an empty etcd. All after a compaction may be deletions, and gone.
        revision: compact_revision.max(1),
        compact_revision,
        index: Default::default(),
        recent: Recent::new(0, 0),
        leases,
        watchers: Default::default(),
        log: Some(log.clone()),
        failed: None,
        past: Weak::new(),
    };
    let mut beyond = Vec::new();
    let promised = promised.map_or(Revision::MAX, |promise| promise.revision);
    state::replay(&*log, &mut state, &mut |revision, checksum| {
        if revision > promised {
            beyond.push((revision, checksum));
        }
    })?;
    let superfluous = Superfluous::default();
    Ok((FoundStore { state, newest_lease, beyond, superfluous }, compact_revision))
}

impl FoundStore {
    pub(super) fn compact(&mut self, before: Revision) {
        let forgotten = self.state.index.compact(before);
        self.superfluous.extend(forgotten);
    }

    /// The first revision that was not promised and comes after one that is not there.
    fn first_after_a_gap(&self, promised: Option<&Promise>) -> Option<Revision> {
        let expected = promised?.revision + 1..;
        let mut revisions: Vec<Revision> = self.beyond.iter().map(|(revision, _)| *revision).collect();
        revisions.dedup();
        let mut found = revisions.into_iter().zip(expected);
        found.find(|(revision, expected)| revision != expected).map(|(revision, _)| revision)
    }

    /// Compacted as it was promised. Beyond the promise there may be more.
    fn hold_against(
        &self,
        promised: &Promise,
        compact_revision: Revision,
        data_dir: &Path,
    ) -> Result<(), StoreError> {
        let changes = self.promised_changes();
        let leases = self.state.leases.tally_upto(promised.newest_lease);
        let is_whole = changes == promised.changes
            && compact_revision >= promised.compact_revision
            && promised.leases.contains(&leases);
        if is_whole { Ok(()) } else { Err(StoreError::Lost(self.loss(promised, data_dir).into())) }
    }

    fn promised_changes(&self) -> Tally {
        let mut changes = self.state.index.tally();
        self.beyond.iter().for_each(|(revision, checksum)| changes.remove(*revision, *checksum));
        changes
    }

    /// What of the promise is not there.
    pub(super) fn loss(&self, promised: &Promise, data_dir: &Path) -> Loss {
        let changes = self.promised_changes();
        let mut gone = Vec::new();
        // Each revision since the compaction is one change, and the first of all is 2.
        let mut expected = promised.compact_revision.max(1) + 1;
        let later = self.state.index.changes(&KeySpan::ALL, expected, usize::MAX).into_iter();
        let later = later.map(|(revision, _)| revision).take_while(|revision| *revision <= promised.revision);
        for revision in later.chain([promised.revision + 1]) {
            if revision > expected {
                gone.push(expected..=revision - 1);
            }
            expected = revision + 1;
        }
        let reached = gone.first().map_or(promised.revision, |range| range.start() - 1);
        let newer: u64 = gone.iter().map(|range| range.end() - range.start() + 1).sum();
        let older = promised.changes.count.saturating_sub(changes.count).saturating_sub(newer);
        Loss { data_dir: data_dir.to_owned(), promised: promised.revision, reached, gone, older }
    }

    /// Compacted as the log says. What that leaves superfluous is still there.
    fn finish(&mut self, recent_bytes: usize) {
        self.state.recent = Recent::new(self.state.revision + 1, recent_bytes);
        self.compact(self.state.compact_revision);
    }

    /// What a compaction had not got to when the store was closed goes now: not before it is noted that
    /// nobody is promised it any more, or a crash in between would look like a loss.
    pub(super) fn remove_superfluous(&mut self, log: &dyn Log) -> Result<(), StoreError> {
        while self.superfluous.remove(usize::MAX, log)? {}
        Ok(())
    }
}
