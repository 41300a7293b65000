//! A clock that stands until it is stepped, and who waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sync::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::tracked::yield_now;

/// What happens next on a stepped clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// How long until then.
    pub after: Duration,
    /// Who is due, as they called themselves ([`super::Clock::named`]), sorted; empty when none did.
    pub who: Vec<Arc<str>>,
}

#[derive(Debug)]
pub(crate) struct Stepped {
    start: DateTime<Utc>,
    state: Mutex<SteppedState>,
}

#[derive(Debug, Default)]
struct SteppedState {
    elapsed: Duration,
    next_id: u64,
    /// Keyed by due time, then by order of arrival, so that equal deadlines wake in the order they were set.
    sleepers: BTreeMap<(Duration, u64), Sleeper>,
}

#[derive(Debug)]
struct Sleeper {
    wake: oneshot::Sender<()>,
    name: Option<Arc<str>>,
}

impl Stepped {
    pub(crate) fn new(start: DateTime<Utc>) -> Stepped {
        Stepped { start, state: Mutex::default() }
    }

    /// With nobody who sleeps.
    pub(crate) fn fork(&self) -> Stepped {
        let state = SteppedState { elapsed: self.elapsed(), ..SteppedState::default() };
        Stepped { start: self.start, state: Mutex::new(state) }
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        let passed = TimeDelta::from_std(self.elapsed()).unwrap_or(TimeDelta::MAX);
        self.start.checked_add_signed(passed).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.lock().elapsed
    }

    pub(crate) fn advance(&self, duration: Duration) {
        let mut state = self.lock();
        state.elapsed = state.elapsed.saturating_add(duration);
        let now = state.elapsed;
        while let Some(entry) = state.sleepers.first_entry().filter(|entry| entry.key().0 <= now) {
            // A sleeper that was dropped meanwhile is not owed anything.
            let _ = entry.remove().wake.send(());
        }
    }

    pub(crate) fn next_wake(&self) -> Option<Wake> {
        let state = self.lock();
        let due = state.sleepers.keys().next()?.0;
        let are_next = state.sleepers.range((due, 0)..=(due, u64::MAX));
        let who: BTreeSet<Arc<str>> = are_next.filter_map(|(_, sleeper)| sleeper.name.clone()).collect();
        Some(Wake { after: due.saturating_sub(state.elapsed), who: who.into_iter().collect() })
    }

    /// The deadline is read off the same time that it is set against: a step in between cannot be slept
    /// through.
    pub(crate) async fn sleep_until(
        &self,
        name: &Option<Arc<str>>,
        deadline: impl FnOnce(Duration) -> Duration,
    ) {
        match self.set_sleeper(name, deadline) {
            Some(mut asleep) => drop((&mut asleep.woken).await),
            None => yield_now().await,
        }
    }

    /// None when the deadline has been reached.
    fn set_sleeper(
        &self,
        name: &Option<Arc<str>>,
        deadline: impl FnOnce(Duration) -> Duration,
    ) -> Option<Asleep<'_>> {
        let mut state = self.lock();
        let deadline = deadline(state.elapsed);
        if deadline <= state.elapsed {
            return None;
        }
        let (wake, woken) = oneshot::channel();
        let key = (deadline, state.next_id);
        state.next_id += 1;
        state.sleepers.insert(key, Sleeper { wake, name: name.clone() });
        Some(Asleep { stepped: self, key, woken })
    }

    fn lock(&self) -> MutexGuard<'_, SteppedState> {
        self.state.lock()
    }
}

/// Somebody sleeps; dropped before their time, they are due nothing.
struct Asleep<'a> {
    stepped: &'a Stepped,
    key: (Duration, u64),
    woken: oneshot::Receiver<()>,
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        let sleeper = self.stepped.lock().sleepers.remove(&self.key);
        drop(sleeper);
    }
}
