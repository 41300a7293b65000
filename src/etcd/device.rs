//! How what was written gets onto the device: fdatasync of files, fsync of folders.
//!
//! sled calls `sync_file_range`, which flushes neither the size of a file nor the cache of a disk: what it
//! calls flushed survives the death of the process, not a power cut.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What the data dir lies on. Tests have one that loses what was not synced.
pub(super) trait Device: Debug + Send + Sync {
    /// Whether it survives a power cut at all.
    fn is_safe(&self) -> bool;

    /// Returns once all that was written to the file, through whichever descriptor, is on the device.
    fn sync_file(&self, file: &File, path: &Path) -> io::Result<()>;

    /// Returns once the names of all that is in the folder are on the device.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// The kernel's; `unsafe_no_fsync` leaves it out, as etcd's `--unsafe-no-fsync`.
pub(super) fn of(unsafe_no_fsync: bool) -> Arc<dyn Device> {
    if unsafe_no_fsync { Arc::new(NoSync) } else { Arc::new(Kernel) }
}

#[derive(Debug)]
struct Kernel;

impl Device for Kernel {
    fn is_safe(&self) -> bool {
        true
    }

    fn sync_file(&self, file: &File, _path: &Path) -> io::Result<()> {
        file.sync_data()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // Elsewhere a folder cannot be opened, and its names are written with its files.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }
}

/// What is written survives the process, but no power cut.
#[derive(Debug)]
struct NoSync;

impl Device for NoSync {
    fn is_safe(&self) -> bool {
        false
    }

    fn sync_file(&self, _file: &File, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}
