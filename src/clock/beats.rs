//! `Beats`: who does the same again and again, only so that others see that it was done. Of many times that
//! go by at once the last is enough: what is there then is what would be there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

/// Due time, then order of arrival, so that equal deadlines wake in the order they were set.
pub(crate) type Place = (Duration, u64);

/// Somebody who waits for the next time.
#[derive(Debug)]
pub(crate) struct Beat {
    pub(crate) wake: oneshot::Sender<()>,
    pub(crate) name: Option<Arc<str>>,
    /// Of whom it says that they are there.
    pub(crate) of: Arc<str>,
    pub(crate) period: Duration,
}

/// All of one clock.
/// Invariant: one is in `by_place` under a time if and only if it is in `due` with that time.
#[derive(Debug, Default)]
pub(crate) struct Beats {
    by_place: BTreeMap<Place, Beat>,
    due: BTreeMap<u64, Duration>,
    /// How many wait that say so of somebody.
    of: BTreeMap<Arc<str>, usize>,
}

impl Beats {
    pub(crate) fn insert(&mut self, place: Place, beat: Beat) {
        *self.of.entry(beat.of.clone()).or_default() += 1;
        self.due.insert(place.1, place.0);
        self.by_place.insert(place, beat);
    }

    /// None when it was woken.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Beat> {
        let due = self.due.remove(&id)?;
        let beat = self.by_place.remove(&(due, id))?;
        if let Some(number) = self.of.get_mut(&beat.of) {
            *number -= 1;
        }
        if self.of.get(&beat.of) == Some(&0) {
            self.of.remove(&beat.of);
        }
        Some(beat)
    }

    pub(crate) fn first(&self) -> Option<Place> {
        self.by_place.keys().next().copied()
    }

    pub(crate) fn is_beating(&self, of: &str) -> bool {
        self.of.contains_key(of)
    }

    pub(crate) fn names_at(&self, due: Duration) -> impl Iterator<Item = Arc<str>> {
        let at = self.by_place.range((due, 0)..=(due, u64::MAX));
        at.filter_map(|(_, beat)| beat.name.clone())
    }

    /// The first time that comes before or at `end` when each comes only once, the last that it can.
    pub(crate) fn last_until(&mut self, end: Duration) -> Option<Duration> {
        let early: Vec<Place> = self.by_place.range(..=(end, u64::MAX)).map(|(place, _)| *place).collect();
        for place in early {
            let Some(beat) = self.by_place.remove(&place) else { continue };
            let last = last_time(place.0, beat.period, end);
            self.due.insert(place.1, last);
            self.by_place.insert((last, place.1), beat);
        }
        self.first().map(|place| place.0).filter(|due| *due <= end)
    }

    /// Wakes one.
    pub(crate) fn wake(&mut self, place: Place) {
        if let Some(beat) = self.remove(place.1) {
            // Whoever was dropped meanwhile is not owed anything.
            let _ = beat.wake.send(());
        }
    }

    /// Wakes those whose time has come; says how many.
    pub(crate) fn wake_until(&mut self, now: Duration) -> u64 {
        let mut woken = 0;
        while let Some(place) = self.first().filter(|place| place.0 <= now) {
            self.wake(place);
            woken += 1;
        }
        woken
    }
}

/// The last of `first`, one period later, two, and so on, that is not behind `end`.
fn last_time(first: Duration, period: Duration, end: Duration) -> Duration {
    let over = end.saturating_sub(first).as_nanos().checked_rem(period.as_nanos()).unwrap_or_default();
    // Less than a period, which is less than the centuries that fit in.
    end - Duration::from_nanos(u64::try_from(over).unwrap_or_default())
}
