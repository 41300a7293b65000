//! `kubarium up --detach`: the same command again as a process of its own; this one waits until it is ready
//! and everything is applied.
//!
//! The manifests are read here and go to the other process by its standard input. What it prints goes to a
//! file of its own at first, which becomes the cluster's log only once that process has the right to the
//! name: nobody touches the log of a cluster that runs.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::state::Record;
use super::{Failure, progress, say, state};
use crate::cluster::manifests::Manifest;
use clock::Clock;

/// Tells the process that it is the one in the background, and where it prints to.
const MARK: &str = "KUBARIUM_DETACHED";

/// What the process in the background was given by the one that started it.
pub(crate) struct Background {
    printed: PathBuf,
    manifests: Vec<Manifest>,
}

/// What this process was given, if it is the one in the background.
pub(crate) fn background() -> Result<Option<Background>, Failure> {
    let Some(printed) = std::env::var_os(MARK) else { return Ok(None) };
    let manifests = serde_json::from_reader(io::stdin().lock())
        .map_err(|error| Failure::new("cannot read what is to be applied", error))?;
    Ok(Some(Background { printed: printed.into(), manifests }))
}

impl Background {
    /// What is to be applied.
    pub(crate) fn take_manifests(&mut self) -> Vec<Manifest> {
        std::mem::take(&mut self.manifests)
    }

    /// Makes what is printed the cluster's log: called by who has the right to the name.
    pub(crate) fn keep_log(&self, name: &str) -> Result<PathBuf, Failure> {
        let log = state::log_path(&state::folder()?, name);
        let failed = |error| Failure::new(format!("cannot write {}", log.display()), error);
        fs::rename(&self.printed, &log).map_err(failed)?;
        Ok(log)
    }
}

/// Starts it and waits for its record.
pub(crate) fn start(name: &str, manifests: &[Manifest]) -> Result<(), Failure> {
    let folder = state::folder()?;
    let printed = folder.join(format!(".{name}.log.{}", std::process::id()));
    let failed = |error: io::Error| Failure::new("cannot start in the background", error);
    // Who did what is for its owner alone.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    let output = File::options().write(true).create(true).truncate(true).mode(0o600).open(&printed);
    let output = output.map_err(failed)?;
    // For reading what it prints, wherever the file is by then.
    let mut reader = File::open(&printed).map_err(failed)?;
    let spawned = spawn(&printed, output).map_err(failed);
    let outcome = spawned.and_then(|mut child| {
        hand_over(&mut child, manifests);
        super::block_on(wait_until_ready(&mut child, name, &mut reader))
    });
    // Gone already if it became the log.
    let _ = fs::remove_file(&printed);
    tell(&outcome?);
    Ok(())
}

fn spawn(printed: &Path, output: File) -> io::Result<Child> {
    let errors = output.try_clone()?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(std::env::args_os().skip(1))
        .env(MARK, printed)
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(errors);
    // Its own process group, so that Ctrl-C in this shell is not meant for it.
    command.process_group(0);
    command.spawn()
}

/// Should it have ended, waiting for it tells why.
fn hand_over(child: &mut Child, manifests: &[Manifest]) {
    let Some(mut input) = child.stdin.take() else { return };
    let text = serde_json::to_vec(manifests).unwrap_or_default();
    let _ = input.write_all(&text);
}

async fn wait_until_ready(child: &mut Child, name: &str, printed: &mut File) -> Result<Record, Failure> {
    let clock = Clock::real();
    loop {
        if let Ok(Some(_)) = child.try_wait() {
            return Err(why_it_ended(printed));
        }
        let is_its_own = |record: &Record| u32::try_from(record.pid).is_ok_and(|pid| pid == child.id());
        let record = state::record_of(name)?.filter(is_its_own);
        if let Some(record) = record.filter(|record| record.ready) {
            return Ok(record);
        }
        clock.sleep(Duration::from_millis(5)).await;
    }
}

/// What it said last: an error may have several lines.
fn why_it_ended(printed: &mut File) -> Failure {
    let text = io::read_to_string(printed).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().rposition(|line| line.starts_with("error: "));
    let why = last.map_or("it ended at once".into(), |at| lines[at..].join("\n"));
    Failure(why.trim_start_matches("error: ").trim_end().to_owned())
}

fn tell(record: &Record) {
    let Record { name, server, pid, kubeconfig, .. } = record;
    for line in &record.applied {
        progress::done("applied", line);
    }
    say(format!("Cluster {name:?} is ready at {server} (process {pid})."));
    let kubeconfig = kubeconfig.display();
    if record.own_kubeconfig {
        say(format!("Its context {name:?} is in {kubeconfig}; use it with: export KUBECONFIG={kubeconfig}"));
    } else {
        say(format!("kubectl's current context is {name:?} now (in {kubeconfig})."));
    }
    say(format!("Stop it with: kubarium down {name}"));
}
