//! What was acknowledged, noted apart from the log, so that a log that has lost some of it is found out.
//!
//! sled takes what its checksums refuse for the end of its log, and goes on with less. So the newest revision
//! that was acknowledged, and what all must amount to that is to be found then, stand in a file of their own.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use sync::{Mutex, MutexGuard};

use super::device::Device;
use super::segments::write_at;
use super::{Revision, StoreError};

/// The file in the store's folder.
pub(super) const FILE: &str = "acknowledged";
const MAGIC: &[u8; 8] = b"kbrmack1";
/// One that is on the device, one that is on its way there, one that is written to.
const SLOTS: usize = 3;
/// Slots lie apart as far as the largest sectors are long: a torn write spoils one of them.
const SLOT_BYTES: u64 = 4096;
const NUMBERS: usize = 10;
const NOTE_BYTES: usize = MAGIC.len() + 8 * NUMBERS + 4;

/// What a set of changes or of leases amounts to, in whatever order they are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub count: u64,
    sum: u64,
}

impl Tally {
    pub(super) fn add(&mut self, number: u64, checksum: u32) {
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(mixed(number, checksum));
    }

    pub(super) fn remove(&mut self, number: u64, checksum: u32) {
        self.count = self.count.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(mixed(number, checksum));
    }
}

/// Spread over all bits (the finalizer of splitmix64), so that sums of different sets differ.
fn mixed(number: u64, checksum: u32) -> u64 {
    let spread = |bits: u64| {
        let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    };
    spread(spread(number.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ u64::from(checksum))
}

/// What is to be found when the store is opened. There may be more: writes that nobody got an answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Promise {
    /// The newest that was acknowledged.
    pub revision: Revision,
    pub compact_revision: Revision,
    /// The changes up to `revision` that a compaction at `compact_revision` leaves.
    pub changes: Tally,
    pub newest_lease: u64,
    /// The leases up to `newest_lease`: one of these two, which differ while a lease is being taken away.
    pub leases: [Tally; 2],
}

impl Promise {
    fn encode(&self, sequence: u64) -> [u8; NOTE_BYTES] {
        let [leases, or] = self.leases;
        let of_changes = [self.revision, self.compact_revision, self.changes.count, self.changes.sum];
        let of_leases = [self.newest_lease, leases.count, leases.sum, or.count, or.sum];
        let mut bytes = [0; NOTE_BYTES];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        for (at, number) in [sequence].iter().chain(&of_changes).chain(&of_leases).enumerate() {
            bytes[MAGIC.len() + 8 * at..][..8].copy_from_slice(&number.to_be_bytes());
        }
        let checksum = crc32fast::hash(&bytes[..NOTE_BYTES - 4]);
        bytes[NOTE_BYTES - 4..].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// With its sequence number; None if that is no note, or one that was torn.
    fn decode(bytes: &[u8]) -> Option<(u64, Promise)> {
        let bytes = bytes.get(..NOTE_BYTES)?;
        let (noted, checksum) = bytes.split_at(NOTE_BYTES - 4);
        if !noted.starts_with(MAGIC) || crc32fast::hash(noted).to_be_bytes() != checksum {
            return None;
        }
        let number = |at: usize| {
            let start = MAGIC.len() + 8 * at;
            u64::from_be_bytes(noted[start..start + 8].try_into().expect("eight bytes"))
        };
        let tally = |at| Tally { count: number(at), sum: number(at + 1) };
        let promise = Promise {
            revision: number(1),
            compact_revision: number(2),
            changes: tally(3),
            newest_lease: number(5),
            leases: [tally(6), tally(8)],
        };
        Some((number(0), promise))
    }
}

/// What was noted last; None if there is no such file, as in a folder of an earlier version.
pub(super) fn read(dir: &Path) -> Result<Option<Promise>, StoreError> {
    let path = dir.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure(&path, &error)),
    };
    let slots = bytes.chunks(SLOT_BYTES as usize).filter_map(Promise::decode);
    let newest = slots.max_by_key(|(sequence, _)| *sequence).map(|(_, promise)| promise);
    let unreadable = || StoreError::Corrupt(format!("{} does not say what was acknowledged", path.display()));
    newest.map(Some).ok_or_else(unreadable)
}

/// The file, open for notes. A note is written before the answers go out, so that it survives the process; it
/// is synced behind them, because a second sync before each answer would double the time that it takes. So
/// after a power cut the note may be older than what was acknowledged, by what one sync takes: what came
/// after is there, but nobody would know if it were not.
#[derive(Debug)]
pub(super) struct PromiseFile {
    notes: Arc<Notes>,
    /// Says that there is something to sync. None where nothing is synced.
    wake: Option<SyncSender<()>>,
    syncer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Notes {
    file: File,
    path: PathBuf,
    device: Arc<dyn Device>,
    slots: Mutex<Slots>,
    /// Held by whoever syncs.
    syncing: Mutex<()>,
}

#[derive(Debug)]
struct Slots {
    sequence: u64,
    /// The slot that was written last, and its number.
    newest: (usize, u64),
    synced: (usize, u64),
    syncing: Option<usize>,
    /// Why a note could not be synced.
    failed: Option<StoreError>,
}

impl PromiseFile {
    /// Begins the file anew with one note, on the device when this returns.
    pub(super) fn create(
        dir: &Path,
        promise: &Promise,
        device: &Arc<dyn Device>,
    ) -> Result<PromiseFile, StoreError> {
        let (path, unfinished) = (dir.join(FILE), dir.join(format!("{FILE}.new")));
        let create = || {
            let mut options = File::options();
            let file = options.read(true).write(true).create(true).truncate(true).open(&unfinished)?;
            file.set_len(SLOT_BYTES * SLOTS as u64)?;
            for slot in (0..SLOTS).rev() {
                // All blocks are there from now on: a note needs no room on the disk.
                write_at(&file, &[0; SLOT_BYTES as usize], SLOT_BYTES * slot as u64)?;
            }
            write_at(&file, &promise.encode(1), 0)?;
            device.sync_file(&file, &unfinished)?;
            std::fs::rename(&unfinished, &path)?;
            device.sync_dir(dir)?;
            Ok(file)
        };
        let file = create().map_err(|error: io::Error| failure(&path, &error))?;
        let slots = Slots { sequence: 1, newest: (0, 1), synced: (0, 1), syncing: None, failed: None };
        let notes =
            Notes { file, path, device: device.clone(), slots: Mutex::new(slots), syncing: Mutex::new(()) };
        PromiseFile::start(Arc::new(notes))
    }

    fn start(notes: Arc<Notes>) -> Result<PromiseFile, StoreError> {
        if !notes.device.is_safe() {
            return Ok(PromiseFile { notes, wake: None, syncer: None });
        }
        let (wake, woken) = sync_channel(1);
        let of_thread = notes.clone();
        let thread = std::thread::Builder::new().name("etcd-promise".into());
        let syncer = thread.spawn(move || while woken.recv().is_ok_and(|()| of_thread.sync()) {});
        let syncer = syncer.map_err(|error| failure(&notes.path, &error))?;
        Ok(PromiseFile { notes, wake: Some(wake), syncer: Some(syncer) })
    }

    /// Notes it. Survives the process from now on, and soon the power.
    pub(super) fn note(&self, promise: &Promise) -> Result<(), StoreError> {
        self.notes.write(promise)?;
        // Full: the thread has yet to look.
        match self.wake.as_ref().map(|wake| wake.try_send(())) {
            Some(Err(TrySendError::Disconnected(()))) => self.notes.state(),
            _ => Ok(()),
        }
    }

    /// Notes it, and returns once that is on the device: before something is taken away that was promised.
    pub(super) fn note_durably(&self, promise: &Promise) -> Result<(), StoreError> {
        self.notes.write(promise)?;
        if self.notes.sync() { Ok(()) } else { self.notes.state() }
    }
}

impl Drop for PromiseFile {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(syncer) = self.syncer.take() {
            // It ends with the sync it is at, which leaves no note behind.
            let _ = syncer.join();
        }
    }
}

impl Notes {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock()
    }

    fn state(&self) -> Result<(), StoreError> {
        self.lock().failed.clone().map_or(Ok(()), Err)
    }

    fn write(&self, promise: &Promise) -> Result<(), StoreError> {
        let mut slots = self.lock();
        if let Some(error) = &slots.failed {
            return Err(error.clone());
        }
        let slot = slots.writable();
        slots.sequence += 1;
        slots.newest = (slot, slots.sequence);
        let bytes = promise.encode(slots.sequence);
        write_at(&self.file, &bytes, SLOT_BYTES * slot as u64).map_err(|error| failure(&self.path, &error))
    }

    /// Gets what was noted last onto the device; false if it failed.
    fn sync(&self) -> bool {
        let _alone = self.syncing.lock();
        let mut slots = self.lock();
        let newest = slots.newest;
        if slots.synced.1 >= newest.1 {
            return true;
        }
        slots.syncing = Some(newest.0);
        drop(slots);
        let synced = self.device.sync_file(&self.file, &self.path);
        let mut slots = self.lock();
        slots.syncing = None;
        match synced {
            Ok(()) => slots.synced = newest,
            Err(error) => slots.failed = Some(failure(&self.path, &error)),
        }
        slots.failed.is_none()
    }
}

impl Slots {
    /// The newest again, unless somebody relies on it: the one on the device stays until another is there.
    fn writable(&self) -> usize {
        let is_free = |slot: &usize| *slot != self.synced.0 && Some(*slot) != self.syncing;
        let candidates = std::iter::once(self.newest.0).chain(0..SLOTS);
        candidates.into_iter().find(is_free).expect("of three, two are in use")
    }
}

fn failure(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io(format!("{}: {error}", path.display()))
}
