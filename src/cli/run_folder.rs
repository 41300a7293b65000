//! The folder of `kubarium run`: where its cluster's files are, and what is left behind of a run that failed.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::Failure;
use entropy::Entropy;

/// All that may be left behind. What an earlier run has left of it goes when there is something new.
const LEFT: [&str; 7] =
    ["audit.log", "audit-policy.yaml", "trace.json", "objects.yaml", "events.txt", "logs", SNAPSHOT];
/// The whole cluster, as `snapshot save` writes it.
pub(crate) const SNAPSHOT: &str = "cluster.snapshot";
/// What only a run leaves.
const SIGN: &str = "trace.json";

/// The file of a snapshot: itself, or the one in a folder that a run has left.
pub(crate) fn snapshot_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(SNAPSHOT) } else { path.to_owned() }
}

/// A new folder that its owner alone may enter, under a name that nobody can foresee; it is gone in the end.
pub(crate) struct RunFolder {
    path: PathBuf,
    /// Where to leave what is in it; else it stays itself.
    keep: Option<PathBuf>,
    is_left: bool,
}

impl RunFolder {
    /// In the temporary folder.
    pub(crate) fn temporary(name: &str) -> Result<RunFolder, Failure> {
        let path = new_folder(&std::env::temp_dir(), &format!("kubarium-{name}-"))?;
        Ok(RunFolder { path, keep: None, is_left: false })
    }

    /// In the folder where it may be left behind.
    pub(crate) fn below(keep: &Path) -> Result<RunFolder, Failure> {
        let failed = |error| Failure::new(format!("cannot make {}", keep.display()), error);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(keep).map_err(failed)?;
        check(keep)?;
        let path = new_folder(keep, ".run-")?;
        Ok(RunFolder { path, keep: Some(keep.to_owned()), is_left: false })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves what is in it behind; says where.
    pub(crate) fn leave(&mut self) -> Result<PathBuf, Failure> {
        let Some(keep) = &self.keep else {
            self.is_left = true;
            return Ok(self.path.clone());
        };
        for name in LEFT {
            let (new, old) = (self.path.join(name), keep.join(name));
            let moved =
                remove(&old).and_then(|()| if new.exists() { fs::rename(&new, &old) } else { Ok(()) });
            moved.map_err(|error| Failure::new(format!("cannot write {}", old.display()), error))?;
        }
        Ok(keep.clone())
    }
}

impl Drop for RunFolder {
    /// What the command itself has put into a folder of its own choice stays.
    fn drop(&mut self) {
        if !self.is_left {
            let _ = fs::remove_dir_all(&self.path);
        }
        if let Some(keep) = &self.keep {
            let _ = fs::remove_dir(keep);
        }
    }
}

fn new_folder(parent: &Path, prefix: &str) -> Result<PathBuf, Failure> {
    let parent = std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned());
    let path = parent.join(format!("{prefix}{}", Entropy::from_system().hex(16)));
    let made = fs::DirBuilder::new().mode(0o700).create(&path);
    made.map_err(|error| Failure::new(format!("cannot make {}", path.display()), error))?;
    Ok(path)
}

/// It has to be ours alone to write to, and hold nothing that could be taken for what a run has left.
fn check(keep: &Path) -> Result<(), Failure> {
    let refused = |why: &str| Err(Failure(format!("--keep {}: {why}; choose another", keep.display())));
    let about = fs::symlink_metadata(keep).map_err(|error| Failure::new(keep.display(), error))?;
    if !about.is_dir() {
        return refused("it is no folder, but a link or something else");
    }
    if about.uid() != geteuid().as_raw() || about.mode() & 0o002 != 0 {
        return refused("somebody else may write there");
    }
    let is_there = |name: &&str| keep.join(name).symlink_metadata().is_ok();
    match LEFT.iter().find(|name| is_there(name)) {
        Some(name) if !is_there(&SIGN) => refused(&format!("it has {name}, which no earlier run has left")),
        _ => Ok(()),
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(keep: &Path) -> String {
        RunFolder::below(keep).err().map(|Failure(why)| why).unwrap_or_default()
    }

    #[test]
    fn what_an_earlier_run_has_left_goes_and_what_the_command_has_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let keep = folder.path().join("kept");
        for (number, name) in ["logs", "events.txt"].into_iter().enumerate() {
            let mut run = RunFolder::below(&keep).unwrap();
            assert_eq!(fs::metadata(run.path()).unwrap().mode() & 0o777, 0o700);
            fs::write(run.path().join(SIGN), number.to_string()).unwrap();
            fs::create_dir(run.path().join(name)).unwrap();
            fs::write(keep.join("of-the-command"), "").unwrap();
            assert_eq!(run.leave().unwrap(), keep);
            drop(run);
            let mut left: Vec<_> =
                fs::read_dir(&keep).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            left.sort();
            let mut expected = [name, "of-the-command", SIGN];
            expected.sort_unstable();
            assert_eq!(left, expected);
            assert_eq!(fs::read_to_string(keep.join(SIGN)).unwrap(), number.to_string());
        }
    }

    #[test]
    fn links_folders_of_all_and_what_is_not_of_a_run_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link, open] = ["real", "link", "open"].map(|name| folder.path().join(name));
        fs::create_dir_all(real.join("logs")).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(refusal(&link).contains("a link"), "{}", refusal(&link));
        assert!(refusal(&real).contains("it has logs"), "{}", refusal(&real));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(refusal(&open).contains("somebody else"), "{}", refusal(&open));
        assert!(real.join("logs").exists() && open.exists());
    }

    #[test]
    fn nothing_is_left_unless_it_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let keep = folder.path().join("kept");
        drop(RunFolder::below(&keep).unwrap());
        assert!(!keep.exists());
        let mut run = RunFolder::temporary("of-a-test").unwrap();
        let left = run.leave().unwrap();
        drop(run);
        assert!(left.exists());
        fs::remove_dir(&left).unwrap();
    }
}
