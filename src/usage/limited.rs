//! Curves below a limit: what somebody gets of what they would use, as of the CPU, of which a container gets
//! no more than it may.

use std::f64::consts::{PI, TAU};

use super::against::Against;
use super::curve::{Amount, Curve};

/// By so small a part of a limit another one differs, to see for how long a curve is above the limit.
const NEXT_LIMIT: f64 = 1e-6;

impl Curve {
    /// The sum over a time of what is below the limit, as core-seconds of the cores that a container gets.
    pub fn sum_below(&self, limit: f64, (from, to): (f64, f64), against: &Against<'_>) -> f64 {
        if to <= from {
            return 0.0;
        }
        match self {
            Curve::Expression(_) | Curve::Requests(..) if from > 0.0 => {
                self.sampled((from, to), limit, against)
            }
            Curve::Expression(_) | Curve::Requests(..) => self.accumulated(to, limit, against),
            // What never goes over it is summed as ever.
            _ if self.first_above(limit, against).is_none() => self.sum(from, to, against),
            _ => self.below_since_start(limit, to, against) - self.below_since_start(limit, from, against),
        }
    }

    /// For how long it is above a positive limit, in seconds: so much more of it is below a limit that is a
    /// little higher.
    pub fn time_above(&self, limit: f64, times: (f64, f64), against: &Against<'_>) -> f64 {
        let more = limit * NEXT_LIMIT;
        let higher = self.sum_below(limit + more, times, against);
        let above = (higher - self.sum_below(limit, times, against)) / more;
        above.clamp(0.0, (times.1 - times.0).max(0.0))
    }

    fn below_since_start(&self, limit: f64, to: f64, against: &Against<'_>) -> f64 {
        let of = |amount: &Amount| amount.of(against.whole);
        match self {
            Curve::Constant(amount) => of(amount).clamp(0.0, limit) * to,
            Curve::Ramp(from, last, over) => {
                let (from, last) = (of(from), of(last));
                let rising = to.min(*over);
                let now = from + (last - from) * rising / over;
                line_below(limit, (from, now), rising) + last.min(limit) * (to - over).max(0.0)
            }
            Curve::Wave(low, high, period) => wave_below(limit, (of(low), of(high)), *period, to),
            Curve::Steps(steps) => {
                let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([f64::INFINITY]);
                let part = |((at, amount), end): (&(f64, Amount), f64)| {
                    of(amount).min(limit) * (end.min(to) - at).max(0.0)
                };
                steps.iter().zip(ends).map(part).sum()
            }
            Curve::Expression(_) | Curve::Requests(..) => self.accumulated(to, limit, against),
        }
    }
}

/// Below a line from one number to the other that is so long.
fn line_below(limit: f64, (from, to): (f64, f64), length: f64) -> f64 {
    let (least, most) = (from.min(to), from.max(to));
    if most <= limit {
        return length * (from + to) / 2.0;
    }
    if least >= limit {
        return length * limit;
    }
    let below = length * (limit - least) / (most - least);
    below * (least + limit) / 2.0 + (length - below) * limit
}

/// Below a wave that is `first` at the beginning and `other` half a period later.
fn wave_below(limit: f64, (first, other): (f64, f64), period: f64, to: f64) -> f64 {
    if first.min(other) >= limit {
        return limit * to;
    }
    // The angle at which it first crosses the limit; it does so again as far from the end.
    let cross = (1.0 - 2.0 * (limit - first) / (other - first)).clamp(-1.0, 1.0).acos();
    let free = |angle: f64| first * angle + (other - first) / 2.0 * (angle - angle.sin());
    let between = |from: f64, angle: f64, is_below: bool| {
        if angle <= from {
            0.0
        } else if is_below {
            free(angle) - free(from)
        } else {
            limit * (angle - from)
        }
    };
    let up_to = |angle: f64| {
        let rises = first < other;
        between(0.0, angle.min(cross), rises)
            + between(cross, angle.min(TAU - cross), !rises)
            + between(TAU - cross, angle, rises)
    };
    let periods = (to / period).floor();
    let angle = (to / period - periods) * 2.0 * PI;
    (periods * up_to(TAU) + up_to(angle)) * period / TAU
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By many small steps.
    fn counted(curve: &Curve, limit: f64, (from, to): (f64, f64)) -> f64 {
        let against = Against::default();
        let piece = (to - from) / 100_000.0;
        let middles = (0..100_000).map(|number| from + piece * (f64::from(number) + 0.5));
        middles.map(|at| curve.value(at, &against).min(limit) * piece).sum()
    }

    #[test]
    fn what_is_below_a_limit_is_what_many_small_steps_find() {
        let against = Against::default();
        let curves = [
            "300m",
            "100m",
            "ramp 0 1 1m",
            "ramp 1 0 1m",
            "ramp 2 3 1m",
            "wave 100m 900m 1m",
            "wave 900m 100m 1m",
            "wave 2 3 1m",
            "steps 10m, 2 at 30s, 100m at 50s",
        ];
        for text in curves {
            let curve = Curve::parse(text).unwrap();
            for times in [(0.0, 20.0), (0.0, 170.0), (35.0, 50.0), (100.0, 133.0)] {
                let sum = curve.sum_below(0.2, times, &against);
                let expected = counted(&curve, 0.2, times);
                assert!((sum - expected).abs() < 1e-3, "{text} {times:?}: {sum}, not {expected}");
            }
        }
    }

    #[test]
    fn time_above_a_limit_is_told() {
        let against = Against::default();
        let above = |text: &str| Curve::parse(text).unwrap().time_above(0.5, (0.0, 60.0), &against).round();
        let curves = [
            "1",
            "500m",
            "100m",
            "ramp 0 1 1m",
            "wave 0 1 1m",
            "steps 0, 1 at 50s",
            "cel: age < 30.0 ? 1 : 0",
        ];
        assert_eq!(curves.map(above), [60.0, 0.0, 0.0, 30.0, 30.0, 10.0, 30.0]);
    }
}
