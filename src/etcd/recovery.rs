//! The store's folder before it is opened, and after it was damaged.
//!
//! A crash while sled writes a snapshot of its page table leaves `snap.N.generating` behind, which it then
//! takes for its newest snapshot and refuses to start. A snapshot only saves time: without any, the whole log
//! is read.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::StoreError;
use clock::Clock;

const LOCK_FILE: &str = "lock";
const SNAPSHOT: &str = "snap.";
const UNFINISHED: &str = ".generating";
/// Folders of stores without a data dir: this, the process, a number.
const TEMPORARY: &str = "kubarium-etcd";

/// How much must be free in `/dev/shm` for a store to live there. Containers often have 64 MiB, and a store
/// that finds it full takes no more writes.
const MEMORY_BYTES: u64 = 1 << 30;
/// A process that is ending, or one that has just been forked, may hold a lock for a moment longer.
const LOCK_ATTEMPTS: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Tries again for a fifth of a second as long as it is locked.
pub(super) fn while_locked<T>(
    clock: &Clock,
    mut attempt: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    for _ in 1..LOCK_ATTEMPTS {
        match attempt() {
            Err(StoreError::Locked { .. }) => clock.block_thread(LOCK_PAUSE),
            done => return done,
        }
    }
    attempt()
}

/// Holds a data dir for this store alone, until dropped. The kernel lets go of it when the process dies.
#[derive(Debug)]
pub(super) struct DirLock(File);

impl DirLock {
    /// Makes the folder if need be, and takes it.
    pub(super) fn acquire(data_dir: &Path) -> Result<DirLock, StoreError> {
        private_dir().recursive(true).create(data_dir).map_err(io(data_dir))?;
        make_private(data_dir);
        let path = data_dir.join(LOCK_FILE);
        let open = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(StoreError::Locked {
                    data_dir: data_dir.to_owned(),
                    process: holder.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(io(&path)(error)),
        }
        // For whoever finds it locked.
        let written = file.set_len(0).and_then(|()| file.rewind());
        written.and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io(&path))?;
        Ok(DirLock(file))
    }

    /// Another handle on this lock: held until both are dropped.
    pub(super) fn try_clone(&self) -> Result<DirLock, StoreError> {
        self.0.try_clone().map(DirLock).map_err(io(Path::new(LOCK_FILE)))
    }
}

/// What a crash left of a snapshot being written.
pub(super) fn remove_unfinished_snapshots(data_dir: &Path) -> Result<(), StoreError> {
    remove(data_dir, |name| name.starts_with(SNAPSHOT) && name.ends_with(UNFINISHED))
}

/// Whether there is one.
pub(super) fn has_snapshots(data_dir: &Path) -> bool {
    let entries = fs::read_dir(data_dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(SNAPSHOT))
}

/// All snapshots.
pub(super) fn remove_snapshots(data_dir: &Path) -> Result<(), StoreError> {
    remove(data_dir, |name| name.starts_with(SNAPSHOT))
}

/// Copies the files, before anything is done to them, to a folder beside the data dir.
pub(super) fn back_up(data_dir: &Path) -> Result<PathBuf, StoreError> {
    let name = data_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 1_u32.. {
        let copy = data_dir.with_file_name(format!("{name}.damaged-{number}"));
        match private_dir().create(&copy) {
            Ok(()) => return copy_files(data_dir, &copy).map(|()| copy),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io(&copy)(error)),
        }
    }
    Err(StoreError::Io("no name is left for a copy of the damaged files".into()))
}

/// Says, with an error that could not be recovered from, what is damaged, and where a copy is.
pub(super) fn describe(error: StoreError, data_dir: &Path, copy: Option<&Path>) -> StoreError {
    let StoreError::Corrupt(damage) = error else { return error };
    let copy = copy.map(|copy| format!(", of which a copy is in {}", copy.display()));
    let (data_dir, copy) = (data_dir.display(), copy.unwrap_or_default());
    StoreError::Corrupt(advise(&format!("{damage} (in {data_dir}{copy})")))
}

/// What to do about a damage.
pub(super) fn advise(damage: &str) -> String {
    format!("{damage}; put back a copy of the files, or start with --recover to go on with what can be read")
}

/// A new folder for a store without a data dir: in memory where the system has a file system there.
pub(super) fn temporary_dir() -> Result<PathBuf, StoreError> {
    let memory = PathBuf::from("/dev/shm");
    remove_abandoned(&memory);
    remove_abandoned(&std::env::temp_dir());
    let parent = if free_bytes(&memory) < MEMORY_BYTES { std::env::temp_dir() } else { memory };
    for number in 0_u32.. {
        let dir = parent.join(format!("{TEMPORARY}.{}.{number}", std::process::id()));
        match private_dir().create(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io(&dir)(error)),
        }
    }
    Err(StoreError::Io("no name is left for a temporary folder".into()))
}

/// What can still be written there; 0 if that cannot be known.
fn free_bytes(dir: &Path) -> u64 {
    #[cfg(unix)]
    return rustix::fs::statvfs(dir).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    #[cfg(not(unix))]
    return 0;
}

/// A killed process cannot remove its temporary folder; the next one does. Whatever fails is left for later.
fn remove_abandoned(parent: &Path) {
    let process_is_dead = |name: &str| {
        let process = name.strip_prefix(TEMPORARY)?.strip_prefix('.')?.split('.').next()?;
        let process: u32 = process.parse().ok()?;
        let known = Path::new("/proc").join(std::process::id().to_string()).exists();
        Some(known && !Path::new("/proc").join(process.to_string()).exists())
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if process_is_dead(&entry.file_name().to_string_lossy()) != Some(true) {
            continue;
        }
        // A process of another container is not in our /proc, but it holds its lock.
        let unlocked = File::open(entry.path().join("db")).is_ok_and(|file| file.try_lock().is_ok());
        if unlocked {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn remove(data_dir: &Path, which: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    for entry in fs::read_dir(data_dir).map_err(io(data_dir))? {
        let entry = entry.map_err(io(data_dir))?;
        if which(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path()).map_err(io(&entry.path()))?;
        }
    }
    Ok(())
}

/// Makes folders that nobody else may look into: what is in them is everybody's Secrets.
fn private_dir() -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Closes a folder and its files to others, as far as it is ours to do so. What sled makes later is behind
/// the folder's own mode.
pub(super) fn make_private(dir: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let close = |path: &Path, mode| drop(fs::set_permissions(path, fs::Permissions::from_mode(mode)));
        close(dir, 0o700);
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { make_private(&path) } else { close(&path, 0o600) }
        }
    }
    #[cfg(not(unix))]
    let _ = dir;
}

fn copy_files(from: &Path, to: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(from).map_err(io(from))? {
        let entry = entry.map_err(io(from))?;
        let copy = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&copy).map_err(io(&copy))?;
            copy_files(&entry.path(), &copy)?;
        } else {
            fs::copy(entry.path(), &copy).map_err(io(&copy))?;
        }
    }
    Ok(())
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    move |error| StoreError::Io(format!("{}: {error}", path.display()))
}
