//! SeatSeconds: work, as seats times time (`util/flowcontrol/request/seat_seconds.go`).

use std::fmt;
use std::time::Duration;

/// So many make one seat-second.
const SCALE: u64 = 100_000_000;

/// An amount of work, or a reading of the progress meter R. Adding and subtracting wrap, so that a negative
/// amount can be added. At 600 seats R takes nine years to come around, which is not looked after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeatSeconds(u64);

impl SeatSeconds {
    /// More than any work.
    pub(super) const MAX: SeatSeconds = SeatSeconds(u64::MAX);

    /// Small amounts only: what one request does, not what was done since the start.
    pub(super) fn of(seats: f64, time: Duration) -> SeatSeconds {
        SeatSeconds((seats * time.as_secs_f64() * SCALE as f64).round() as u64)
    }

    /// How long so many seats need for it.
    pub(super) fn per_seat(self, seats: f64) -> Duration {
        Duration::from_nanos((self.0 as f64 / seats * (1e9 / SCALE as f64)) as u64)
    }

    /// In seat-seconds.
    pub(super) fn as_f64(self) -> f64 {
        self.0 as f64 / SCALE as f64
    }

    pub(super) fn plus(self, other: SeatSeconds) -> SeatSeconds {
        SeatSeconds(self.0.wrapping_add(other.0))
    }

    pub(super) fn minus(self, other: SeatSeconds) -> SeatSeconds {
        SeatSeconds(self.0.wrapping_sub(other.0))
    }
}

impl fmt::Display for SeatSeconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:08}ss", self.0 / SCALE, self.0 % SCALE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seat_seconds_are_seats_times_time() {
        let milliseconds = Duration::from_millis;
        for (seats, time, text) in [
            (1.0, milliseconds(1000), "1.00000000ss"),
            (0.0, milliseconds(1000), "0.00000000ss"),
            (10.5, milliseconds(3), "0.03150000ss"),
            (1.0, Duration::from_nanos(1), "0.00000000ss"),
            (1.0, Duration::from_nanos(10), "0.00000001ss"),
        ] {
            assert_eq!(SeatSeconds::of(seats, time).to_string(), text);
        }
        assert_eq!(SeatSeconds::of(5.0, milliseconds(10)).per_seat(2.0), milliseconds(25));
    }
}
