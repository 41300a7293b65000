//! What the writer does beside writing: compaction, giving room back, and starting to write again after a
//! disk that failed.

use std::sync::Arc;

use super::facts::{COMPACT_REVISION, StoreFacts, lease_fact, lease_name_fact, set_facts};
use super::found;
use super::log::{FailedLog, Log};
use super::opening::Home;
use super::promise::{self, Promise, PromiseFile};
use super::rewrite::Rewrite;
use super::sled_log::SledLog;
use super::state::State;
use super::writer::Writer;
use super::{KeySpan, LeaseId, Revision, StoreError};

/// How many superseded records one step of a compaction removes, so that writes wait only that long.
const SWEEP_RECORDS: usize = 64;
/// How many times the size that it had when it was new the log may have before it is written anew.
const GROWTH: u64 = 4;

impl Writer {
    pub(super) fn compact(&mut self, before: Revision) -> Result<(), StoreError> {
        let log = self.log()?;
        let (compact_revision, mut promise) = {
            let state = self.shared.read();
            if before > state.revision {
                return Err(StoreError::FutureRevision { requested: before, current: state.revision });
            }
            (state.compact_revision, state.promise(self.newest_lease))
        };
        if before <= compact_revision {
            return Ok(());
        }
        // First it is written down, then it is so: a restart must not bring back what was refused before.
        let written = log.set_fact(COMPACT_REVISION, Some(before));
        written.map_err(|error| self.fail(error))?;
        self.flush(&*log)?;
        let mut state = self.shared.write();
        state.compact_revision = before;
        let forgotten = state.index.compact(before);
        promise.compact_revision = before;
        promise.changes = state.index.tally();
        drop(state);
        self.superfluous.extend(forgotten);
        // Before anything goes that was promised.
        self.promise_durably(&promise)
    }

    /// Whether forks read the log. As long as they do, what compactions make superfluous stays in it, and
    /// goes with the first compaction after them.
    fn is_forked(&self) -> bool {
        self.shared.read().past.strong_count() > 0
    }

    /// Removes a few of the records that nobody can see any more; whether there are more.
    pub(super) fn sweep(&mut self) -> Result<bool, StoreError> {
        let log = self.log()?;
        if self.is_forked() {
            return Ok(false);
        }
        self.superfluous.remove(SWEEP_RECORDS, &*log).map_err(|error| self.fail(error))
    }

    /// Writes the log anew, a little at a time, if it has grown much; whether there is more to do. That this
    /// fails is no reason to stop: the log is as good as before.
    pub(super) fn shrink(&mut self) -> Result<bool, StoreError> {
        let log = self.log()?;
        if self.is_forked() {
            // What a copy has begun with is perhaps no longer all.
            self.rewrite = None;
            return Ok(false);
        }
        match self.rewrite_a_little(&log) {
            Ok(more) => Ok(more),
            Err(error) => {
                tracing::warn!(%error, "the data dir cannot be written anew: it stays as large as it is");
                self.rewrite = None;
                Ok(false)
            }
        }
    }

    fn rewrite_a_little(&mut self, log: &Arc<dyn Log>) -> Result<bool, StoreError> {
        let Some(home) = &self.home else { return Ok(false) };
        let Some(mut rewrite) = self.rewrite.take() else {
            let bound = self.rewrite_bytes.max(self.new_bytes.saturating_mul(GROWTH));
            if log.bytes_on_disk() <= bound {
                return Ok(false);
            }
            let records = self.shared.read().index.changes(&KeySpan::ALL, 0, usize::MAX);
            self.rewrite = Some(Rewrite::begin(&home.place, records)?);
            return Ok(true);
        };
        if rewrite.step(&**log)? {
            self.rewrite = Some(rewrite);
            return Ok(true);
        }
        let rest = rewrite.rest(&self.shared.read());
        let new = rewrite.finish(&home.place, rest, &**log, self.newest_lease)?;
        self.new_bytes = new.bytes_on_disk();
        // None of them has come along.
        self.superfluous = Default::default();
        self.replace_log(new);
        Ok(false)
    }

    /// From here on everybody reads and writes there. Who reads the old one finds it whole until done.
    fn replace_log(&mut self, new: Arc<SledLog>) {
        let mut state = self.shared.write();
        let old = state.log.replace(new.clone());
        drop(state);
        if let Some(old) = self.sled.replace(new) {
            old.give_up();
        }
        drop(old);
    }

    /// Starts to write again after a failed write: reads back what is on disk, and holds it against what was
    /// acknowledged. What nobody was told of goes.
    pub(super) fn heal(&mut self) -> Result<(), StoreError> {
        let Some(failed) = self.shared.read().failed.clone() else { return Ok(()) };
        // Without files of its own there is nothing to read back: it stays as it is.
        let Some(mut home) = self.home.take() else { return Err(StoreError::Closed) };
        let healed = self.reopen(&mut home, failed);
        self.home = Some(home);
        healed
    }

    /// What is promised from here on. A compaction that failed in the middle may be on the disk: then it is
    /// done.
    fn promise_found(&self, found: &State) -> Promise {
        let mut state = self.shared.write();
        if found.compact_revision > state.compact_revision {
            state.compact_revision = found.compact_revision;
            let forgotten = state.index.compact(found.compact_revision);
            drop(forgotten);
        }
        state.promise(self.newest_lease)
    }

    fn reopen(&mut self, home: &mut Home, failed: StoreError) -> Result<(), StoreError> {
        home.place.probe()?;
        self.rewrite = None;
        self.sled = None;
        let old = self.shared.write().replace_log(Arc::new(FailedLog(failed)));
        drop(old);
        let mut promise = self.shared.read().promise(self.newest_lease);
        if let Some(noted) = promise::read(&home.place.data_dir)? {
            // A lease that was being taken away may be gone.
            promise.leases[1] = noted.leases[1];
        }
        let (mut found, sled) = found::find_acknowledged(&home.place, &promise)?;
        let promise = self.promise_found(&found.state);
        for revision in promise.revision + 1..=found.state.revision {
            sled.remove(revision)?;
        }
        let gone: Vec<LeaseId> = {
            let state = self.shared.read();
            let leases = found.state.leases.all().map(|(lease, _)| lease);
            leases.filter(|lease| !state.leases.contains(*lease)).collect()
        };
        for lease in gone {
            sled.set_fact(&lease_fact(lease), None)?;
            sled.set_fact(&lease_name_fact(lease), None)?;
        }
        let facts = StoreFacts::of(&self.shared.read());
        set_facts(&*sled, &facts, self.newest_lease)?;
        sled.flush()?;
        home.promises = PromiseFile::create(&home.place.data_dir, &promise, &home.place.device)?;
        if !self.is_forked() {
            found.remove_superfluous(&*sled)?;
        }
        self.superfluous = Default::default();
        self.sled = Some(sled.clone());
        let mut state = self.shared.write();
        drop(state.replace_log(sled));
        state.failed = None;
        drop(state);
        tracing::warn!("the store takes writes again");
        Ok(())
    }
}
