//! Which contexts a cluster's forks have, and in which files: told beside the cluster's record, so that
//! whoever cleans up after it finds them, also when its process was killed.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Failure, kubeconfig, state};

/// Where the context of a fork is.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkContext {
    /// Its name, which is the fork's.
    pub name: String,
    /// The fork's address: who has the name elsewhere, or later, has another.
    pub server: String,
    /// The file.
    pub kubeconfig: PathBuf,
    /// Whether the file was made for it.
    pub own_kubeconfig: bool,
}

impl ForkContext {
    /// Told before the context is written: what nobody knows of, nobody takes out again. A line each, so that
    /// forks may be made at once.
    pub(crate) fn remember(&self, parent: &str) -> Result<(), Failure> {
        self.remember_in(&path(parent)?)
    }

    fn remember_in(&self, path: &Path) -> Result<(), Failure> {
        let failed = cannot_write(path);
        let mut line =
            serde_json::to_vec(self).map_err(|error| Failure::new("cannot write a context", error))?;
        line.push(b'\n');
        let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(&failed)?;
        file.lock().map_err(&failed)?;
        file.write_all(&line).map_err(failed)
    }

    /// Takes it out, if it is still this fork's.
    fn clean(&self) -> Result<bool, Failure> {
        kubeconfig::clean_at(&self.kubeconfig, &self.name, self.own_kubeconfig, &self.server)
    }
}

/// Takes out the contexts of a fork that has ended.
pub(crate) fn clean(parent: &str, fork: &str) -> Result<(), Failure> {
    let path = path(parent)?;
    let of_fork: Vec<ForkContext> = told(&path).into_iter().filter(|context| context.name == fork).collect();
    of_fork.iter().try_for_each(|context| context.clean().map(drop))?;
    forget(&path, &of_fork)
}

/// What goes on is written over the beginning before the end is cut off: whoever is killed meanwhile leaves
/// lines that are there twice, and none is lost.
fn forget(path: &Path, gone: &[ForkContext]) -> Result<(), Failure> {
    let failed = cannot_write(path);
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(&failed)?,
    };
    file.lock().map_err(&failed)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(&failed)?;
    let goes_on = |line: &&str| of_line(line).is_some_and(|context| !gone.contains(&context));
    let kept: String = text.split_inclusive('\n').filter(goes_on).collect();
    file.rewind().map_err(&failed)?;
    file.write_all(kept.as_bytes()).map_err(&failed)?;
    file.set_len(kept.len() as u64).map_err(failed)
}

/// Takes out those of all forks, which have ended with their parent, the newest first: so what was current
/// before them is current again.
pub(crate) fn clean_all(parent: &str) -> Result<(), Failure> {
    let path = path(parent)?;
    let cleaned: Vec<Result<bool, Failure>> = told(&path).iter().rev().map(ForkContext::clean).collect();
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Failure::new(format!("cannot forget the forks of {parent:?}"), error));
        }
        _ => {}
    }
    cleaned.into_iter().try_for_each(|cleaned| cleaned.map(drop))
}

fn told(path: &Path) -> Vec<ForkContext> {
    fs::read_to_string(path).unwrap_or_default().lines().filter_map(of_line).collect()
}

/// A line that was cut short tells of a context that was never written.
fn of_line(line: &str) -> Option<ForkContext> {
    serde_json::from_str(line).ok()
}

fn cannot_write(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::new(format!("cannot write {}", path.display()), error)
}

fn path(parent: &str) -> Result<PathBuf, Failure> {
    Ok(state::forks_path(&state::folder()?, parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_that_has_ended_leaves_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.forks");
        let context = |name: &str| ForkContext {
            name: name.into(),
            server: format!("https://{name}.example"),
            kubeconfig: folder.path().join("kubeconfig"),
            own_kubeconfig: false,
        };
        forget(&path, &[context("b")]).unwrap();
        assert!(!path.exists());
        for name in ["b", "a-longer-name", "c"] {
            context(name).remember_in(&path).unwrap();
        }
        forget(&path, &[context("a-longer-name")]).unwrap();
        let names: Vec<String> = told(&path).into_iter().map(|context| context.name).collect();
        assert_eq!(
            (names, fs::read_to_string(&path).unwrap().lines().count()),
            (vec!["b".into(), "c".into()], 2)
        );
        context("d").remember_in(&path).unwrap();
        forget(&path, &["b", "c", "d"].map(context)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }
}
