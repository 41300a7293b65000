//! When a program under another's name ends: told by a signal, or since nobody is left who would tell it.

use std::time::Duration;

use rustix::process::{Pid, getppid};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::outcome::Failure;
use clock::Clock;

/// Set, it goes on when who started it is gone: for a shell script that leaves it running.
const OUTLIVE: &str = "KUBARIUM_OUTLIVE_PARENT";
/// How often it is looked who the parent is. A signal at the parent's death would be of the thread that made
/// this process, and threads of test suites end early.
const LOOK: Duration = Duration::from_millis(200);
/// How long requests under way and the store may take at the end: a suite that waits for the end wants it
/// within a second.
pub const PATIENCE: Duration = Duration::from_millis(700);

/// Waits for the end. Made before anything else, so that nothing is missed.
pub struct Ending {
    interrupt: Signal,
    terminate: Signal,
    parent: Option<Pid>,
}

impl Ending {
    /// Listens for signals, and remembers whose child this is.
    pub fn listen() -> Result<Ending, Failure> {
        let on = |kind| signal(kind).map_err(|error| Failure::new("cannot listen for signals", error));
        let is_bound = std::env::var_os(OUTLIVE).is_none_or(|value| value.is_empty());
        Ok(Ending {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            // The child of init, or of nobody as in a container, is a service of its own.
            parent: getppid().filter(|parent| is_bound && !parent.is_init()),
        })
    }

    /// Returns at the first reason to end.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = orphaned(self.parent) => {}
        }
    }
}

async fn orphaned(parent: Option<Pid>) {
    let clock = Clock::real();
    while parent.is_none() || parent == getppid() {
        clock.sleep(LOOK).await;
    }
}
