//! Which clusters run on this machine: a folder with a file per cluster, locked by its process while it
//! lives.
//!
//! The lock, not the process id, says whether a cluster runs: the kernel takes it back however the process
//! ends, and an id may meanwhile be somebody else's.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::Failure;
use crate::files::write_private;

/// What a running cluster says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its name, which is also its context in the kubeconfig.
    pub name: String,
    /// Its process.
    pub pid: i32,
    /// Its address, as `https://127.0.0.1:40123`.
    pub server: String,
    /// Simulated nodes.
    pub nodes: u32,
    /// The file that its context was written to.
    pub kubeconfig: PathBuf,
}

/// The folder of all records.
pub fn folder() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("KUBARIUM_STATE_DIR") {
        return Ok(folder);
    }
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    let state =
        state.ok_or(Failure("neither HOME nor XDG_STATE_HOME is set; set KUBARIUM_STATE_DIR".into()))?;
    Ok(state.join("kubarium"))
}

/// The right to a cluster's name, for as long as this is held.
pub struct Claim {
    record: PathBuf,
    _lock: File,
}

impl Claim {
    /// Takes a name that no running cluster has.
    pub fn take(name: &str) -> Result<Claim, Failure> {
        if !crate::apimachinery::names::dns1123_label(name).is_empty() {
            return Err(Failure(format!("--name {name:?}: use lower-case letters, digits and '-'")));
        }
        let folder = folder()?;
        let failed =
            |error: std::io::Error| Failure::new(format!("cannot write to {}", folder.display()), error);
        fs::create_dir_all(&folder).map_err(failed)?;
        let lock = File::create(lock_path(&folder, name)).map_err(failed)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let stop = format!("stop it with: kubarium down --name {name}, or start another with --name");
            return Err(Failure(format!("a cluster named {name:?} is running; {stop}")));
        }
        Ok(Claim { record: record_path(&folder, name), _lock: lock })
    }

    /// Says that the cluster is ready.
    pub fn publish(&self, record: &Record) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(record)
            .map_err(|error| Failure::new("cannot write a record", error))?;
        write_private(&self.record, &text)
            .map_err(|error| Failure::new(format!("cannot write {}", self.record.display()), error))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.record);
    }
}

/// The running clusters, by name. Records of processes that are gone are cleared away.
pub fn running() -> Result<Vec<Record>, Failure> {
    let folder = folder()?;
    let Ok(entries) = fs::read_dir(&folder) else { return Ok(vec![]) };
    let mut records: Vec<Record> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok())
        .filter(|record: &Record| is_running(&folder, &record.name))
        .collect();
    records.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(records)
}

/// A running cluster.
pub fn find(name: &str) -> Result<Record, Failure> {
    let none = || Failure(format!("no cluster named {name:?} is running; see: kubarium get clusters"));
    running()?.into_iter().find(|record| record.name == name).ok_or_else(none)
}

/// Whether the process that holds a name's lock lives.
pub fn is_running(folder: &Path, name: &str) -> bool {
    let Ok(lock) = File::open(lock_path(folder, name)) else { return false };
    if flock(&lock, FlockOperation::NonBlockingLockShared).is_err() {
        return true;
    }
    let _ = fs::remove_file(record_path(folder, name));
    false
}

fn lock_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.lock"))
}

fn record_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}
