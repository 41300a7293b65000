//! Which contexts a cluster's forks have, and in which files: told beside the cluster's record, so that
//! whoever cleans up after it finds them, also when its process was killed.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Failure, kubeconfig, state};

/// Where the context of a fork is.
#[derive(Serialize, Deserialize)]
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
        let path = path(parent)?;
        let failed = |error: std::io::Error| Failure::new(format!("cannot write {}", path.display()), error);
        let mut line =
            serde_json::to_vec(self).map_err(|error| Failure::new("cannot write a context", error))?;
        line.push(b'\n');
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        file.write_all(&line).map_err(failed)
    }

    /// Takes it out, if it is still this fork's.
    fn clean(&self) -> Result<bool, Failure> {
        kubeconfig::clean_at(&self.kubeconfig, &self.name, self.own_kubeconfig, &self.server)
    }
}

/// Takes out the contexts of a fork that has ended.
pub(crate) fn clean(parent: &str, fork: &str) -> Result<(), Failure> {
    let mut of_fork = told(parent)?.into_iter().filter(|context| context.name == fork);
    of_fork.try_for_each(|context| context.clean().map(drop))
}

/// Takes out those of all forks, which have ended with their parent, the newest first: so what was current
/// before them is current again.
pub(crate) fn clean_all(parent: &str) -> Result<(), Failure> {
    let cleaned: Vec<Result<bool, Failure>> = told(parent)?.iter().rev().map(ForkContext::clean).collect();
    match fs::remove_file(path(parent)?) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Failure::new(format!("cannot forget the forks of {parent:?}"), error));
        }
        _ => {}
    }
    cleaned.into_iter().try_for_each(|cleaned| cleaned.map(drop))
}

/// A line that was cut short tells of a context that was never written.
fn told(parent: &str) -> Result<Vec<ForkContext>, Failure> {
    let text = fs::read_to_string(path(parent)?).unwrap_or_default();
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn path(parent: &str) -> Result<PathBuf, Failure> {
    Ok(state::forks_path(&state::folder()?, parent))
}
