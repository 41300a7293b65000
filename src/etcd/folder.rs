//! Where in the data dir the log lies. At first in the folder itself; written anew, in `sled.1` and on, of
//! which the highest counts that was finished.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::StoreError;
use super::device::Device;

/// sled's file.
pub(super) const DATA: &str = "db";
/// sled's folder of large values.
pub(super) const BLOBS: &str = "blobs";
/// sled's file of settings, which it makes again if there is none.
pub(super) const SETTINGS: &str = "conf";
const GENERATION: &str = "sled.";
/// Made last of all: without it, whoever wrote the folder did not get to the end.
const COMPLETE: &str = "complete";

/// The folder of the log that counts.
pub(super) fn current(data_dir: &Path) -> PathBuf {
    let generations = generations(data_dir);
    let complete = generations.iter().filter(|(_, path)| path.join(COMPLETE).exists()).max();
    // As long as one is not complete, the one before is there: if it is not, somebody has removed the note.
    let has_first = data_dir.join(DATA).exists();
    let newest = if has_first { complete } else { complete.or(generations.iter().max()) };
    newest.map_or_else(|| data_dir.to_owned(), |(_, path)| path.clone())
}

/// Whether a log was ever written to it.
pub(super) fn is_used(data_dir: &Path) -> bool {
    data_dir.join(DATA).exists() || !generations(data_dir).is_empty()
}

/// A folder for the log to be written anew in, in which nothing is.
pub(super) fn next(data_dir: &Path) -> Result<PathBuf, StoreError> {
    let number = generations(data_dir).into_iter().map(|(number, _)| number).max().unwrap_or(0) + 1;
    let path = data_dir.join(format!("{GENERATION}{number}"));
    match fs::create_dir(&path) {
        Ok(()) => Ok(path),
        Err(error) => Err(StoreError::Io(format!("{}: {error}", path.display()))),
    }
}

/// From here on, over a power cut, this folder counts. All that is in it is on the device.
pub(super) fn complete(folder: &Path, device: &dyn Device) -> Result<(), StoreError> {
    let path = folder.join(COMPLETE);
    let complete = || {
        let parent = folder.parent().unwrap_or(folder);
        // First the folder's own name: `complete` must not be found before what it speaks of.
        device.sync_dir(parent)?;
        let file = File::create(&path)?;
        device.sync_file(&file, &path)?;
        device.sync_dir(folder)
    };
    complete().map_err(|error| StoreError::Io(format!("{}: {error}", path.display())))
}

/// Removes what no longer counts, or never did. What cannot be removed only takes up room.
pub(super) fn remove_others(data_dir: &Path) {
    let current = current(data_dir);
    for (_, other) in generations(data_dir).into_iter().filter(|(_, path)| *path != current) {
        let _ = fs::remove_dir_all(other);
    }
    if current != data_dir {
        remove_files(data_dir);
    }
}

/// Removes the log in a folder.
pub(super) fn remove(folder: &Path) {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    if name.is_some_and(|name| number(&name).is_some()) {
        // First what makes it count, lest a part of it does.
        let _ = fs::remove_file(folder.join(COMPLETE));
        let _ = fs::remove_dir_all(folder);
    } else {
        remove_files(folder)
    }
}

/// What the files of a log take up.
pub(super) fn bytes(folder: &Path) -> u64 {
    let size = |entry: fs::DirEntry| entry.metadata().map_or(0, |metadata| metadata.len());
    let of = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(size).sum::<u64>();
    of(folder) + of(&folder.join(BLOBS))
}

/// sled's, of a log that lies beside other things.
fn remove_files(folder: &Path) {
    // The data last: if only some goes, nobody takes the rest for a log.
    let is_snapshot = |name: &str| name.starts_with("snap.");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_snapshot(&entry.file_name().to_string_lossy()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir_all(folder.join(BLOBS));
    for name in [SETTINGS, DATA] {
        let _ = fs::remove_file(folder.join(name));
    }
}

fn generations(data_dir: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(data_dir).into_iter().flatten().flatten();
    let numbered = |entry: fs::DirEntry| Some((number(&entry.file_name().to_string_lossy())?, entry.path()));
    entries.filter_map(numbered).collect()
}

fn number(name: &str) -> Option<u64> {
    name.strip_prefix(GENERATION)?.parse().ok()
}
