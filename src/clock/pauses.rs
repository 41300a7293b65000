//! `Pauses`: the times for which a clock was held. They are no part of its time: whoever waits waits on after
//! them, and no timestamp tells of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use sync::Mutex;
use tokio::sync::Notify;

/// The pauses of one clock. A clock that was never held pays for one relaxed load.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    /// Whether there ever was one.
    was_held: AtomicBool,
    state: Mutex<PauseState>,
    ended: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
struct PauseState {
    /// How long all pauses took that are over.
    over: Duration,
    /// When the one began that goes on.
    since: Option<(Instant, SystemTime)>,
}

impl Pauses {
    /// Time stands from now on; where it does already, nothing changes.
    pub(crate) fn begin(&self) {
        let mut state = self.state.lock();
        if state.since.is_none() {
            state.since = Some((Instant::now(), SystemTime::now()));
        }
        self.was_held.store(true, Ordering::Relaxed);
    }

    /// Time goes on.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        if let Some((since, _)) = state.since.take() {
            state.over += since.elapsed();
        }
        drop(state);
        self.ended.notify_waiters();
    }

    pub(crate) fn is_on(&self) -> bool {
        self.state().since.is_some()
    }

    /// Of a clock that goes on from where this one stands.
    pub(crate) fn fork(&self) -> Pauses {
        let state = PauseState { over: self.lost(), since: None };
        let was_held = AtomicBool::new(self.was_held.load(Ordering::Relaxed));
        Pauses { was_held, state: Mutex::new(state), ended: Notify::new() }
    }

    /// How long this clock was held, until now.
    pub(crate) fn lost(&self) -> Duration {
        let PauseState { over, since } = self.state();
        over + since.map_or(Duration::ZERO, |(since, _)| since.elapsed())
    }

    /// How long it is since `start`, without the pauses.
    pub(crate) fn since(&self, start: Instant) -> Duration {
        let PauseState { over, since } = self.state();
        let end = since.map_or_else(Instant::now, |(since, _)| since);
        end.saturating_duration_since(start).saturating_sub(over)
    }

    /// What the machine's clock says, behind by the pauses.
    pub(crate) fn now(&self) -> SystemTime {
        let PauseState { over, since } = self.state();
        let now = since.map_or_else(SystemTime::now, |(_, since)| since);
        now.checked_sub(over).unwrap_or(now)
    }

    /// Returns when there is no pause.
    pub(crate) async fn until_over(&self) {
        loop {
            // Asked for before looking, so that an end in between is not missed.
            let ended = self.ended.notified();
            if !self.is_on() {
                return;
            }
            ended.await;
        }
    }

    fn state(&self) -> PauseState {
        if !self.was_held.load(Ordering::Relaxed) {
            return PauseState::default();
        }
        *self.state.lock()
    }
}
