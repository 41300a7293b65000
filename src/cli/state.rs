//! Which clusters run on this machine: a folder with a file per cluster, locked by its process while it
//! lives.
//!
//! The lock, not the process id, says whether a cluster runs: the kernel takes it back however the process
//! ends, and an id may meanwhile be somebody else's. The record of a process that was killed stays until
//! `down`, or the next cluster of its name, has cleaned up what it left.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::Failure;
use apimachinery::names::dns1123_label;
use apimachinery::time::Time;
use clock::Clock;
use files::write_private;

/// How often a name is tried: whoever looks whether a cluster runs holds its lock for a moment, too.
const ATTEMPTS: usize = 20;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// What a running cluster says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
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
    /// Whether that file holds its context alone, and ends with it.
    #[serde(default)]
    pub own_kubeconfig: bool,
    /// Whether the manifests of `up -f` are applied.
    #[serde(default)]
    pub ready: bool,
    /// What `up -f` has applied, an object a line.
    #[serde(default)]
    pub applied: Vec<String>,
    /// Of which kubarium.
    #[serde(default)]
    pub version: String,
    /// Since when it runs.
    #[serde(default)]
    pub started: Option<Time>,
    /// How long it serves on when it is told to end.
    #[serde(default)]
    pub shutdown_delay: Duration,
    /// What it keeps over restarts, and where.
    #[serde(default)]
    pub data_dir: Option<PathBuf>,
    /// What it prints, if it runs in the background.
    #[serde(default)]
    pub log: Option<PathBuf>,
}

impl Record {
    /// Of a cluster of this process, before anything is applied.
    pub(crate) fn of_own(name: &str, server: &str, nodes: u32, kubeconfig: &Path) -> Record {
        Record {
            name: name.to_owned(),
            pid: i32::try_from(std::process::id()).unwrap_or_default(),
            server: server.to_owned(),
            nodes,
            kubeconfig: std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned()),
            own_kubeconfig: false,
            ready: false,
            applied: vec![],
            version: env!("CARGO_PKG_VERSION").into(),
            started: Some(Clock::real().now()),
            shutdown_delay: Duration::ZERO,
            data_dir: None,
            log: None,
        }
    }
}

/// The folder of all records.
pub(crate) fn folder() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("KUBARIUM_STATE_DIR") {
        return Ok(folder);
    }
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    let state =
        state.ok_or(Failure("neither HOME nor XDG_STATE_HOME is set; set KUBARIUM_STATE_DIR".into()))?;
    Ok(state.join("kubarium"))
}

/// Refuses what is no name of a cluster. Asked before anything else is done with it: names become files.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    if dns1123_label(name).is_empty() {
        return Ok(());
    }
    let rule = "use lower-case letters, digits and '-', 63 at most, with a letter or digit at both ends";
    Err(Failure(format!("--name {name:?}: {rule}")))
}

/// What a cluster in the background prints.
pub(crate) fn log_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

/// Which contexts its forks have.
pub(crate) fn forks_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.forks"))
}

/// The right to a cluster's name, for as long as this is held.
pub(crate) struct Claim {
    record: PathBuf,
    /// The record of a process of this name that was killed.
    pub leftover: Option<Record>,
    _lock: File,
}

impl Claim {
    /// Takes a name that no running cluster has.
    pub(crate) fn take(name: &str) -> Result<Claim, Failure> {
        check_name(name)?;
        let folder = folder()?;
        let failed = |error: io::Error| Failure::new(format!("cannot write to {}", folder.display()), error);
        fs::create_dir_all(&folder).map_err(failed)?;
        let path = lock_path(&folder, name);
        let lock = loop {
            let lock = File::create(&path).map_err(failed)?;
            if !try_lock(&lock) {
                let stop = format!("stop it with: kubarium down --name {name}, or start another with --name");
                return Err(Failure(format!("a cluster named {name:?} is running; {stop}")));
            }
            // Whoever had it may have taken it away with all of theirs.
            if is_at(&lock, &path) {
                break lock;
            }
        };
        let record = record_path(&folder, name);
        let leftover = read(&record);
        let _ = fs::remove_file(&record);
        Ok(Claim { record, leftover, _lock: lock })
    }

    /// Says how the cluster is.
    pub(crate) fn publish(&self, record: &Record) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(record)
            .map_err(|error| Failure::new("cannot write a record", error))?;
        write_private(&self.record, &text)
            .map_err(|error| Failure::new(format!("cannot write {}", self.record.display()), error))
    }
}

/// Nothing of it is left. Whoever has opened the lock meanwhile finds that it is no longer there.
impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.record);
        let _ = fs::remove_file(self.record.with_extension("lock"));
    }
}

/// Whether a file is still the one at its path.
fn is_at(file: &File, path: &Path) -> bool {
    let [Ok(held), Ok(there)] = [file.metadata(), fs::metadata(path)] else { return false };
    (held.dev(), held.ino()) == (there.dev(), there.ino())
}

fn try_lock(lock: &File) -> bool {
    let clock = Clock::real();
    (0..ATTEMPTS).any(|attempt| {
        if attempt > 0 {
            clock.block_thread(PAUSE);
        }
        flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}

/// The clusters of this machine, by name.
#[derive(Default)]
pub(crate) struct Clusters {
    /// Those that run.
    pub running: Vec<Record>,
    /// Those whose process was killed: their records and contexts are still there.
    pub killed: Vec<Record>,
}

/// All that there is to know.
pub(crate) fn clusters() -> Result<Clusters, Failure> {
    let folder = folder()?;
    let Ok(entries) = fs::read_dir(&folder) else { return Ok(Clusters::default()) };
    let mut records: Vec<Record> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| read(&path))
        .collect();
    records.sort_by(|a, b| a.name.cmp(&b.name));
    let (running, killed) = records.into_iter().partition(|record| is_running(&folder, &record.name));
    Ok(Clusters { running, killed })
}

/// What the cluster of a name says of itself, whether or not it still runs.
pub(crate) fn record_of(name: &str) -> Result<Option<Record>, Failure> {
    Ok(read(&record_path(&folder()?, name)))
}

/// Whether the process that holds a name's lock lives.
pub(crate) fn is_running(folder: &Path, name: &str) -> bool {
    let Ok(lock) = File::open(lock_path(folder, name)) else { return false };
    flock(&lock, FlockOperation::NonBlockingLockShared).is_err()
}

fn read(path: &Path) -> Option<Record> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn lock_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.lock"))
}

fn record_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels() {
        for name in ["a", "my-cluster-1"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "../../p", "A B/c", "-a", "a.b", &"x".repeat(64)] {
            let Failure(said) = check_name(name).unwrap_err();
            assert!(said.contains(&format!("--name {name:?}")) && said.contains("lower-case"), "{said}");
        }
    }

    #[test]
    fn a_record_of_an_older_kubarium_is_read() {
        let text = r#"{"name": "a", "pid": 1, "server": "s", "nodes": 1, "kubeconfig": "/k"}"#;
        let record: Record = serde_json::from_str(text).unwrap();
        assert!(record.applied.is_empty() && record.started.is_none());
    }
}
