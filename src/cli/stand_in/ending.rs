//! When a program under another's name ends: told by a signal, or since nobody is left who would tell it.

use std::time::Duration;

use crate::cli::outcome::Failure;
use crate::cli::parent::Parent;
use crate::cli::stop::Stop;

/// Set, it goes on when who started it is gone: for a shell script that leaves it running.
const OUTLIVE: &str = "KUBARIUM_OUTLIVE_PARENT";
/// How long requests under way and the store may take at the end: a suite that waits for the end wants it
/// within a second.
pub(crate) const PATIENCE: Duration = Duration::from_millis(700);

/// Waits for the end. Made before anything else, so that nothing is missed.
pub(crate) struct Ending {
    stop: Stop,
    parent: Parent,
}

impl Ending {
    /// Listens for signals, and remembers whose child this is.
    pub(crate) fn listen() -> Result<Ending, Failure> {
        let stop = Stop::listen()?;
        let is_bound = std::env::var_os(OUTLIVE).is_none_or(|value| value.is_empty());
        Ok(Ending { stop, parent: if is_bound { Parent::now() } else { Parent::nobody() } })
    }

    /// Listens for signals alone: who starts a service may go.
    pub(crate) fn of_service() -> Result<Ending, Failure> {
        Ok(Ending { stop: Stop::listen()?, parent: Parent::nobody() })
    }

    /// Returns at the first reason to end.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            () = self.stop.wait() => {}
            () = self.parent.gone() => {}
        }
    }
}
