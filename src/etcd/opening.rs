//! Opening a store: what the log holds, held against what was promised.

use std::path::Path;
use std::sync::Arc;

use super::device::{self, Device};
use super::folder;
use super::found::{self, FoundStore};
use super::overflow::Overflow;
use super::place::LogPlace;
use super::promise::{self, Promise, PromiseFile};
use super::recovery::{self, DirLock};
use super::salvage::{self, Recovery};
use super::segments::LogSegments;
use super::sled_log::SledLog;
use super::state::State;
use super::{Options, StoreError};
use clock::Clock;

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
    pub place: LogPlace,
    pub promises: PromiseFile,
}

/// Opens the store, or makes it, on a thread whose panics become errors.
pub(super) fn open(options: &Options, clock: &Clock, device: Arc<dyn Device>) -> Result<Opened, StoreError> {
    let Some(data_dir) = &options.data_dir else {
        let overflow = Overflow::new(|| Ok(Arc::new(LogSegments::new(recovery::temporary_dir()?)?)));
        let (state, newest_lease) =
            found::read_state(Arc::new(overflow), options.recent_bytes, clock.elapsed())?;
        return Ok(Opened { state, sled: None, newest_lease, home: None, recovery: None });
    };
    std::thread::scope(|scope| {
        let open = || {
            let lock = recovery::while_locked(clock, || DirLock::acquire(data_dir))?;
            let place = LogPlace {
                data_dir: data_dir.clone(),
                page_cache_bytes: options.page_cache_bytes,
                recent_bytes: options.recent_bytes,
                device,
                lock: Arc::new(lock),
                clock: clock.clone(),
            };
            open_place(place, options.recover)
        };
        found::run_quietly(scope, open)
    })
}

/// Makes a store in a folder that has none, with what `write` writes; on the device when this returns. A
/// failure leaves a folder that was not there not there.
pub(super) fn fill(
    data_dir: &Path,
    clock: &Clock,
    write: impl FnOnce(&SledLog) -> Result<(), StoreError> + Send,
) -> Result<(), StoreError> {
    if folder::is_used(data_dir) {
        return Err(StoreError::Io(format!("{}: there is a store in it already", data_dir.display())));
    }
    let was_there = data_dir.exists();
    let options = Options::default();
    std::thread::scope(|scope| {
        let fill = || {
            let lock = recovery::while_locked(clock, || DirLock::acquire(data_dir))?;
            let place = LogPlace {
                data_dir: data_dir.to_owned(),
                page_cache_bytes: options.page_cache_bytes,
                recent_bytes: options.recent_bytes,
                device: device::of(false),
                lock: Arc::new(lock),
                clock: clock.clone(),
            };
            let log = place.open_log()?;
            write(&log)?;
            log.sync_all()?;
            place.sync_parents()
        };
        let filled = found::run_quietly(scope, fill);
        if filled.is_err() && !was_there {
            let _ = std::fs::remove_dir_all(data_dir);
        }
        filled
    })
}

fn open_place(place: LogPlace, recover: bool) -> Result<Opened, StoreError> {
    let (promised, unknown) = match promise::read(&place.data_dir) {
        Err(StoreError::Corrupt(_)) if recover => (None, Some(salvage::unknown(&place)?)),
        Err(StoreError::Corrupt(damage)) => return Err(StoreError::Corrupt(recovery::advise(&damage))),
        read => (read?, None),
    };
    let (found, recovery) = match find_without_snapshots(&place, promised.as_ref()) {
        Err(damage @ (StoreError::Lost(_) | StoreError::Corrupt(_))) if recover => {
            let recovery = salvage::take_what_is_there(&place, promised.as_ref(), &damage)?;
            (found::find(&place, None)?, Some(recovery))
        }
        found => (found?, unknown),
    };
    let (mut found, sled) = found;
    let promise = found.state.promise(found.newest_lease);
    let promises = PromiseFile::create(&place.data_dir, &promise, &place.device)?;
    found.remove_superfluous(&*sled)?;
    let FoundStore { state, newest_lease, .. } = found;
    folder::remove_others(&place.data_dir);
    place.sync_parents()?;
    let home = Some(Home { place, promises });
    Ok(Opened { state, sled: Some(sled), newest_lease, home, recovery })
}

/// What is there; if that makes no sense, without sled's snapshots, which only save time.
fn find_without_snapshots(
    place: &LogPlace,
    promised: Option<&Promise>,
) -> Result<(FoundStore, Arc<SledLog>), StoreError> {
    let log = folder::current(&place.data_dir);
    recovery::remove_unfinished_snapshots(&log)?;
    match found::find(place, promised) {
        Err(StoreError::Corrupt(damage)) if recovery::has_snapshots(&log) => {
            let copy = recovery::back_up(&place.data_dir)?;
            recovery::remove_snapshots(&log)?;
            let found = found::find(place, promised);
            let found = found.map_err(|error| recovery::describe(error, &place.data_dir, Some(&copy)))?;
            let copied_to = copy.display();
            tracing::warn!(%damage, %copied_to, "the store was damaged, and has been read without its snapshots");
            Ok(found)
        }
        found => found.map_err(|error| recovery::describe(error, &place.data_dir, None)),
    }
}
