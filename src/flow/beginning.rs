//! `Beginning`: when the time of a clock began, by its wall clock. Steps are measured from there.

use std::sync::atomic::{AtomicI64, Ordering};

use clock::Clock;

/// In microseconds. A wall clock that is off by more was set, or its machine slept; what is off by less is
/// the one that is slewed, and no reason to tell another time of what was told already.
const TOLERANCE: i64 = 100_000;

/// In microseconds since 1970.
pub(super) struct Beginning(AtomicI64);

impl Beginning {
    pub(super) fn of(clock: &Clock) -> Beginning {
        let (before, now, after) = read(clock);
        Beginning(AtomicI64::new(now - before.midpoint(after)))
    }

    /// As it was said before, unless the wall clock was set meanwhile: two that ask are told one time.
    pub(super) fn microseconds(&self, clock: &Clock) -> i64 {
        let known = self.0.load(Ordering::Relaxed);
        let found = still(known, read(clock));
        if found != known {
            self.0.store(found, Ordering::Relaxed);
        }
        found
    }
}

/// What the clock has counted, its wall clock, and what it has counted by then: nobody reads both at once.
fn read(clock: &Clock) -> (i64, i64, i64) {
    let counted = || i64::try_from(clock.elapsed().as_micros()).unwrap_or(i64::MAX);
    let before = counted();
    let now = clock.now().timestamp_micros();
    (before, now, counted())
}

/// `known` where it can be true, else what is.
fn still(known: i64, (before, now, after): (i64, i64, i64)) -> i64 {
    let (earliest, latest) = (now - after - TOLERANCE, now - before + TOLERANCE);
    if (earliest..=latest).contains(&known) { known } else { now - before.midpoint(after) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;

    use super::*;

    #[test]
    fn it_is_one_until_the_wall_clock_is_set() {
        assert_eq!(still(1_000, (50, 1_053, 52)), 1_000, "nobody reads both at once");
        assert_eq!(still(1_000, (50, 1_050 + TOLERANCE, 50)), 1_000);
        assert_eq!(still(1_000, (50, 1_051 + TOLERANCE, 50)), 1_001 + TOLERANCE);
        assert_eq!(still(1_000, (50, 1_049 - TOLERANCE, 50)), 999 - TOLERANCE);
        // Whoever was kept waiting in between knows less.
        assert_eq!(still(1_000, (50, 1_050 + 3 * TOLERANCE, 50 + 3 * TOLERANCE)), 1_000);
    }

    #[test]
    fn a_stepped_clock_begins_where_it_was_set() {
        let clock = Clock::stepped(DateTime::from_timestamp_micros(7_000_000).unwrap());
        clock.advance(Duration::from_secs(3));
        let beginning = Beginning::of(&clock);
        assert_eq!(beginning.microseconds(&clock), 7_000_000);
        clock.advance(Duration::from_secs(3));
        assert_eq!(beginning.microseconds(&clock), 7_000_000);
    }

    #[test]
    fn the_machines_clock_is_not_asked_twice() {
        let clock = Clock::real();
        let beginning = Beginning::of(&clock);
        let told: Vec<i64> = (0..100).map(|_| beginning.microseconds(&clock)).collect();
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    }
}
