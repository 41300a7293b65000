//! Time for one cluster: real, or stepped by hand in a test. Nothing else reads or waits for time.
//!
//! Upstream's `k8s.io/utils/clock`. Kubernetes' components take a clock so that a test can own time; here
//! every component of a cluster shares one, so that a stepped cluster is deterministic as a whole. Tokio's
//! own paused time is not used: it is per runtime, and one runtime may hold many clusters.

#![warn(missing_docs)]

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use sync::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// The waited-for future did not finish within its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("timed out")]
pub struct Elapsed;

/// A cluster's clock. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Clock {
    source: TimeSource,
}

#[derive(Clone, Debug)]
enum TimeSource {
    Real(Instant),
    Stepped(Arc<Stepped>),
}

#[derive(Debug)]
struct Stepped {
    start: DateTime<Utc>,
    state: Mutex<SteppedState>,
}

#[derive(Debug, Default)]
struct SteppedState {
    elapsed: Duration,
    next_id: u64,
    /// Keyed by due time, then by order of arrival, so that equal deadlines wake in the order they were set.
    sleepers: BTreeMap<(Duration, u64), oneshot::Sender<()>>,
}

/// Later by `delay`; the end of time when that is later still.
pub fn after(time: DateTime<Utc>, delay: Duration) -> DateTime<Utc> {
    let delta = TimeDelta::from_std(delay).unwrap_or(TimeDelta::MAX);
    time.checked_add_signed(delta).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

impl Clock {
    /// The machine's clock.
    pub fn real() -> Clock {
        Clock { source: TimeSource::Real(Instant::now()) }
    }

    /// A clock that stands at `start` until [`Clock::advance`] moves it.
    pub fn stepped(start: DateTime<Utc>) -> Clock {
        let state = Mutex::default();
        Clock { source: TimeSource::Stepped(Arc::new(Stepped { start, state })) }
    }

    /// A clock that goes on by itself from where this one stands: of a stepped one, with nobody who sleeps by
    /// it yet. Both count their time from the same beginning.
    pub fn fork(&self) -> Clock {
        let TimeSource::Stepped(stepped) = &self.source else { return self.clone() };
        let elapsed = stepped.lock().elapsed;
        let state = Mutex::new(SteppedState { elapsed, ..SteppedState::default() });
        Clock { source: TimeSource::Stepped(Arc::new(Stepped { start: stepped.start, state })) }
    }

    /// Whether a test steps it.
    pub fn is_stepped(&self) -> bool {
        matches!(self.source, TimeSource::Stepped(_))
    }

    /// Wall time, as it appears in timestamps.
    pub fn now(&self) -> DateTime<Utc> {
        match &self.source {
            TimeSource::Real(_) => DateTime::<Utc>::from(std::time::SystemTime::now()),
            TimeSource::Stepped(stepped) => stepped.start + to_delta(stepped.lock().elapsed),
        }
    }

    /// Time since this clock was made; never goes back. For measuring and for deadlines.
    pub fn elapsed(&self) -> Duration {
        match &self.source {
            TimeSource::Real(start) => start.elapsed(),
            TimeSource::Stepped(stepped) => stepped.lock().elapsed,
        }
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        match &self.source {
            TimeSource::Real(_) => tokio::time::sleep(duration).await,
            TimeSource::Stepped(stepped) => stepped.sleep_until(|now| now + duration).await,
        }
    }

    /// Waits until [`Clock::elapsed`] has reached `deadline`.
    pub async fn sleep_until(&self, deadline: Duration) {
        match &self.source {
            TimeSource::Real(_) => self.sleep(deadline.saturating_sub(self.elapsed())).await,
            TimeSource::Stepped(stepped) => stepped.sleep_until(|_| deadline).await,
        }
    }

    /// Blocks the calling thread, in real time whatever the clock: for what only the operating system can say
    /// when it is done, such as another process letting go of a file. Never within a task.
    pub fn block_thread(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    /// Runs `future` for at most `duration`.
    pub async fn timeout<F: Future>(&self, duration: Duration, future: F) -> Result<F::Output, Elapsed> {
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = self.sleep(duration) => Err(Elapsed),
        }
    }

    /// Moves a stepped clock forward and wakes, in order of their deadlines, all whose time has come.
    ///
    /// # Panics
    /// On a real clock: only a test steps time.
    pub fn advance(&self, duration: Duration) {
        let TimeSource::Stepped(stepped) = &self.source else {
            panic!("only a stepped clock can be advanced");
        };
        let mut state = stepped.lock();
        state.elapsed += duration;
        let now = state.elapsed;
        while let Some(entry) = state.sleepers.first_entry().filter(|entry| entry.key().0 <= now) {
            // A sleeper that was dropped meanwhile is not owed anything.
            let _ = entry.remove().send(());
        }
    }

    /// How long until the next sleeper of a stepped clock is due: what a test advances by to let one thing
    /// happen.
    pub fn next_wake(&self) -> Option<Duration> {
        let TimeSource::Stepped(stepped) = &self.source else { return None };
        let mut state = stepped.lock();
        state.sleepers.retain(|_, sleeper| !sleeper.is_closed());
        let due = state.sleepers.keys().next()?.0;
        Some(due.saturating_sub(state.elapsed))
    }
}

impl Stepped {
    fn lock(&self) -> MutexGuard<'_, SteppedState> {
        self.state.lock()
    }

    /// The deadline is read off the same time that it is set against: a step in between cannot be slept
    /// through.
    async fn sleep_until(&self, deadline: impl FnOnce(Duration) -> Duration) {
        let woken = self.set_sleeper(deadline);
        match woken {
            Some(woken) => drop(woken.await),
            None => tokio::task::yield_now().await,
        }
    }

    /// None when the deadline has been reached.
    fn set_sleeper(&self, deadline: impl FnOnce(Duration) -> Duration) -> Option<oneshot::Receiver<()>> {
        let mut state = self.lock();
        let deadline = deadline(state.elapsed);
        if deadline <= state.elapsed {
            return None;
        }
        let (wake, woken) = oneshot::channel();
        let key = (deadline, state.next_id);
        state.next_id += 1;
        state.sleepers.insert(key, wake);
        Some(woken)
    }
}

fn to_delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stepped_clock_moves_only_when_told() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(10)).await }
        });
        while clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(9));
        assert_eq!(clock.next_wake(), Some(Duration::from_secs(1)));
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        sleeper.await.unwrap();
        assert_eq!(clock.now().timestamp(), 10);
    }

    #[tokio::test]
    async fn a_fork_goes_on_from_where_its_parent_stands_and_wakes_nobody_there() {
        let parent = Clock::stepped(DateTime::UNIX_EPOCH);
        parent.advance(Duration::from_secs(5));
        let mut sleeper = std::pin::pin!(parent.sleep(Duration::from_secs(1)));
        assert!(futures::poll!(&mut sleeper).is_pending());
        let fork = parent.fork();
        assert_eq!((fork.elapsed(), fork.next_wake()), (Duration::from_secs(5), None));
        fork.advance(Duration::from_secs(60));
        assert!(futures::poll!(&mut sleeper).is_pending());
        assert_eq!((parent.now().timestamp(), fork.now().timestamp()), (5, 65));
        assert!(!Clock::real().fork().is_stepped());
    }

    #[tokio::test]
    async fn a_deadline_is_absolute() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let deadline = clock.elapsed() + Duration::from_secs(10);
        let waiting = clock.sleep_until(deadline);
        clock.advance(Duration::from_secs(9));
        let mut waiting = std::pin::pin!(waiting);
        assert!(futures::poll!(&mut waiting).is_pending());
        assert_eq!(clock.next_wake(), Some(Duration::from_secs(1)));
        clock.advance(Duration::from_secs(1));
        waiting.await;
        clock.sleep_until(Duration::from_secs(3)).await;
    }
}
