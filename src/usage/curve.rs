//! `Curve`: a number as a function of the time since something began.

use std::f64::consts::TAU;

use std::fmt;

use super::against::Against;

/// An amount as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// In whole units: cores, bytes.
    Units(f64),
    /// A share of the whole.
    Share(f64),
}

/// A number that somebody else works out.
pub trait CurveFunction: fmt::Debug + Send + Sync {
    /// The number so many seconds after the beginning; nothing where there is none. It is the same whenever
    /// it is asked for.
    fn value(&self, seconds: f64, against: &Against<'_>) -> Option<f64>;
}

/// A number as a function of time.
#[derive(Debug)]
pub enum Curve {
    /// Always the same.
    Constant(Amount),
    /// From one to the other in so many seconds.
    Ramp(Amount, Amount, f64),
    /// Between the two, and back at the first after so many seconds.
    Wave(Amount, Amount, f64),
    /// From the second on, the amount; ordered, the first at 0.
    Steps(Vec<(f64, Amount)>),
    /// The first, and the second for each request a second.
    Requests(Amount, Amount),
    /// As CEL says, or whoever else.
    Expression(Box<dyn CurveFunction>),
}

/// The sum of an expression since the beginning is made of pieces that are the same whenever it is asked
/// for, so that it never goes down: so many of 15 seconds, then half as many of each twice as long as those
/// before. Of a year that is 1,800 looks.
const FIRST_PIECES: u32 = 240;
const SAMPLE_SECONDS: f64 = 15.0;
/// An expression is looked at so often at most for a sum over another time; its pieces are 15 seconds at
/// least.
const MAX_SAMPLES: f64 = 64.0;
/// For so long an expression is looked ahead for the moment at which it goes over a limit; later it does not.
const LOOK_AHEAD_SECONDS: f64 = 3600.0;

impl Amount {
    pub(crate) fn of(self, whole: f64) -> f64 {
        match self {
            Amount::Units(units) => units,
            Amount::Share(share) => share * whole,
        }
    }
}

impl Curve {
    /// Whether it follows requests.
    pub fn follows_requests(&self) -> bool {
        matches!(self, Curve::Requests(..))
    }

    /// Always so much.
    pub fn constant(units: f64) -> Curve {
        Curve::Constant(Amount::Units(units))
    }

    /// Always such a share.
    pub fn share(share: f64) -> Curve {
        Curve::Constant(Amount::Share(share))
    }

    /// The number so many seconds after the beginning; never below zero.
    pub fn value(&self, seconds: f64, against: &Against<'_>) -> f64 {
        let whole = against.whole;
        let value = match self {
            Curve::Constant(amount) => amount.of(whole),
            Curve::Ramp(from, to, over) => {
                let (from, to) = (from.of(whole), to.of(whole));
                from + (to - from) * (seconds / over).clamp(0.0, 1.0)
            }
            Curve::Wave(low, high, period) => {
                let (low, high) = (low.of(whole), high.of(whole));
                low + (high - low) * (1.0 - (TAU * seconds / period).cos()) / 2.0
            }
            Curve::Steps(steps) => {
                let passed = steps.iter().rev().find(|(at, _)| *at <= seconds);
                passed.map_or(0.0, |(_, amount)| amount.of(whole))
            }
            Curve::Requests(base, each) => {
                let requests = against.load.map_or(0.0, |load| load.per_second(against.began + seconds));
                base.of(whole) + each.of(whole) * requests
            }
            Curve::Expression(expression) => expression.value(seconds, against).unwrap_or(0.0),
        };
        value.max(0.0)
    }

    /// The sum over a time, as core-seconds of cores.
    pub fn sum(&self, from: f64, to: f64, against: &Against<'_>) -> f64 {
        if to <= from {
            return 0.0;
        }
        match self {
            Curve::Expression(_) | Curve::Requests(..) if from > 0.0 => {
                self.sampled((from, to), f64::INFINITY, against)
            }
            _ => self.since_start(to, against) - self.since_start(from, against),
        }
    }

    /// When it first goes over a limit, in seconds after the beginning.
    pub fn first_above(&self, limit: f64, against: &Against<'_>) -> Option<f64> {
        if self.value(0.0, against) > limit {
            return Some(0.0);
        }
        let whole = against.whole;
        match self {
            Curve::Constant(_) => None,
            Curve::Ramp(from, to, over) => {
                let (from, to) = (from.of(whole), to.of(whole));
                (to > limit).then(|| over * (limit - from) / (to - from))
            }
            Curve::Wave(low, high, period) => {
                let (low, high) = (low.of(whole), high.of(whole));
                let part = 1.0 - 2.0 * (limit - low) / (high - low);
                (high > limit).then(|| part.acos() / TAU * period)
            }
            Curve::Steps(steps) => {
                steps.iter().find(|(_, amount)| amount.of(whole) > limit).map(|(at, _)| *at)
            }
            Curve::Expression(_) | Curve::Requests(..) => {
                let times = (1..).map(|number| f64::from(number) * SAMPLE_SECONDS);
                let mut times = times.take_while(|at| *at <= LOOK_AHEAD_SECONDS);
                times.find(|at| self.value(*at, against) > limit)
            }
        }
    }

    fn since_start(&self, to: f64, against: &Against<'_>) -> f64 {
        let whole = against.whole;
        match self {
            Curve::Constant(amount) => amount.of(whole).max(0.0) * to,
            Curve::Ramp(from, last, over) => {
                let (from, last) = (from.of(whole), last.of(whole));
                let rising = to.min(*over);
                rising * (from + (last - from) * rising / over / 2.0) + last * (to - over).max(0.0)
            }
            Curve::Wave(low, high, period) => {
                let (low, high) = (low.of(whole), high.of(whole));
                low * to + (high - low) / 2.0 * (to - period / TAU * (TAU * to / period).sin())
            }
            Curve::Steps(steps) => {
                let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([f64::INFINITY]);
                let part = |((at, amount), end): (&(f64, Amount), f64)| {
                    amount.of(whole) * (end.min(to) - at).max(0.0)
                };
                steps.iter().zip(ends).map(part).sum()
            }
            Curve::Expression(_) | Curve::Requests(..) => self.accumulated(to, f64::INFINITY, against),
        }
    }

    /// In the middle of pieces, as far as it is below a limit.
    pub(crate) fn sampled(&self, (from, to): (f64, f64), limit: f64, against: &Against<'_>) -> f64 {
        let count = ((to - from) / SAMPLE_SECONDS).ceil().clamp(2.0, MAX_SAMPLES);
        let piece = (to - from) / count;
        let middles = (0..count as u32).map(|number| from + piece * (f64::from(number) + 0.5));
        middles.map(|at| self.value(at, against).min(limit) * piece).sum()
    }

    /// Since the beginning, each piece by its middle, as far as it is below a limit.
    pub(crate) fn accumulated(&self, to: f64, limit: f64, against: &Against<'_>) -> f64 {
        let mut begin = 0.0;
        let mut length = SAMPLE_SECONDS;
        let mut left = FIRST_PIECES;
        let mut sum = 0.0;
        while begin < to {
            let passed = (to - begin).min(length);
            sum += self.value(begin + length / 2.0, against).min(limit) * passed;
            begin += length;
            left -= 1;
            if left == 0 {
                length *= 2.0;
                left = FIRST_PIECES / 2;
            }
        }
        sum
    }
}
