//! `kubarium down`: stops a cluster and waits until it is gone.

use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};

use super::{Failure, say, state};
use crate::clock::Clock;

/// How long a cluster may take to stop before we say so.
const PATIENCE: Duration = Duration::from_secs(15);

/// Stop a cluster that runs in the background.
#[derive(Args)]
pub struct Down {
    /// The cluster's name.
    #[arg(long, default_value = "kubarium", env = "KUBARIUM_NAME")]
    pub name: String,
}

impl Down {
    /// Stops it.
    pub fn run(self) -> Result<(), Failure> {
        let record = state::find(&self.name)?;
        let pid = Pid::from_raw(record.pid).ok_or(Failure("the cluster's record has no process".into()))?;
        kill_process(pid, Signal::TERM)
            .map_err(|error| Failure::new(format!("cannot stop process {}", record.pid), error))?;
        super::block_on(wait_until_gone(&self.name, record.pid))?;
        say(format!("Cluster {:?} is gone.", self.name));
        Ok(())
    }
}

async fn wait_until_gone(name: &str, pid: i32) -> Result<(), Failure> {
    let folder = state::folder()?;
    let clock = Clock::real();
    while state::is_running(&folder, name) {
        if clock.elapsed() > PATIENCE {
            return Err(Failure(format!("process {pid} does not stop; kill -9 {pid} ends it")));
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
