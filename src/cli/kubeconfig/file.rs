//! A kubeconfig as a file: edited as a tree, so that what we do not know stays; written whole, 0600, under
//! client-go's own lock file (`FILE.lock`).

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_yaml::{Mapping, Value};

use crate::cli::Failure;
use apimachinery::yaml;
use clock::Clock;
use files::write_private;

/// How long one edit may take: some milliseconds, and many on a disk that is slow to sync. Whoever died with
/// the lock never ends.
const EDIT: Duration = Duration::from_secs(5);
/// How long is waited at most while others edit, one after the other.
const TURN: Duration = Duration::from_secs(60);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// Changes a file under its lock, or makes it anew.
pub(crate) fn edit<T>(
    path: &Path,
    anew: bool,
    change: impl FnOnce(&mut Mapping) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |error: std::io::Error| {
        let what = format!("cannot write the kubeconfig {}", path.display());
        Failure::new(what, format!("{error}; choose another with --kubeconfig"))
    };
    let _lock = Lock::take(path).map_err(failed)?;
    let mut config = if anew { empty() } else { read(path)? };
    let answer = change(&mut config)?;
    let text = serde_yaml::to_string(&Value::Mapping(config)).unwrap_or_default();
    // Through a link to the file behind it, so that the link stays.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    write_private(&target, text.as_bytes()).map_err(failed)?;
    Ok(answer)
}

/// A file as a tree; one that is not there is empty.
pub(crate) fn read(path: &Path) -> Result<Mapping, Failure> {
    let shown = path.display();
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::new(format!("cannot read the kubeconfig {shown}"), error)),
    };
    match yaml::from_str(&text) {
        Ok(Value::Null) => Ok(empty()),
        Ok(Value::Mapping(config)) => Ok(config),
        Ok(_) => {
            Err(Failure(format!("the kubeconfig {shown} is not a mapping; choose another with --kubeconfig")))
        }
        Err(error) => Err(Failure::new(format!("the kubeconfig {shown} is not YAML"), error)),
    }
}

/// A kubeconfig in which nothing is yet.
pub(crate) fn empty() -> Mapping {
    Mapping::from_iter([
        ("apiVersion".into(), "v1".into()),
        ("kind".into(), "Config".into()),
        ("preferences".into(), Value::Mapping(Mapping::new())),
    ])
}

/// client-go's lock: a file that exists while somebody edits.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> std::io::Result<Lock> {
        let lock = PathBuf::from(format!("{}.lock", path.display()));
        if let Some(folder) = lock.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let clock = Clock::real();
        let mut patience = Patience::default();
        while patience.lasts(clock.elapsed(), made(&lock)) {
            match fs::OpenOptions::new().write(true).create_new(true).open(&lock) {
                Ok(_) => return Ok(Lock(lock)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => clock.block_thread(PAUSE),
                Err(error) => return Err(error),
            }
        }
        let text = format!("{} exists: somebody is editing it (or died so: remove it)", lock.display());
        Err(std::io::Error::new(ErrorKind::AlreadyExists, text))
    }
}

/// Which file a lock is, and since when: the inode, seconds and nanoseconds.
type Made = (u64, i64, i64);

/// None if it is gone.
fn made(lock: &Path) -> Option<Made> {
    let there = fs::metadata(lock).ok()?;
    Some((there.ino(), there.mtime(), there.mtime_nsec()))
}

/// How much longer somebody waits for the lock.
#[derive(Default)]
struct Patience {
    holder: Option<Made>,
    /// When this holder was seen first.
    since: Duration,
}

impl Patience {
    /// Whether it lasts: a lock that goes from hand to hand is made anew each time, so nobody died with it.
    fn lasts(&mut self, waited: Duration, holder: Option<Made>) -> bool {
        if holder != self.holder {
            *self = Patience { holder, since: waited };
        }
        waited < TURN && waited - self.since < EDIT
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_kubeconfig_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        fs::write(&path, "- a list").unwrap();
        assert!(edit(&path, false, |_| Ok(())).unwrap_err().0.contains("is not a mapping"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "- a list");
    }

    #[test]
    fn an_edit_waits_for_another_and_not_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let lock = Lock::take(&path).unwrap();
        let why = edit(&path, false, |_| Ok(())).unwrap_err().0;
        assert!(why.contains("config.lock exists") && why.contains("remove it"), "{why}");
        let edits = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| edit(&path, false, |_| Ok(())));
            drop(lock);
            waiting.join().unwrap()
        });
        assert!(edits.is_ok());
    }

    #[test]
    fn patience_is_with_each_who_edits_and_not_for_ever() {
        let second = Duration::from_secs(1);
        let held = |number| Some((number, 0, 0));
        let mut patience = Patience::default();
        assert!(patience.lasts(second, held(1)));
        assert!(patience.lasts(EDIT, held(1)), "it is held since a second after the start");
        assert!(patience.lasts(EDIT + second, held(2)), "another has it");
        assert!(patience.lasts(EDIT * 2, None), "it is free, and taken before us");
        assert!(patience.lasts(EDIT * 2 + second, held(2)));
        assert!(!patience.lasts(EDIT * 3 + second, held(2)), "one holds it too long");
        assert!(!patience.lasts(TURN, held(3)), "all together do");
    }
}
