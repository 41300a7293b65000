//! How much the files of a script take.

use crate::bounds::{MAX_FILE_BYTES, MAX_FILES};
use crate::file_system::{self, File, MountedVolume};
use crate::surroundings::Surroundings;

/// How much was written, in the volumes before, too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disk {
    files: usize,
    pub(crate) bytes: usize,
}

impl Disk {
    /// What is there at the start.
    pub(crate) fn of(around: &Surroundings) -> Disk {
        let mut disk = Disk::default();
        let tree = around.views.last().map(|view| view.tree.clone()).unwrap_or_default();
        for (path, file) in &*tree {
            if is_own(&around.mounts, path) {
                disk.add(path, Some(file));
            }
        }
        disk
    }

    pub(crate) fn add(&mut self, path: &str, file: Option<&File>) {
        self.files += 1;
        self.bytes += path.len() + file.map_or(0, |file| file.content.len());
    }

    pub(crate) fn remove(&mut self, path: &str, file: Option<&File>) {
        self.files = self.files.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(path.len() + file.map_or(0, |file| file.content.len()));
    }

    pub(crate) fn is_full(&self) -> bool {
        self.files > MAX_FILES || self.bytes > MAX_FILE_BYTES
    }
}

/// Whether what is there was written, and not made of API objects.
pub(crate) fn is_own(mounts: &[MountedVolume], path: &str) -> bool {
    file_system::mount_of(mounts, path).is_none_or(|mount| mount.is_kept)
}
