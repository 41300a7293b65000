//! `kubarium up --detach`: the same command again as a process of its own; this one waits until it is ready.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Failure, say, state};
use crate::clock::Clock;

/// Tells the process that it is the one in the background.
pub const MARK: &str = "KUBARIUM_DETACHED";

/// Starts it and waits for its record.
pub fn start(name: &str) -> Result<(), Failure> {
    let folder = state::folder()?;
    let log = folder.join(format!("{name}.log"));
    let failed = |error: std::io::Error| Failure::new("cannot start in the background", error);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let output = File::create(&log).map_err(failed)?;
    let errors = output.try_clone().map_err(failed)?;
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command
        .args(std::env::args_os().skip(1))
        .env(MARK, "1")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    // Its own process group, so that Ctrl-C in this shell is not meant for it.
    command.process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    super::block_on(wait_until_ready(&mut child, name, &log))
}

async fn wait_until_ready(child: &mut Child, name: &str, log: &std::path::Path) -> Result<(), Failure> {
    let clock = Clock::real();
    loop {
        if let Ok(Some(_)) = child.try_wait() {
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let last = text.lines().rev().find(|line| line.starts_with("error: "));
            let why = last.map_or("it ended at once", |line| line.trim_start_matches("error: "));
            return Err(Failure(why.to_owned()));
        }
        let ready = state::running()?.into_iter().find(|record| record.name == name);
        if let Some(record) =
            ready.filter(|record| u32::try_from(record.pid).is_ok_and(|pid| pid == child.id()))
        {
            say(format!("Cluster {name:?} is ready at {} (process {}).", record.server, record.pid));
            say(format!("Stop it with: kubarium down --name {name}"));
            return Ok(());
        }
        clock.sleep(Duration::from_millis(5)).await;
    }
}
