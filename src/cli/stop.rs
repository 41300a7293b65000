//! How a program that serves is told to end: by signals, once or twice.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::outcome::Failure;

/// Ctrl-C and SIGTERM.
pub(super) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Listens from now on.
    pub(super) fn listen() -> Result<Stop, Failure> {
        let on = |kind| signal(kind).map_err(|error| Failure::new("cannot listen for signals", error));
        Ok(Stop { interrupt: on(SignalKind::interrupt())?, terminate: on(SignalKind::terminate())? })
    }

    /// Until one of them comes.
    pub(super) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Waits for an end; whoever tells it `again` while it serves on for `delay` did not want to wait. An end
/// without delay is so short that it is never cut, since some tell twice what they mean once.
pub(super) async fn end_unless_told<T>(
    ending: impl Future<Output = T>,
    again: impl Future<Output = ()>,
    delay: Duration,
) -> Result<(), Failure> {
    let told_twice = async {
        if delay.is_zero() {
            std::future::pending::<()>().await;
        }
        again.await;
    };
    tokio::select! {
        _ = ending => Ok(()),
        () = told_twice => {
            Err(Failure("told to stop twice, and so it did at once: --shutdown-delay-duration is cut short".into()))
        }
    }
}
