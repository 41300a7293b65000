//! How often an object is played: a stage that matches what it makes itself would go on for ever, and on a
//! clock that stands, without end.

use chrono::TimeDelta;

use apimachinery::time::Time;

/// One object is played so often within a period; then it waits for the end of that period, and an Event
/// says so.
pub(super) const MAX_PLAYS: u32 = 64;
pub(super) const PERIOD_SECONDS: i64 = 10;

/// How often an object was played.
#[derive(Debug, Default)]
pub(super) struct Pace {
    began: Option<Time>,
    plays: u32,
}

/// It was played too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooOften {
    pub(super) until: Time,
    /// Nobody was told yet, of this period.
    pub(super) is_news: bool,
}

impl Pace {
    /// Counts a play, or says that it has to wait.
    pub(super) fn count(&mut self, now: Time) -> Option<TooOften> {
        let period = TimeDelta::seconds(PERIOD_SECONDS);
        let began = self.began.filter(|began| now < *began + period && now >= *began);
        let Some(began) = began else {
            *self = Pace { began: Some(now), plays: 1 };
            return None;
        };
        self.plays = self.plays.saturating_add(1);
        let held = TooOften { until: began + period, is_news: self.plays == MAX_PLAYS + 1 };
        (self.plays > MAX_PLAYS).then_some(held)
    }
}

pub(super) fn message(stage: &str) -> String {
    format!(
        "Stages were played {MAX_PLAYS} times for this object within {PERIOD_SECONDS}s, the last was {stage:?}: \
         it may match what it makes itself. No more is played until these are over; a delay, or a selector that \
         does not match what the stage makes, ends this"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_plays_and_no_more_in_a_period() {
        let start = Time::UNIX_EPOCH;
        let at = |seconds: i64| start + TimeDelta::seconds(seconds);
        let mut pace = Pace::default();
        for _ in 0..MAX_PLAYS {
            assert_eq!(pace.count(at(1)), None);
        }
        assert_eq!(pace.count(at(2)), Some(TooOften { until: at(11), is_news: true }));
        assert_eq!(pace.count(at(3)), Some(TooOften { until: at(11), is_news: false }));
        assert_eq!(pace.count(at(11)), None);
        assert!(message("again").contains("64 times"));
    }
}
