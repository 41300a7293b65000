//! How many seats a priority level could use: averaged over each adjustment period, and smoothed over the
//! last of them (`fairqueuing/integrator.go`, `seatDemandStats`).

use std::time::Duration;

/// How often levels lend each other seats anew.
pub(super) const ADJUSTMENT_PERIOD: Duration = Duration::from_secs(10);
/// Of the smoothing, per period: half of a demand is forgotten in five minutes.
const SMOOTHING: f64 = 0.977;

/// What was demanded in the period that ended last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DemandStats {
    pub average: f64,
    pub deviation: f64,
    pub high_watermark: usize,
    pub smoothed: f64,
}

/// Integrates the demand over time. Periods end by themselves, whenever it is next asked: in between nothing
/// changes, so that nobody needs to look when one ends.
#[derive(Debug)]
pub(super) struct Demand {
    stats: DemandStats,
    seats: f64,
    most: f64,
    /// Up to when it is integrated.
    at: Duration,
    /// When the period ends.
    due: Duration,
    seconds: f64,
    integral: f64,
    integral_of_squares: f64,
}

impl Demand {
    /// None, from `now` on; the first period ends at `due`.
    pub(super) fn new(now: Duration, due: Duration) -> Demand {
        Demand {
            stats: DemandStats::default(),
            seats: 0.0,
            most: 0.0,
            at: now,
            due,
            seconds: 0.0,
            integral: 0.0,
            integral_of_squares: 0.0,
        }
    }

    /// From `now` on it is so much.
    pub(super) fn set(&mut self, now: Duration, seats: usize) {
        self.advance(now);
        self.seats = seats as f64;
        self.most = self.most.max(self.seats);
    }

    /// Of the last period that has ended.
    pub(super) fn stats(&mut self, now: Duration) -> DemandStats {
        self.advance(now);
        self.stats
    }

    /// Ends the period early, for limits that have changed.
    pub(super) fn end_period(&mut self, now: Duration) -> DemandStats {
        self.advance(now);
        self.end();
        self.stats
    }

    fn advance(&mut self, now: Duration) {
        if now >= self.due {
            self.integrate(self.due);
            self.end();
            let steady = now.saturating_sub(self.due).as_nanos() / ADJUSTMENT_PERIOD.as_nanos();
            let steady = u32::try_from(steady).unwrap_or(u32::MAX);
            self.stay(i32::try_from(steady).unwrap_or(i32::MAX));
            self.due += ADJUSTMENT_PERIOD.saturating_mul(steady.saturating_add(1));
            self.at = self.due.saturating_sub(ADJUSTMENT_PERIOD);
        }
        self.integrate(now);
    }

    fn integrate(&mut self, to: Duration) {
        let seconds = to.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(to);
        self.seconds += seconds;
        self.integral += self.seats * seconds;
        self.integral_of_squares += self.seats * self.seats * seconds;
    }

    fn end(&mut self) {
        self.stats.high_watermark = self.most.round() as usize;
        if self.seconds > 0.0 {
            let average = self.integral / self.seconds;
            let variance = self.integral_of_squares / self.seconds - average * average;
            // Below zero by rounding only.
            self.stats.observe(average, variance.max(0.0).sqrt(), 1);
        }
        (self.seconds, self.integral, self.integral_of_squares) = (0.0, 0.0, 0.0);
        self.most = self.seats;
    }

    /// So many further periods passed without any change.
    fn stay(&mut self, periods: i32) {
        if periods > 0 {
            self.stats.high_watermark = self.seats.round() as usize;
            self.stats.observe(self.seats, 0.0, periods);
        }
    }
}

impl DemandStats {
    fn observe(&mut self, average: f64, deviation: f64, periods: i32) {
        let envelope = average + deviation;
        (self.average, self.deviation) = (average, deviation);
        let rest = (self.smoothed - envelope).max(0.0);
        self.smoothed = envelope + rest * SMOOTHING.powi(periods);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn near(found: DemandStats, expected: (f64, f64, usize, f64)) {
        let (average, deviation, high_watermark, smoothed) = expected;
        assert_eq!(found.high_watermark, high_watermark, "{found:?}");
        for (a, b) in [(found.average, average), (found.deviation, deviation), (found.smoothed, smoothed)] {
            assert!((a - b).abs() < 1e-9, "{found:?} is not {expected:?}");
        }
    }

    #[test]
    fn periods_end_in_time_whoever_asks_when() {
        let mut demand = Demand::new(Duration::ZERO, ADJUSTMENT_PERIOD);
        demand.set(SECOND * 5, 8);
        near(demand.stats(SECOND * 9), (0.0, 0.0, 0, 0.0));
        // Half of the time nothing, half of it eight.
        near(demand.stats(SECOND * 12), (4.0, 4.0, 8, 8.0));
        demand.set(SECOND * 20, 0);
        near(demand.stats(SECOND * 20), (8.0, 0.0, 8, 8.0));
        // The high watermark is the one with which the period began.
        near(demand.stats(SECOND * 30), (0.0, 0.0, 8, 8.0 * SMOOTHING));
        near(demand.stats(SECOND * 60), (0.0, 0.0, 0, 8.0 * SMOOTHING.powi(4)));
    }

    #[test]
    fn many_periods_are_as_each_for_itself() {
        let demand = |seats| {
            let mut demand = Demand::new(Duration::ZERO, ADJUSTMENT_PERIOD);
            demand.set(Duration::ZERO, 20);
            demand.set(SECOND * 10, seats);
            demand
        };
        for seats in [0, 3, 20, 50] {
            let (mut asked_once, mut asked_often) = (demand(seats), demand(seats));
            let often = (1..=30).map(|period| asked_often.stats(ADJUSTMENT_PERIOD * period)).last().unwrap();
            let DemandStats { average, deviation, high_watermark, smoothed } = often;
            near(asked_once.stats(SECOND * 301), (average, deviation, high_watermark, smoothed));
        }
    }
}
