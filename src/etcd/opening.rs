//! Opening a store: what the log holds, held against what was promised.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::device::Device;
use super::folder;
use super::lease::Leases;
use super::log::Log;
use super::overflow::Overflow;
use super::promise::{self, Loss, Promise, PromiseFile, Tally};
use super::recent::Recent;
use super::recovery::{self, DirLock};
use super::salvage::{self, Recovery};
use super::segments::Segments;
use super::sled_log::{OPENER, SledLog};
use super::state::{self, State};
use super::sweep::Superfluous;
use super::writer::{COMPACT_REVISION, LEASE, NEWEST_LEASE};
use super::{Error, LeaseId, Options, Revision};
use clock::Clock;

/// What sled needs at least to go on: two of its segments.
const PROBE_BYTES: usize = 1 << 20;

/// An open store.
pub(super) struct Opened {
    pub state: State,
    /// The state's log; None in memory.
    pub sled: Option<Arc<SledLog>>,
    /// The number of the newest lease ever granted.
    pub newest_lease: u64,
    /// None in memory.
    pub home: Option<Home>,
    /// What was lost, and was done without.
    pub recovery: Option<Recovery>,
}

/// The data dir of an open store.
#[derive(Debug)]
pub(super) struct Home {
    pub place: Place,
    pub promises: PromiseFile,
}

/// A data dir, and how to use it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub data_dir: PathBuf,
    pub page_cache_bytes: u64,
    pub recent_bytes: usize,
    pub device: Arc<dyn Device>,
    pub lock: Arc<DirLock>,
    pub clock: Clock,
}

/// What a log holds.
pub(super) struct Found {
    pub state: State,
    pub newest_lease: u64,
    /// The records of revisions beyond the promised one, with their checksums.
    beyond: Vec<(Revision, u32)>,
    superfluous: Superfluous,
}

/// Opens the store, or makes it, on a thread whose panics become errors.
pub(super) fn open(options: &Options, clock: &Clock, device: Arc<dyn Device>) -> Result<Opened, Error> {
    let Some(data_dir) = &options.data_dir else {
        let overflow = Overflow::new(|| Ok(Arc::new(Segments::new(recovery::temporary_dir()?)?)));
        let (state, newest_lease) = read_state(Arc::new(overflow), options.recent_bytes, clock.elapsed())?;
        return Ok(Opened { state, sled: None, newest_lease, home: None, recovery: None });
    };
    std::thread::scope(|scope| {
        let open = || {
            let lock = recovery::while_locked(clock, || DirLock::acquire(data_dir))?;
            let place = Place {
                data_dir: data_dir.clone(),
                page_cache_bytes: options.page_cache_bytes,
                recent_bytes: options.recent_bytes,
                device,
                lock: Arc::new(lock),
                clock: clock.clone(),
            };
            place.open(options.recover)
        };
        run_quietly(scope, open)
    })
}

/// On a thread of which panics are not told.
fn run_quietly<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    attempt: impl FnOnce() -> Result<T, Error> + Send + 'scope,
) -> Result<T, Error> {
    let opener = std::thread::Builder::new().name(OPENER.into()).spawn_scoped(scope, attempt);
    let opener = opener.map_err(|error| Error::Io(error.to_string()))?;
    opener.join().unwrap_or_else(|_| Err(Error::Corrupt("what the files say makes no sense".into())))
}

impl Place {
    fn open(self, recover: bool) -> Result<Opened, Error> {
        let (promised, unknown) = match promise::read(&self.data_dir) {
            Err(Error::Corrupt(_)) if recover => (None, Some(salvage::unknown(&self)?)),
            Err(Error::Corrupt(damage)) => return Err(Error::Corrupt(recovery::advise(&damage))),
            read => (read?, None),
        };
        let (found, recovery) = match self.found_without_snapshots(promised.as_ref()) {
            Err(damage @ (Error::Lost(_) | Error::Corrupt(_))) if recover => {
                let recovery = salvage::take_what_is_there(&self, promised.as_ref(), &damage)?;
                (self.find(None)?, Some(recovery))
            }
            found => (found?, unknown),
        };
        let (mut found, sled) = found;
        let promise = found.state.promise(found.newest_lease);
        let promises = PromiseFile::create(&self.data_dir, &promise, &self.device)?;
        found.remove_superfluous(&*sled)?;
        let Found { state, newest_lease, .. } = found;
        folder::remove_others(&self.data_dir);
        self.sync_parents()?;
        let home = Some(Home { place: self, promises });
        Ok(Opened { state, sled: Some(sled), newest_lease, home, recovery })
    }

    /// What is there; if that makes no sense, without sled's snapshots, which only save time.
    fn found_without_snapshots(&self, promised: Option<&Promise>) -> Result<(Found, Arc<SledLog>), Error> {
        let log = folder::current(&self.data_dir);
        recovery::remove_unfinished_snapshots(&log)?;
        match self.find(promised) {
            Err(Error::Corrupt(damage)) if recovery::has_snapshots(&log) => {
                let copy = recovery::back_up(&self.data_dir)?;
                recovery::remove_snapshots(&log)?;
                let found = self.find(promised);
                let found = found.map_err(|error| recovery::describe(error, &self.data_dir, Some(&copy)))?;
                let copied_to = copy.display();
                tracing::warn!(%damage, %copied_to, "the store was damaged, and has been read without its snapshots");
                Ok(found)
            }
            found => found.map_err(|error| recovery::describe(error, &self.data_dir, None)),
        }
    }

    /// What is there, on the device, and no less than was promised.
    fn find(&self, promised: Option<&Promise>) -> Result<(Found, Arc<SledLog>), Error> {
        let log = recovery::while_locked(&self.clock, || self.open_log())?;
        let mut found = self.read(&log, promised)?;
        if let Some(first) = found.first_after_a_gap(promised) {
            // Nobody was told of these, and what came between did not get onto the disk.
            for (revision, _) in found.beyond.iter().filter(|(revision, _)| *revision >= first) {
                log.remove(*revision)?;
            }
            found = self.read(&log, promised)?;
        }
        // Readers are shown it, so it stays.
        log.sync_all()?;
        Ok((found, log))
    }

    /// The same in a store that is at work.
    pub(super) fn find_acknowledged(&self, promise: &Promise) -> Result<(Found, Arc<SledLog>), Error> {
        std::thread::scope(|scope| run_quietly(scope, || self.find(Some(promise))))
    }

    /// Whether there is room to write: asks by writing.
    pub(super) fn probe(&self) -> Result<(), Error> {
        let path = self.data_dir.join("probe");
        let written = std::fs::write(&path, vec![0; PROBE_BYTES]).and_then(|()| {
            let file = std::fs::File::open(&path)?;
            // What a file system promised without having it is found out here.
            file.sync_all()
        });
        let _ = std::fs::remove_file(&path);
        written.map_err(|error| Error::Io(format!("{}: {error}", path.display())))
    }

    /// An empty one, in a folder that does not count yet.
    pub(super) fn new_log(&self) -> Result<(PathBuf, Arc<SledLog>), Error> {
        let folder = folder::next(&self.data_dir)?;
        let log = self.open_log_in(&folder)?;
        Ok((folder, log))
    }

    pub(super) fn open_log(&self) -> Result<Arc<SledLog>, Error> {
        self.open_log_in(&folder::current(&self.data_dir))
    }

    fn open_log_in(&self, folder: &Path) -> Result<Arc<SledLog>, Error> {
        let log = SledLog::open(folder, self.page_cache_bytes, &self.device, self.lock.try_clone()?);
        log.map(Arc::new).map_err(|error| match error {
            Error::Locked { process, .. } => Error::Locked { data_dir: self.data_dir.clone(), process },
            error => error,
        })
    }

    fn read(&self, log: &Arc<SledLog>, promised: Option<&Promise>) -> Result<Found, Error> {
        let (mut found, compact_revision) = read_records(log.clone(), promised, self.clock.elapsed())?;
        if let Some(promised) = promised {
            found.compact(promised.compact_revision);
            found.hold_against(promised, compact_revision, &self.data_dir)?;
        }
        found.finish(self.recent_bytes);
        Ok(found)
    }

    /// The names of the folder and of what it lies in.
    fn sync_parents(&self) -> Result<(), Error> {
        for folder in self.data_dir.ancestors().skip(1).take(2).filter(|path| !path.as_os_str().is_empty()) {
            // What is not ours to open was there before.
            if let Err(error) = self.device.sync_dir(folder) {
                tracing::debug!(%error, folder = %folder.display(), "a folder's names are not synced");
            }
        }
        Ok(())
    }
}

/// What a log holds, and the number of the newest lease ever granted.
pub(super) fn read_state(
    log: Arc<dyn Log>,
    recent_bytes: usize,
    now: Duration,
) -> Result<(State, u64), Error> {
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
) -> Result<(Found, Revision), Error> {
    let fact = |name| Ok::<_, Error>(log.facts(name)?.first().map_or(0, |(_, value)| *value));
    let (compact_revision, newest_lease) = (fact(COMPACT_REVISION)?, fact(NEWEST_LEASE)?);
    let mut leases = Leases::default();
    for (name, milliseconds) in log.facts(LEASE)? {
        let lease = name[LEASE.len()..].parse().map_err(|_| Error::Corrupt("a lease is damaged".into()))?;
        leases.insert(LeaseId(lease), Duration::from_millis(milliseconds), now);
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
    };
    let mut beyond = Vec::new();
    let promised = promised.map_or(Revision::MAX, |promise| promise.revision);
    state::replay(&*log, &mut state, &mut |revision, checksum| {
        if revision > promised {
            beyond.push((revision, checksum));
        }
    })?;
    let superfluous = Superfluous::default();
    Ok((Found { state, newest_lease, beyond, superfluous }, compact_revision))
}

impl Found {
    pub(super) fn compact(&mut self, before: Revision) {
        let forgotten = self.state.index.compact(before);
        self.superfluous.extend(forgotten);
    }

    /// The first revision that was not promised and comes after one that is not there.
    fn first_after_a_gap(&self, promised: Option<&Promise>) -> Option<Revision> {
        let expected = promised?.revision + 1..;
        let mut found = self.beyond.iter().map(|(revision, _)| *revision).zip(expected);
        found.find(|(revision, expected)| revision != expected).map(|(revision, _)| revision)
    }

    /// Compacted as it was promised. Beyond the promise there may be more.
    fn hold_against(
        &self,
        promised: &Promise,
        compact_revision: Revision,
        data_dir: &Path,
    ) -> Result<(), Error> {
        let changes = self.promised_changes();
        let leases = self.state.leases.tally_upto(promised.newest_lease);
        let is_whole = changes == promised.changes
            && compact_revision >= promised.compact_revision
            && promised.leases.contains(&leases);
        if is_whole { Ok(()) } else { Err(Error::Lost(self.loss(promised, data_dir).into())) }
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
        let later = self.state.index.changes("", expected, usize::MAX).into_iter();
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
    pub(super) fn remove_superfluous(&mut self, log: &dyn Log) -> Result<(), Error> {
        while self.superfluous.remove(usize::MAX, log)? {}
        Ok(())
    }
}
