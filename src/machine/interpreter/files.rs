//! The files of a script while it is played: what volumes show, and what it wrote itself.

use std::sync::Arc;
use std::time::Duration;

use super::disk;
use super::player::Player;
use crate::bounds::{MAX_FILE_BYTES, MAX_PATH_BYTES, MAX_UNHELD_BYTES, ScriptFault};
use crate::byte_text;
use crate::file_system::{self, File, FileStamp, SET_GROUP, Tree};
use crate::surroundings::ForeignFile;

/// So often it is noted that the files changed.
const MAX_SNAPSHOTS: usize = 256;

impl Player<'_> {
    /// A file by its path; what a link leads to.
    pub(crate) fn file(&self, path: &str) -> Option<File> {
        self.entry(&self.real_path(path)).filter(|file| !file.is_link()).cloned()
    }

    /// What stands at an absolute path, a link itself.
    pub(crate) fn own_file(&self, path: &str) -> Option<File> {
        self.entry(path).cloned()
    }

    fn entry(&self, path: &str) -> Option<&File> {
        match self.written.get(path) {
            Some(written) => written.as_ref(),
            None => self.view().and_then(|tree| tree.get(path)),
        }
    }

    /// Where a path leads to: absolute, and without links as far as they lead anywhere.
    pub(crate) fn real_path(&self, path: &str) -> String {
        file_system::followed(file_system::absolute(&self.folder, path), |path| self.entry(path))
    }

    /// Where a path is: absolute, and without links on the way there; what stands there may be one.
    pub(crate) fn own_path(&self, path: &str) -> String {
        let path = file_system::absolute(&self.folder, path);
        match path.rsplit_once('/') {
            Some((above, name)) => file_system::absolute(&self.real_path(&format!("{above}/")), name),
            None => path,
        }
    }

    /// A symbolic link that stands there itself.
    pub(crate) fn own_link(&self, path: &str) -> Option<File> {
        self.own_file(&self.own_path(path)).filter(File::is_link)
    }

    /// What volumes show now.
    fn view(&self) -> Option<&Tree> {
        let views = self.views();
        let view = views.iter().rev().find(|view| view.after <= self.elapsed);
        view.or(views.first()).map(|view| &*view.tree)
    }

    /// Time comes to `end`: what others write or remove until then is as they leave it, whatever this process
    /// did before.
    pub(crate) fn meet_foreign(&mut self, end: Duration) {
        let until = end.min(self.until);
        let is_met = |foreign: &ForeignFile| self.elapsed < foreign.after && foreign.after <= until;
        let met = self.around.foreign.iter().filter(|(_, foreign)| is_met(foreign));
        let met: Vec<&String> = met.map(|(path, _)| path).collect();
        for path in met {
            if let Some((path, own)) = self.forget_written(path) {
                self.disk.remove(&path, own.as_ref());
                self.has_changed = true;
            }
        }
    }

    /// All files, in the order of their paths.
    pub(crate) fn files(&mut self) -> Tree {
        let mut tree = self.view().cloned().unwrap_or_default();
        self.spend(tree.len() + self.written.len());
        for (path, file) in &self.written {
            match file {
                Some(file) => tree.insert(path.clone(), file.clone()),
                None => tree.remove(path),
            };
        }
        tree
    }

    /// Writes a file, unless that is not allowed.
    ///
    /// # Errors
    /// As the C library says it.
    pub(crate) fn write_file(&mut self, path: &str, content: Vec<u8>) -> Result<(), &'static str> {
        let path = self.writable_path(path)?;
        self.handle(content.len());
        let old = self.file(&path);
        let mode = old.as_ref().map_or(0o644, |file| file.mode);
        let content = match old.as_ref().filter(|old| old.is_block_device()) {
            Some(device) => over_blocks(content, &device.content),
            None => content,
        };
        let mut file = File::new(content, mode);
        // Who writes into another's file does not own it.
        file.stamp = old.map(|old| FileStamp { modified: self.now(), ..self.stamp_at(&path, &old) });
        self.put_file(path, Some(file));
        Ok(())
    }

    /// Whether so many bytes more may be held.
    pub(crate) fn holds(&self, count: usize) -> bool {
        self.disk.bytes.saturating_add(count).saturating_add(MAX_PATH_BYTES) <= MAX_FILE_BYTES
    }

    /// Takes the time that it takes to read a file. One of which only the size is kept nobody reads.
    pub(crate) fn handle_file(&mut self, file: &File) -> bool {
        if file.unheld > 0 {
            self.stop(ScriptFault::Files);
            return false;
        }
        self.handle(file.content.len())
    }

    /// How many bytes there are still for a file: in memory (`tmpfs`) what others leave of it, else as many
    /// as one can have.
    pub(crate) fn space_left(&mut self, path: &str) -> usize {
        let path = self.real_path(path);
        let mount = file_system::mount_of(self.mounts(), &path);
        let memory = mount.and_then(|mount| Some((mount.path.clone(), mount.memory_bytes?)));
        let Some((folder, all)) = memory else { return MAX_UNHELD_BYTES };
        let files = self.files();
        let others = files.iter().filter(|(own, _)| **own != path && file_system::is_within(&folder, own));
        let used = others.map(|(_, file)| file.size()).sum();
        usize::try_from(all).map_or(MAX_UNHELD_BYTES, |all| all.saturating_sub(used)).min(MAX_UNHELD_BYTES)
    }

    /// Makes a file of so many bytes, of which nothing but their number is kept.
    ///
    /// # Errors
    /// As the C library says it.
    pub(crate) fn fill_file(&mut self, path: &str, count: usize) -> Result<(), &'static str> {
        debug_assert!(count <= MAX_UNHELD_BYTES, "sums of sizes are within their type");
        self.write_file(path, vec![])?;
        let path = self.real_path(path);
        let file = self.file(&path).map(|file| File { unheld: count, ..file });
        self.keep_file(path, file);
        Ok(())
    }

    fn writable_path(&self, path: &str) -> Result<String, &'static str> {
        let path = self.real_path(path);
        self.check_writable(&path)?;
        let is_circle = self.entry(&path).is_some_and(File::is_link);
        if is_circle { Err("Too many levels of symbolic links") } else { Ok(path) }
    }

    /// Opens a file to write into it; what was in it is kept or not. Where it is stays, whatever folder the
    /// shell goes to.
    ///
    /// # Errors
    /// As the C library says it.
    pub(crate) fn open_file(&mut self, path: &str, keeps: bool) -> Result<String, &'static str> {
        let path = self.writable_path(path)?;
        match self.file(&path).filter(|_| keeps) {
            Some(file) => self.put_file(path.clone(), Some(file)),
            None => self.write_file(&path, vec![])?,
        }
        Ok(path)
    }

    /// Adds to a file that was opened.
    pub(crate) fn append_file(&mut self, path: &str, text: &str) {
        self.append_bytes(path, &byte_text::bytes_of(text));
    }

    /// Adds bytes, which need not be a text, to a file that was opened.
    pub(crate) fn append_bytes(&mut self, path: &str, bytes: &[u8]) {
        let modified = self.now();
        let Some(Some(file)) = self.written.get_mut(path) else {
            let _ = self.write_file(path, bytes.to_vec());
            return;
        };
        file.stamp = file.stamp.map(|stamp| FileStamp { modified, ..stamp });
        let copied = if Arc::strong_count(&file.content) > 1 { file.content.len() } else { 0 };
        Arc::make_mut(&mut file.content).extend_from_slice(bytes);
        self.disk.bytes += bytes.len();
        self.has_changed = true;
        self.handle(copied);
        self.check_disk();
    }

    /// Puts a file where it belongs, or removes what is there. One that nobody owns yet is this process's.
    pub(crate) fn put_file(&mut self, path: String, file: Option<File>) {
        let group = self.group_at(&path);
        let own = self.own_stamp();
        let own = FileStamp { group: group.unwrap_or(own.group), ..own };
        let inherited = if group.is_some() { SET_GROUP } else { 0 };
        let kept = |file: File| File {
            stamp: file.stamp.or(Some(own)),
            mode: if file.is_folder { file.mode | inherited } else { file.mode },
            ..file
        };
        self.keep_file(path, file.map(kept));
    }

    /// Of what this process writes now.
    pub(crate) fn own_stamp(&self) -> FileStamp {
        FileStamp { modified: self.now(), user: self.around.user, group: self.around.group }
    }

    /// Whose a file is, and when it was written: what nobody wrote is root's, and as old as the process.
    pub(crate) fn stamp_of(&self, file: &File) -> FileStamp {
        file.stamp.unwrap_or(FileStamp { modified: self.around.started_at, user: 0, group: 0 })
    }

    /// Whose a file at a path is: in a volume with a group it is that group's.
    pub(crate) fn stamp_at(&self, path: &str, file: &File) -> FileStamp {
        let stamp = self.stamp_of(file);
        let of_volume = self.group_at(path).filter(|_| file.stamp.is_none());
        FileStamp { group: of_volume.unwrap_or(stamp.group), ..stamp }
    }

    /// The group of what is in the volume of a path, where that has one.
    pub(crate) fn group_at(&self, path: &str) -> Option<i64> {
        file_system::mount_of(self.mounts(), path)?.group
    }

    /// Puts a file as it is where it belongs, or removes what is there.
    pub(crate) fn keep_file(&mut self, path: String, file: Option<File>) {
        match self.written.get(&path) {
            Some(old) => self.disk.remove(&path, old.as_ref()),
            None => self.hide(&path),
        }
        self.disk.add(&path, file.as_ref());
        self.written.insert(path, file);
        self.has_changed = true;
        self.check_disk();
    }

    /// Takes away what is at a path, and all below it.
    pub(crate) fn remove_all(&mut self, path: &str) {
        let gone = self.files().into_keys().filter(|own| file_system::is_within(path, own));
        gone.for_each(|own| self.put_file(own, None));
    }

    /// What a volume shows there counts no more.
    fn hide(&mut self, path: &str) {
        let is_own = disk::is_own(self.mounts(), path);
        let shown = self.view().and_then(|tree| tree.get(path)).filter(|_| is_own).cloned();
        shown.iter().for_each(|file| self.disk.remove(path, Some(file)));
    }

    fn check_disk(&mut self) {
        if self.disk.is_full() {
            self.stop(ScriptFault::Files);
        }
    }

    /// Whether anything may be written there.
    pub(crate) fn check_writable(&self, path: &str) -> Result<(), &'static str> {
        if path.len() > MAX_PATH_BYTES {
            return Err("File name too long");
        }
        let is_read_only = match file_system::mount_of(self.mounts(), path) {
            Some(mount) => mount.is_read_only || !mount.is_kept,
            None => self.around.is_root_read_only && !path.starts_with("/dev/"),
        };
        if is_read_only { Err("Read-only file system") } else { Ok(()) }
    }

    /// Notes what was written so far, when that is asked for and not noted yet.
    pub(crate) fn take_snapshot(&mut self) {
        if !std::mem::take(&mut self.has_changed) || self.snapshots.is_none() {
            return;
        }
        self.spend(self.written.len());
        let written = self.all_written().into_iter().collect();
        if let Some(snapshots) = self.snapshots.as_mut().filter(|snapshots| snapshots.len() < MAX_SNAPSHOTS) {
            snapshots.push((self.elapsed, written));
        }
    }

    /// Whether a script sees a folder there, though no file says so.
    pub(crate) fn is_folder(&mut self, path: &str) -> bool {
        let path = self.real_path(path);
        let mut mounts = self.mounts().iter().filter(|mount| !mount.is_device);
        let is_mount = mounts.any(|mount| mount.is_at(&path));
        let below = format!("{}/", path.trim_end_matches('/'));
        let is_above_mount = self.mounts().iter().any(|mount| mount.path.starts_with(&below));
        matches!(path.as_str(), "/" | "/tmp") || is_mount || is_above_mount || self.has_file_below(&below)
    }

    fn has_file_below(&self, folder: &str) -> bool {
        let is_there = |path: &str| self.written.get(path).is_none_or(Option::is_some);
        let written = self.written.range(folder.to_owned()..);
        let mut written = written.take_while(|(path, _)| path.starts_with(folder));
        let shown = self.view().map(|tree| tree.range(folder.to_owned()..)).into_iter().flatten();
        let mut shown = shown.take_while(|(path, _)| path.starts_with(folder));
        written.any(|(_, file)| file.is_some()) || shown.any(|(path, _)| is_there(path))
    }
}

/// What a device has when its first blocks are written: it stays as long as it is.
fn over_blocks(mut written: Vec<u8>, before: &[u8]) -> Vec<u8> {
    written.extend(before.get(written.len()..).unwrap_or_default());
    written
}
