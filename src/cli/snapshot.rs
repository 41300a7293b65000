//! `kubarium snapshot save|restore|export`: a whole cluster in a file, and back; its objects as YAML.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::connection::Context;
use super::{Failure, choice, run_folder, say};
use crate::cluster::{Export, Snapshot, store_copy};
use clock::Clock;
use files::is_stream;

/// What stands for the standard input, and for the standard output.
const STANDARD: &str = "-";

/// Keep a whole cluster in a file, make a data dir of it, or write its objects as YAML.
#[derive(Subcommand)]
pub enum SnapshotCommand {
    /// Write a running cluster to a file, which `up --snapshot` starts another from.
    ///
    /// The file has mode 0600: it holds all Secrets, and the keys that the cluster signs with. One that ends
    /// in .db is etcd's: `etcdctl snapshot restore` makes an etcd of it. It has no keys.
    Save {
        /// The file, - for the standard output; one for etcd ends in .db, and is not there yet.
        #[arg(value_name = "FILE|FILE.db")]
        file: PathBuf,
        /// The cluster's name; else the only one that runs, or that of kubectl's current context.
        #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME")]
        name: Option<String>,
        /// Leave out the keys: a cluster that is started from it trusts other certificates and tokens.
        #[arg(long)]
        without_keys: bool,
    },
    /// Make a data dir of a file, for `up --data-dir`.
    Restore {
        /// The file, - for the standard input, or the folder that a failed `kubarium run` has left.
        file: PathBuf,
        /// The data dir, which is not there yet or empty.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
    },
    /// Write all objects as YAML that `kubectl apply` takes, to the standard output.
    ///
    /// Without status and what else the server writes; namespaces and definitions of custom kinds first. What
    /// controllers and the cluster itself have made is left out: they make it again. Secrets are in it.
    Export {
        /// A file that `snapshot save` wrote, - for the standard input, or the folder that a failed
        /// `kubarium run` has left; else a running cluster is asked.
        file: Option<PathBuf>,
        /// The cluster's name; else the only one that runs, or that of kubectl's current context.
        #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME")]
        name: Option<String>,
        /// Also what controllers and the cluster itself have made.
        #[arg(long)]
        all: bool,
    },
}

impl SnapshotCommand {
    /// Does it.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            SnapshotCommand::Save { file, name, without_keys } => save(&file, name.as_deref(), without_keys),
            SnapshotCommand::Restore { file, data_dir } => restore(&file, &data_dir),
            SnapshotCommand::Export { file, name, all } => export(file.as_deref(), name.as_deref(), all),
        }
    }
}

fn save(file: &Path, name: Option<&str>, without_keys: bool) -> Result<(), Failure> {
    if store_copy::is_for_etcd(file) {
        let snapshot = live(name, false)?;
        super::block_on(async { store_copy::save(&snapshot, file).map_err(failure) })?;
        say(format!("saved {} ({snapshot}) for etcd: without the cluster's keys", file.display()));
        return Ok(());
    }
    if file == Path::new(STANDARD) {
        let out = std::io::stdout();
        return print(&out, out.is_terminal(), || live(name, !without_keys));
    }
    let snapshot = live(name, !without_keys)?;
    snapshot.write(file).map_err(failure)?;
    // What goes through a pipe must not have words of ours in it.
    if !is_stream(file) {
        say(format!("saved {} ({snapshot})", file.display()));
    }
    Ok(())
}

/// Whoever is refused does not wait until a whole cluster is fetched.
fn print(
    mut out: impl Write,
    is_terminal: bool,
    fetch: impl FnOnce() -> Result<Snapshot, Failure>,
) -> Result<(), Failure> {
    if is_terminal {
        return Err(Failure(
            "a snapshot is not for a terminal; say a file, or lead it through a pipe".into(),
        ));
    }
    let written = out.write_all(&fetch()?.encode()).and_then(|()| out.flush());
    written.map_err(|error| Failure::new("cannot write the snapshot", error))
}

/// One that was saved: a file, the standard input, or what a failed run has left.
pub(super) fn read(file: &Path) -> Result<Snapshot, Failure> {
    if file != Path::new(STANDARD) {
        return Snapshot::read(&run_folder::snapshot_of(file)).map_err(failure);
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Failure::new("cannot read the standard input", error))?;
    Snapshot::decode(bytes.into(), "the standard input").map_err(failure)
}

fn restore(file: &Path, data_dir: &Path) -> Result<(), Failure> {
    let snapshot = read(file)?;
    snapshot.restore(data_dir, &Clock::real()).map_err(failure)?;
    say(format!("restored {} to {} ({snapshot})", file.display(), data_dir.display()));
    say(format!("start it with: kubarium up --data-dir {} --nodes {}", data_dir.display(), snapshot.nodes()));
    Ok(())
}

fn export(file: Option<&Path>, name: Option<&str>, all: bool) -> Result<(), Failure> {
    let text = match file {
        Some(file) => {
            let snapshot = read(file)?;
            let exported = async { snapshot.export(Export::new().all(all)).await.map_err(failure) };
            super::block_on(exported)?
        }
        None => {
            let path = format!("/kubarium/v1/export?all={all}");
            let answer = super::block_on(connect(name)?.get(&path))?;
            String::from_utf8_lossy(&answer).into_owned()
        }
    };
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    Ok(())
}

/// A running cluster as it is now.
pub(super) fn live(name: Option<&str>, keys: bool) -> Result<Snapshot, Failure> {
    let path = format!("/kubarium/v1/snapshot?keys={keys}");
    let answer = super::block_on(connect(name)?.get(&path))?;
    Snapshot::decode(answer.into(), "the cluster's answer").map_err(failure)
}

fn connect(name: Option<&str>) -> Result<Context, Failure> {
    choice::reached(name).map(|(_, context)| context)
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_fetched_for_a_terminal() {
        let never = || -> Result<Snapshot, Failure> { panic!("a snapshot was fetched") };
        let Failure(why) = print(Vec::new(), true, never).unwrap_err();
        assert!(why.contains("not for a terminal"), "{why}");
    }
}
