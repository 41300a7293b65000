//! A clock that stands until it is stepped, and who waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sync::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::beats::{Beat, Beats, Place};
use super::changes::Changes;
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
    /// How often somebody said that something has changed.
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct SteppedState {
    elapsed: Duration,
    next_id: u64,
    sleepers: BTreeMap<Place, Sleeper>,
    beats: Beats,
    changes: Changes,
    /// So many want every time to come.
    exact: usize,
}

#[derive(Debug)]
struct Sleeper {
    wake: oneshot::Sender<()>,
    name: Option<Arc<str>>,
    manner: Manner,
    /// How often something had changed when they began to wait.
    since: u64,
}

/// What it means to a step of time that somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Time stops there.
    Due,
    /// Time stops there if something has changed since they began to wait.
    Look,
    /// Time does not stop for them.
    Idle,
    /// Nor even when every time is to come, and nobody is told that they are next.
    Pulse,
}

impl Stepped {
    pub(crate) fn new(start: DateTime<Utc>) -> Stepped {
        Stepped { start, state: Mutex::default(), changes: AtomicU64::new(0) }
    }

    /// With nobody who sleeps.
    pub(crate) fn fork(&self) -> Stepped {
        let state = SteppedState { elapsed: self.elapsed(), ..SteppedState::default() };
        Stepped { state: Mutex::new(state), ..Stepped::new(self.start) }
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
        let to = state.elapsed.saturating_add(duration);
        state.advance_to(to, SteppedState::first);
    }

    /// On to what is next, or by `most`; says whether there was something.
    pub(crate) fn step(&self, most: Duration) -> bool {
        let mut state = self.lock();
        state.changes.count(self.changes.load(Ordering::SeqCst));
        let end = state.elapsed.saturating_add(most);
        let next = state.next_due().filter(|due| *due <= end);
        let to = next.unwrap_or(end).max(state.elapsed);
        if state.exact == 0
            && let Some(at) = state.beats.last_until(to)
        {
            state.beat(at);
            return true;
        }
        // Time goes on from here: nobody looks yet for whom pulses come.
        let who = if next.is_some() { SteppedState::first_awaited } else { SteppedState::first };
        state.advance_to(to, who);
        next.is_some()
    }

    pub(crate) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// The last change is none.
    pub(crate) fn overlook_change(&self) {
        let less = |changes: u64| changes.checked_sub(1);
        let _ = self.changes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }

    pub(crate) fn stir(&self) {
        self.lock().changes.times += 1;
    }

    pub(crate) fn is_beating(&self, of: &str) -> bool {
        self.lock().beats.is_beating(of)
    }

    /// By so many more, or by so many less, every time is to come.
    pub(crate) fn count_exact(&self, begins: bool) {
        let exact = &mut self.lock().exact;
        *exact = if begins { *exact + 1 } else { exact.saturating_sub(1) };
    }

    pub(crate) fn next_wake(&self) -> Option<Wake> {
        let state = self.lock();
        let due = state.first_awaited()?.0;
        let at_once = state.sleepers.range((due, 0)..=(due, u64::MAX));
        let are_next = at_once.filter(|(_, sleeper)| sleeper.manner != Manner::Pulse);
        let sleepers = are_next.filter_map(|(_, sleeper)| sleeper.name.clone());
        let who: BTreeSet<Arc<str>> = sleepers.chain(state.beats.names_at(due)).collect();
        Some(Wake { after: due.saturating_sub(state.elapsed), who: who.into_iter().collect() })
    }

    /// The deadline is read off the same time that it is set against: a step in between cannot be slept
    /// through.
    pub(crate) async fn sleep_until(
        &self,
        name: &Option<Arc<str>>,
        manner: Manner,
        deadline: impl FnOnce(Duration) -> Duration,
    ) {
        match self.set_sleeper(name, manner, deadline) {
            Some(mut asleep) => drop((&mut asleep.woken).await),
            None => yield_now().await,
        }
    }

    /// None when the deadline has been reached.
    fn set_sleeper(
        &self,
        name: &Option<Arc<str>>,
        manner: Manner,
        deadline: impl FnOnce(Duration) -> Duration,
    ) -> Option<Asleep<'_>> {
        let mut state = self.lock();
        let deadline = deadline(state.elapsed);
        if deadline <= state.elapsed {
            return None;
        }
        let (wake, woken) = oneshot::channel();
        let place = state.place(deadline);
        let since = state.changes.times;
        state.sleepers.insert(place, Sleeper { wake, name: name.clone(), manner, since });
        Some(Asleep { stepped: self, place, is_beat: false, woken })
    }

    /// Waits for the next of many times that are alike.
    pub(crate) async fn beat(&self, name: &Option<Arc<str>>, of: &Arc<str>, period: Duration) {
        let mut asleep = self.set_beat(name, of, period);
        drop((&mut asleep.woken).await);
    }

    fn set_beat(&self, name: &Option<Arc<str>>, of: &Arc<str>, period: Duration) -> Asleep<'_> {
        let (wake, woken) = oneshot::channel();
        let mut state = self.lock();
        let due = state.elapsed.saturating_add(period);
        let place = state.place(due);
        state.beats.insert(place, Beat { wake, name: name.clone(), of: of.clone(), period });
        Asleep { stepped: self, place, is_beat: true, woken }
    }

    fn lock(&self) -> MutexGuard<'_, SteppedState> {
        self.state.lock()
    }
}

impl SteppedState {
    fn place(&mut self, due: Duration) -> Place {
        self.next_id += 1;
        (due, self.next_id)
    }

    /// Who is due first, whatever it means to a step.
    fn first(&self) -> Option<Place> {
        let sleeper = self.sleepers.keys().next().copied();
        sleeper.into_iter().chain(self.beats.first()).min()
    }

    /// As [`SteppedState::first`], of those for whom time stops when every time is to come.
    fn first_awaited(&self) -> Option<Place> {
        let is_awaited = |(_, sleeper): &(&Place, &Sleeper)| sleeper.manner != Manner::Pulse;
        let sleeper = self.sleepers.iter().find(is_awaited).map(|(place, _)| *place);
        sleeper.into_iter().chain(self.beats.first()).min()
    }

    /// Where time stops next.
    fn next_due(&self) -> Option<Duration> {
        if self.exact > 0 {
            return self.first_awaited().map(|place| place.0);
        }
        let stops = |sleeper: &Sleeper| match sleeper.manner {
            Manner::Due => true,
            Manner::Look => sleeper.since != self.changes.times,
            Manner::Idle | Manner::Pulse => false,
        };
        self.sleepers.iter().find(|(_, sleeper)| stops(sleeper)).map(|(place, _)| place.0)
    }

    fn beat(&mut self, at: Duration) {
        self.elapsed = self.elapsed.max(at);
        let woken = self.beats.wake_until(self.elapsed);
        self.changes.expect_of_beats(woken);
    }

    /// Wakes those whose time has come, as `first` finds them.
    fn advance_to(&mut self, to: Duration, first: fn(&SteppedState) -> Option<Place>) {
        self.elapsed = to;
        while let Some(place) = first(self).filter(|place| place.0 <= to) {
            match self.sleepers.remove(&place) {
                // A sleeper that was dropped meanwhile is not owed anything.
                Some(sleeper) => drop(sleeper.wake.send(())),
                None => self.beats.wake(place),
            }
        }
    }
}

/// Somebody sleeps; dropped before their time, they are due nothing.
struct Asleep<'a> {
    stepped: &'a Stepped,
    place: Place,
    is_beat: bool,
    woken: oneshot::Receiver<()>,
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        let mut state = self.stepped.lock();
        let sleeper = state.sleepers.remove(&self.place);
        let beat = if self.is_beat { state.beats.remove(self.place.1) } else { None };
        if beat.is_some() {
            // Whoever relied on it has to look.
            state.changes.times += 1;
        }
        drop(state);
        drop((sleeper, beat));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use chrono::DateTime;

    use crate::Clock;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);

    /// When who was woken, in seconds.
    #[derive(Clone, Default)]
    struct Diary(std::sync::Arc<Mutex<Vec<(u64, &'static str)>>>);

    impl Diary {
        fn note(&self, clock: &Clock, what: &'static str) {
            self.0.lock().unwrap().push((clock.elapsed().as_secs(), what));
        }

        fn take(&self) -> Vec<(u64, &'static str)> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    /// One who looks every 7 seconds, one who beats every 10, and one who need not be in time.
    fn inhabited() -> (Clock, Diary) {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let diary = Diary::default();
        let (own, notes) = (clock.clone(), diary.clone());
        clock.spawn(async move {
            loop {
                own.look_after(7 * SECOND).await;
                notes.note(&own, "look");
            }
        });
        let (own, notes) = (clock.clone(), diary.clone());
        clock.spawn(async move {
            let of = "node".into();
            while own.timeout_of_beat(&of, 10 * SECOND, std::future::pending::<()>()).await.is_err() {
                notes.note(&own, "beat");
                own.note_change();
            }
        });
        let (own, notes) = (clock.clone(), diary.clone());
        clock.spawn(async move {
            own.idle_until(60 * SECOND).await;
            notes.note(&own, "idle");
        });
        (clock, diary)
    }

    /// Lets so much time pass; in how many steps.
    async fn pass(clock: &Clock, duration: Duration) -> usize {
        let end = clock.elapsed() + duration;
        let mut steps = 1;
        clock.work().idle().await;
        while clock.step(end.saturating_sub(clock.elapsed())) {
            clock.work().idle().await;
            steps += 1;
        }
        clock.work().idle().await;
        steps
    }

    #[tokio::test]
    async fn time_goes_on_where_nothing_would_be_found_and_what_is_left_is_fresh() {
        let (clock, diary) = inhabited();
        assert_eq!(pass(&clock, HOUR).await, 2);
        assert_eq!(diary.take(), [(3600, "beat"), (3600, "look"), (3600, "idle")]);
        assert_eq!(clock.elapsed(), HOUR);
        pass(&clock, 9 * SECOND).await;
        assert_eq!(diary.take(), [(3609, "look")], "what a beat writes is no change");
    }

    #[tokio::test]
    async fn who_looks_is_in_time_when_something_has_changed() {
        let (clock, diary) = inhabited();
        clock.work().idle().await;
        clock.note_change();
        assert_eq!(pass(&clock, HOUR).await, 3);
        assert_eq!(diary.take()[0], (7, "look"));
    }

    #[tokio::test]
    async fn a_beat_comes_before_whatever_else_does() {
        let (clock, diary) = inhabited();
        let (own, notes) = (clock.clone(), diary.clone());
        clock.spawn(async move {
            own.sleep(1234 * SECOND).await;
            notes.note(&own, "due");
        });
        pass(&clock, 2000 * SECOND).await;
        let told = diary.take();
        assert!(told[0] == (1230, "beat") && told.contains(&(1234, "due")), "{told:?}");
    }

    #[tokio::test]
    async fn while_somebody_wants_it_exactly_nothing_is_left_out() {
        let (clock, diary) = inhabited();
        let exact = clock.exact();
        pass(&clock, HOUR).await;
        let told = diary.take();
        assert_eq!(told.iter().filter(|(_, what)| *what == "beat").count(), 360);
        assert_eq!(told.iter().filter(|(_, what)| *what == "look").count(), 514);
        drop(exact);
        assert!(pass(&clock, HOUR).await < 5);
    }

    #[tokio::test]
    async fn who_relies_on_a_beat_looks_when_it_has_ended() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let of = "node".into();
        let beat = clock.timeout_of_beat(&of, 10 * SECOND, std::future::pending::<()>());
        let mut beat = Box::pin(clock.tracked(beat));
        assert!(futures::poll!(&mut beat).is_pending());
        let look = clock.spawn({
            let clock = clock.clone();
            async move {
                clock.look_after(7 * SECOND).await;
                clock.elapsed()
            }
        });
        assert!(clock.is_beating("node") && !clock.is_beating("other"));
        clock.work().idle().await;
        drop(beat);
        assert!(!clock.is_beating("node"));
        pass(&clock, HOUR).await;
        assert_eq!(look.await.unwrap(), 7 * SECOND);
    }
}
