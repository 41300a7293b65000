//! The place of a store: its data dir, and the logs in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StoreError;
use super::device::Device;
use super::folder;
use super::recovery::DirLock;
use super::sled_log::SledLog;
use clock::Clock;

/// What sled needs at least to go on: two of its segments.
const PROBE_BYTES: usize = 1 << 20;

/// A data dir, and how to use it.
#[derive(Debug, Clone)]
pub(super) struct LogPlace {
    pub data_dir: PathBuf,
    pub page_cache_bytes: u64,
    pub recent_bytes: usize,
    pub device: Arc<dyn Device>,
    pub lock: Arc<DirLock>,
    pub clock: Clock,
}

impl LogPlace {
    /// Whether there is room to write: asks by writing.
    pub(super) fn probe(&self) -> Result<(), StoreError> {
        let path = self.data_dir.join("probe");
        let written = std::fs::write(&path, vec![0; PROBE_BYTES]).and_then(|()| {
            let file = std::fs::File::open(&path)?;
            // What a file system promised without having it is found out here.
            file.sync_all()
        });
        let _ = std::fs::remove_file(&path);
        written.map_err(|error| StoreError::Io(format!("{}: {error}", path.display())))
    }

    /// An empty one, in a folder that does not count yet.
    pub(super) fn new_log(&self) -> Result<(PathBuf, Arc<SledLog>), StoreError> {
        let folder = folder::next(&self.data_dir)?;
        let log = self.open_log_in(&folder)?;
        Ok((folder, log))
    }

    pub(super) fn open_log(&self) -> Result<Arc<SledLog>, StoreError> {
        self.open_log_in(&folder::current(&self.data_dir))
    }

    fn open_log_in(&self, folder: &Path) -> Result<Arc<SledLog>, StoreError> {
        let log = SledLog::open(folder, self.page_cache_bytes, &self.device, self.lock.try_clone()?);
        log.map(Arc::new).map_err(|error| match error {
            StoreError::Locked { process, .. } => {
                StoreError::Locked { data_dir: self.data_dir.clone(), process }
            }
            error => error,
        })
    }

    /// The names of the folder and of what it lies in.
    pub(super) fn sync_parents(&self) -> Result<(), StoreError> {
        for folder in self.data_dir.ancestors().skip(1).take(2).filter(|path| !path.as_os_str().is_empty()) {
            // What is not ours to open was there before.
            if let Err(error) = self.device.sync_dir(folder) {
                tracing::debug!(%error, folder = %folder.display(), "a folder's names are not synced");
            }
        }
        Ok(())
    }
}
