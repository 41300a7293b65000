//! What is in the volumes that claims are bound to: it outlives the pods, and every node finds it. Volumes
//! that are a folder of a node (`hostPath`, `local`) are that folder and nothing of these.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use machine::bounds::{MAX_FILE_BYTES, MAX_FILES};
use machine::file_system::{File, Tree};
use sync::Mutex;
use tokio::sync::Notify;

/// What all volumes of a cluster hold at most. What does not fit is lost, as on a disk that is full.
pub const MAX_CLAIMED_BYTES: usize = 128 << 20;

/// The files of all volumes of a cluster. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct ClaimedFiles(Arc<SharedVolumes>);

#[derive(Debug, Default)]
struct SharedVolumes {
    volumes: Mutex<Volumes>,
    is_wanted: AtomicBool,
    wanted: Notify,
}

#[derive(Debug, Default)]
struct Volumes {
    /// By the names of the PersistentVolumes.
    by_name: BTreeMap<String, Tree>,
    /// What they hold together.
    bytes: usize,
}

impl ClaimedFiles {
    /// What is in a volume.
    pub fn files(&self, volume: &str) -> Tree {
        self.0.volumes.lock().by_name.get(volume).cloned().unwrap_or_default()
    }

    /// A file is there from now on, or no longer.
    pub fn put(&self, volume: &str, path: String, file: Option<File>) {
        if !self.0.is_wanted.swap(true, Ordering::AcqRel) {
            self.0.wanted.notify_one();
        }
        self.0.volumes.lock().put(volume, path, file);
    }

    /// All in a volume is that group's from now on (`SetVolumeOwnership`).
    pub(super) fn give(&self, volume: &str, group: i64) {
        let mut volumes = self.0.volumes.lock();
        let files = volumes.by_name.get_mut(volume).into_iter().flat_map(|files| files.values_mut());
        files.filter_map(|file| file.stamp.as_mut()).for_each(|stamp| stamp.group = group);
    }

    /// The volume is gone, and what was in it.
    pub fn remove(&self, volume: &str) {
        let mut volumes = self.0.volumes.lock();
        if let Some(files) = volumes.by_name.remove(volume) {
            volumes.bytes -= files.iter().map(size).sum::<usize>();
        }
    }

    /// Waits until something was written for the first time: before that nobody need tell which volumes go.
    pub async fn wanted(&self) {
        while !self.0.is_wanted.load(Ordering::Acquire) {
            self.0.wanted.notified().await;
        }
    }
}

impl Volumes {
    fn put(&mut self, volume: &str, path: String, file: Option<File>) {
        let is_known = self.by_name.contains_key(volume);
        if !is_known && file.is_none() {
            return;
        }
        let files = self.by_name.entry(volume.to_owned()).or_default();
        if let Some(old) = files.remove_entry(&path) {
            self.bytes -= size((&old.0, &old.1));
        }
        let Some(file) = file else { return };
        let added = size((&path, &file));
        let in_volume: usize = files.iter().map(size).sum();
        let fits = self.bytes + added <= MAX_CLAIMED_BYTES;
        // One container more than its bound is what the last one wrote.
        if fits && files.len() <= MAX_FILES + 1 && in_volume <= MAX_FILE_BYTES {
            files.insert(path, file);
            self.bytes += added;
        }
    }
}

fn size((path, file): (&String, &File)) -> usize {
    path.len() + file.content.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODE: u32 = 0o644;

    fn names(files: &ClaimedFiles, volume: &str) -> Vec<String> {
        files.files(volume).into_keys().collect()
    }

    #[test]
    fn a_volume_keeps_what_is_in_it_until_it_goes() {
        let files = ClaimedFiles::default();
        let other = files.clone();
        files.put("a", "x".into(), Some(File::new("1", MODE)));
        files.put("b", "y".into(), Some(File::new("2", MODE)));
        other.put("a", "z/y".into(), Some(File::new("3", MODE)));
        other.put("a", "x".into(), None);
        other.put("c", "x".into(), None);
        assert_eq!((names(&files, "a"), names(&files, "b")), (vec!["z/y".to_owned()], vec!["y".to_owned()]));
        files.remove("a");
        files.remove("a");
        assert!(names(&other, "a").is_empty());
        files.remove("b");
        assert_eq!(files.0.volumes.lock().bytes, 0);
    }

    #[test]
    fn what_does_not_fit_is_lost() {
        let files = ClaimedFiles::default();
        let text = "a".repeat(MAX_FILE_BYTES - "f".len());
        for volume in 0..=MAX_CLAIMED_BYTES / MAX_FILE_BYTES {
            files.put(&volume.to_string(), "f".into(), Some(File::new(text.as_bytes(), MODE)));
        }
        assert_eq!(names(&files, "0"), ["f"]);
        let last = (MAX_CLAIMED_BYTES / MAX_FILE_BYTES).to_string();
        assert!(names(&files, &last).is_empty());
        files.remove("0");
        files.put(&last, "f".into(), Some(File::new("b", MODE)));
        assert_eq!(names(&files, &last), ["f"]);
        files.put("1", "g".into(), Some(File::new("b", MODE)));
        files.put("1", "h".into(), Some(File::new("b", MODE)));
        assert_eq!(names(&files, "1"), ["f", "g"]);
    }

    #[tokio::test]
    async fn whoever_waits_hears_of_the_first_file() {
        let files = ClaimedFiles::default();
        let waits = tokio::spawn({
            let files = files.clone();
            async move { files.wanted().await }
        });
        files.put("a", "x".into(), Some(File::new("1", MODE)));
        waits.await.unwrap();
    }
}
