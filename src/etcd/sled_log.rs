//! The log in sled. The only file that knows sled.

use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use bytes::Bytes;
use sync::{Mutex, MutexGuard};

use super::device::Device;
use super::folder;
use super::log::Log;
use super::recovery::{self, DirLock};
use super::{Revision, StoreError};

/// How many bytes of records are written between two syncs at most. sled uses a part of its file anew as soon
/// as it believes that what supersedes it is safe; in so much it does not come round to that.
const UNSYNCED_BYTES: usize = 256 << 10;
const RECORDS: u8 = b'r';
const FACTS: u8 = b'f';

/// Records under `r` and the revision, big-endian, so that they lie in revision order; facts under `f` and
/// their name.
///
/// One `insert` is one record. sled recovers a prefix of what one thread wrote, so no batch is needed to keep
/// records together; and its batches take a lock that all sleds of the process share.
#[derive(Debug)]
pub(super) struct SledLog {
    /// None only while being dropped.
    db: Option<sled::Db>,
    folder: PathBuf,
    device: Arc<dyn Device>,
    /// sled's file once more: a sync through any descriptor is one of the file.
    data: File,
    unsynced: Mutex<Unsynced>,
    /// The folder goes with the last reader.
    is_obsolete: AtomicBool,
    /// Released after sled has closed its files.
    _lock: DirLock,
}

#[derive(Debug, Default)]
struct Unsynced {
    bytes: usize,
    /// sled's files of large values have numbers that go up: those up to here are on the device.
    blobs_upto: Option<i64>,
}

impl SledLog {
    /// Opens what is in the folder, or makes it. `parent` is locked, and is named if sled's own file is, too.
    pub(super) fn open(
        folder: &Path,
        page_cache_bytes: u64,
        device: &Arc<dyn Device>,
        lock: DirLock,
    ) -> Result<SledLog, StoreError> {
        silence_sled();
        let config = sled::Config::new()
            .path(folder)
            .cache_capacity(page_cache_bytes.max(256))
            // The writer flushes when it has to.
            .flush_every_ms(None);
        let locked = || StoreError::Locked { data_dir: folder.to_owned(), process: None };
        let db = caught(|| {
            config.open().map_err(|error| match error {
                sled::Error::Io(error) if error.to_string().contains("could not acquire lock") => locked(),
                error => failure(error),
            })
        })?;
        recovery::make_private(folder);
        let path = folder.join(folder::DATA);
        let data = File::options().read(true).write(true).open(&path).map_err(|error| io(&path, &error))?;
        let (unsynced, is_obsolete) = (Mutex::default(), AtomicBool::new(false));
        let (folder, device) = (folder.to_owned(), device.clone());
        Ok(SledLog { db: Some(db), folder, device, data, unsynced, is_obsolete, _lock: lock })
    }

    /// Gets all that is here onto the device, names included.
    pub(super) fn sync_all(&self) -> Result<(), StoreError> {
        *self.unsynced() = Unsynced::default();
        self.flush()?;
        for entry in fs::read_dir(&self.folder).map_err(|error| io(&self.folder, &error))?.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                self.sync_file(&entry.path())?;
            }
        }
        for folder in [&self.folder.join(folder::BLOBS), &self.folder] {
            self.device.sync_dir(folder).map_err(|error| io(folder, &error))?;
        }
        Ok(())
    }

    /// Another log has taken its place.
    pub(super) fn give_up(&self) {
        self.is_obsolete.store(true, Ordering::SeqCst);
    }

    fn db(&self) -> &sled::Db {
        self.db.as_ref().expect("only dropping takes it")
    }

    fn unsynced(&self) -> MutexGuard<'_, Unsynced> {
        self.unsynced.lock()
    }

    /// Large values lie in files that sled writes before it mentions them, and never syncs.
    fn sync_blobs(&self) -> Result<(), StoreError> {
        let dir = self.folder.join(folder::BLOBS);
        let upto = self.unsynced().blobs_upto;
        let number = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().parse::<i64>().ok();
        let entries = fs::read_dir(&dir).map_err(|error| io(&dir, &error))?.flatten();
        let is_new = |number: &i64| upto.is_none_or(|upto| *number > upto);
        let new: Vec<i64> = entries.filter_map(|entry| number(&entry)).filter(is_new).collect();
        let Some(newest) = new.iter().max() else { return Ok(()) };
        for number in &new {
            self.sync_file(&dir.join(number.to_string()))?;
        }
        self.device.sync_dir(&dir).map_err(|error| io(&dir, &error))?;
        self.unsynced().blobs_upto = Some(*newest);
        Ok(())
    }

    /// A file that sled has removed meanwhile need not be anywhere.
    fn sync_file(&self, path: &Path) -> Result<(), StoreError> {
        match File::open(path).and_then(|file| self.device.sync_file(&file, path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self::io(path, &error)),
            _ => Ok(()),
        }
    }
}

impl SledLog {
    /// The newest record, as far as its key can be read.
    pub(super) fn newest_revision(&self) -> Option<Revision> {
        let newest = caught(|| Ok(self.db().scan_prefix([RECORDS]).next_back())).ok().flatten()?;
        let (key, _) = newest.ok()?;
        Some(u64::from_be_bytes(key[1..].try_into().ok()?))
    }
}

impl Log for SledLog {
    fn is_kept(&self) -> bool {
        true
    }

    fn append(&self, revision: Revision, record: Vec<u8>) -> Result<Bytes, StoreError> {
        let is_much = {
            let mut unsynced = self.unsynced();
            unsynced.bytes += record.len();
            unsynced.bytes > UNSYNCED_BYTES
        };
        if is_much {
            self.flush()?;
        }
        let record = sled::IVec::from(record);
        let inserted = caught(|| self.db().insert(record_key(revision), record.clone()).map_err(failure));
        inserted.map(|_| Bytes::from_owner(record))
    }

    fn read(&self, revision: Revision) -> Result<Option<Bytes>, StoreError> {
        let record = caught(|| self.db().get(record_key(revision)).map_err(failure))?;
        Ok(record.map(Bytes::from_owner))
    }

    fn replace(&self, revision: Revision, record: Vec<u8>) -> Result<(), StoreError> {
        self.append(revision, record).map(drop)
    }

    fn remove(&self, revision: Revision) -> Result<(), StoreError> {
        caught(|| self.db().remove(record_key(revision)).map(drop).map_err(failure))
    }

    fn set_fact(&self, name: &str, value: Option<u64>) -> Result<(), StoreError> {
        let key = [&[FACTS], name.as_bytes()].concat();
        caught(|| match value {
            Some(value) => self.db().insert(key, &value.to_be_bytes()).map(drop).map_err(failure),
            None => self.db().remove(key).map(drop).map_err(failure),
        })
    }

    fn facts(&self, prefix: &str) -> Result<Vec<(String, u64)>, StoreError> {
        let read = |fact: sled::Result<(sled::IVec, sled::IVec)>| {
            let (key, value) = fact.map_err(failure)?;
            let value =
                <[u8; 8]>::try_from(&*value).map_err(|_| StoreError::Corrupt("a fact is damaged".into()))?;
            Ok((String::from_utf8_lossy(&key[1..]).into_owned(), u64::from_be_bytes(value)))
        };
        let prefix = [&[FACTS], prefix.as_bytes()].concat();
        caught(|| self.db().scan_prefix(prefix).map(read).collect())
    }

    fn flush(&self) -> Result<(), StoreError> {
        caught(|| self.db().flush().map(drop).map_err(failure))?;
        if self.device.is_safe() {
            self.sync_blobs()?;
            let path = self.folder.join(folder::DATA);
            self.device.sync_file(&self.data, &path).map_err(|error| io(&path, &error))?;
        }
        self.unsynced().bytes = 0;
        Ok(())
    }

    fn replay(
        &self,
        visit: &mut dyn FnMut(Revision, Bytes) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut records = caught(|| Ok(self.db().scan_prefix([RECORDS])))?;
        while let Some(record) = caught(|| Ok(records.next()))? {
            let (key, record) = record.map_err(failure)?;
            let revision = <[u8; 8]>::try_from(&key[1..]);
            let revision = revision.map_err(|_| StoreError::Corrupt("a revision is damaged".into()))?;
            visit(u64::from_be_bytes(revision), Bytes::from_owner(record))?;
        }
        Ok(())
    }

    fn bytes_on_disk(&self) -> u64 {
        folder::bytes(&self.folder)
    }
}

impl Drop for SledLog {
    fn drop(&mut self) {
        let db = self.db.take();
        // It asserts that its last sync succeeds.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(db)));
        if self.is_obsolete.load(Ordering::SeqCst) {
            folder::remove(&self.folder);
        }
    }
}

fn record_key(revision: Revision) -> [u8; 9] {
    let mut key = [RECORDS; 9];
    key[1..].copy_from_slice(&revision.to_be_bytes());
    key
}

/// sled asserts where it should answer, when what it reads makes no sense.
fn caught<T>(attempt: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let attempted = catch_unwind(AssertUnwindSafe(attempt));
    attempted.unwrap_or_else(|_| Err(StoreError::Corrupt("sled cannot make sense of it".into())))
}

/// What sled asserts becomes an error in words: no backtrace goes before it. Other panics are told as ever.
fn silence_sled() {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if is_of_sled(panic) { tracing::debug!(%panic, "sled has panicked") } else { others(panic) }
        }));
    });
}

fn is_of_sled(panic: &std::panic::PanicHookInfo<'_>) -> bool {
    let is_its_code = panic.location().is_some_and(|at| at.file().contains("/sled-0."));
    let thread = std::thread::current();
    let is_its_thread = thread.name().is_some_and(|name| name.starts_with("sled-io-") || name == OPENER);
    is_its_code || is_its_thread
}

/// The thread on which a store is opened: whatever panics there becomes an error.
pub(super) const OPENER: &str = "etcd-opener";

fn failure(error: sled::Error) -> StoreError {
    match error {
        sled::Error::Io(error) => StoreError::Io(error.to_string()),
        other => StoreError::Corrupt(other.to_string()),
    }
}

fn io(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io(format!("{}: {error}", path.display()))
}
