//! Temporary files for what a store in memory has no room for: records one after the other, and here where
//! each lies.
//!
//! Nobody opens these files again, so they are neither ordered nor flushed, and say nothing of themselves. A
//! file goes with its last record; what lives on in one that is mostly dead is moved, so that the files hold
//! at most four times what is alive, and one segment more.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::log::Log;
use super::{Revision, StoreError};

/// A file is full at so many bytes. The record that fills it may stand out.
const SEGMENT_BYTES: u64 = 8 << 20;
/// The live part below which what lives in a full file is moved: one in so many bytes.
const SPARSE: u64 = 4;
/// What others look at who find the folder: it is locked as long as the store is open.
const LOCK_FILE: &str = "db";

/// Records in temporary files. Dropping it removes them.
#[derive(Debug)]
pub(super) struct LogSegments {
    state: RwLock<SegmentsState>,
    folder: Folder,
}

/// Invariant: `places` has each record once, and `live_bytes` of a segment is the sum of its records.
#[derive(Debug)]
struct SegmentsState {
    segment_bytes: u64,
    places: BTreeMap<Revision, SegmentPlace>,
    segments: HashMap<u64, Segment>,
    /// The segment that is written to: the one with the highest number, if there is one.
    newest: u64,
}

#[derive(Debug, Clone, Copy)]
struct SegmentPlace {
    segment: u64,
    start: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Segment {
    file: Arc<File>,
    path: PathBuf,
    written_bytes: u64,
    live_bytes: u64,
    /// What was ever written to it, moved and removed records included.
    revisions: Vec<Revision>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    _lock: File,
}

impl LogSegments {
    /// In a folder of its own, which is empty and goes with it.
    pub(super) fn new(folder: PathBuf) -> Result<LogSegments, StoreError> {
        LogSegments::with(folder, SEGMENT_BYTES)
    }

    fn with(folder: PathBuf, segment_bytes: u64) -> Result<LogSegments, StoreError> {
        let path = folder.join(LOCK_FILE);
        let lock = File::create(&path).and_then(|file| file.lock().map(|()| file));
        let lock = lock.map_err(|error| failure(&path, &error))?;
        let state =
            SegmentsState { segment_bytes, places: BTreeMap::new(), segments: HashMap::new(), newest: 0 };
        Ok(LogSegments { state: RwLock::new(state), folder: Folder { path: folder, _lock: lock } })
    }

    fn state(&self) -> RwLockReadGuard<'_, SegmentsState> {
        self.state.read()
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, SegmentsState> {
        self.state.write()
    }
}

impl SegmentsState {
    fn write(&mut self, folder: &Path, revision: Revision, record: &[u8]) -> Result<(), StoreError> {
        let is_full = |segment: &Segment| segment.written_bytes >= self.segment_bytes;
        if self.segments.get(&self.newest).is_none_or(is_full) {
            self.newest += 1;
            self.segments.insert(self.newest, Segment::create(folder, self.newest)?);
        }
        let number = self.newest;
        let segment = self.segments.get_mut(&number).expect("made above, if it was not there");
        let start = segment.written_bytes;
        write_at(&segment.file, record, start).map_err(|error| failure(&segment.path, &error))?;
        segment.written_bytes += record.len() as u64;
        segment.live_bytes += record.len() as u64;
        segment.revisions.push(revision);
        let before =
            self.places.insert(revision, SegmentPlace { segment: number, start, bytes: record.len() });
        debug_assert!(before.is_none_or(|before| before.segment != number), "a record is written once");
        Ok(())
    }

    /// Where a record lies.
    fn find(&self, revision: Revision) -> Option<(SegmentPlace, &Segment)> {
        let place = self.places.get(&revision)?;
        Some((*place, &self.segments[&place.segment]))
    }

    /// The number of the segment in which it was.
    fn remove(&mut self, revision: Revision) -> Option<u64> {
        let place = self.places.remove(&revision)?;
        let segment = self.segments.get_mut(&place.segment).expect("it has a record");
        debug_assert!(segment.live_bytes >= place.bytes as u64, "a record is counted once");
        segment.live_bytes -= place.bytes as u64;
        Some(place.segment)
    }

    /// Lets go of a segment in which little or nothing lives.
    fn tidy(&mut self, folder: &Path, number: u64) -> Result<(), StoreError> {
        let Some(segment) = self.segments.get(&number) else { return Ok(()) };
        let is_sparse = segment.live_bytes * SPARSE < segment.written_bytes;
        if number == self.newest && segment.live_bytes > 0 || !is_sparse {
            return Ok(());
        }
        let lives = |revision: &&Revision| self.places.get(revision).is_some_and(|at| at.segment == number);
        let moved: Vec<Revision> = segment.revisions.iter().filter(lives).copied().collect();
        for revision in moved {
            let (place, segment) = self.find(revision).expect("it was found above");
            let record = segment.read(place)?;
            self.write(folder, revision, &record)?;
        }
        if let Some(segment) = self.segments.remove(&number) {
            // It takes up room until the folder goes: no reason to stop.
            let _ = fs::remove_file(&segment.path);
        }
        Ok(())
    }
}

impl Segment {
    fn create(folder: &Path, number: u64) -> Result<Segment, StoreError> {
        let path = folder.join(number.to_string());
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = Arc::new(file.map_err(|error| failure(&path, &error))?);
        Ok(Segment { file, path, written_bytes: 0, live_bytes: 0, revisions: Vec::new() })
    }

    fn read(&self, place: SegmentPlace) -> Result<Vec<u8>, StoreError> {
        read(&self.file, place).map_err(|error| failure(&self.path, &error))
    }
}

impl Log for LogSegments {
    fn append(&self, revision: Revision, record: Vec<u8>) -> Result<Bytes, StoreError> {
        self.state_mut().write(&self.folder.path, revision, &record)?;
        Ok(record.into())
    }

    /// The file is read without the lock: it is there as long as somebody reads it.
    fn read(&self, revision: Revision) -> Result<Option<Bytes>, StoreError> {
        let state = self.state();
        let Some((place, segment)) = state.find(revision) else { return Ok(None) };
        let (file, number) = (segment.file.clone(), place.segment);
        drop(state);
        let record = read(&file, place);
        let path = || self.folder.path.join(number.to_string());
        record.map(|record| Some(record.into())).map_err(|error| failure(&path(), &error))
    }

    fn remove(&self, revision: Revision) -> Result<(), StoreError> {
        let mut state = self.state_mut();
        match state.remove(revision) {
            Some(segment) => state.tidy(&self.folder.path, segment),
            None => Ok(()),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn read(file: &File, place: SegmentPlace) -> io::Result<Vec<u8>> {
    let mut record = vec![0; place.bytes];
    read_at(file, &mut record, place.start)?;
    Ok(record)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(unix)]
pub(super) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (bytes, at) = (&mut bytes[read..], at + read as u64),
        }
    }
    Ok(())
}

#[cfg(windows)]
pub(super) fn write_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, at)?;
        (bytes, at) = (&bytes[written..], at + written as u64);
    }
    Ok(())
}

fn failure(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(revision: Revision, bytes: usize) -> Vec<u8> {
        let mut record = vec![revision as u8; bytes];
        record[..8].copy_from_slice(&revision.to_be_bytes());
        record
    }

    #[test]
    fn what_is_written_is_read_until_it_is_removed_and_room_is_given_back() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("segments");
        fs::create_dir(&folder).unwrap();
        let segments = LogSegments::with(folder.clone(), 1000).unwrap();
        let count = 100_u64;
        let bytes = 100;
        for revision in 0..count {
            segments.append(revision, record(revision, bytes)).unwrap();
        }
        let files = || fs::read_dir(&folder).unwrap().count() - 1;
        assert_eq!(files(), 10);
        assert!(segments.read(count).unwrap().is_none());
        // One record of each file stays, then of every other.
        for revision in (0..count).filter(|revision| revision % 10 != 3) {
            segments.remove(revision).unwrap();
        }
        assert!(files() <= 2, "{}", files());
        for revision in 0..count {
            let expected = (revision % 10 == 3).then(|| Bytes::from(record(revision, bytes)));
            assert_eq!(segments.read(revision).unwrap(), expected, "{revision}");
        }
        (0..count).for_each(|revision| segments.remove(revision).unwrap());
        assert_eq!((files(), segments.state().places.len()), (0, 0));
        segments.append(7, record(7, 9)).unwrap();
        assert_eq!(segments.read(7).unwrap().unwrap(), record(7, 9));
        drop(segments);
        assert!(!folder.exists());
    }
}
