//! Levels lend each other the seats that they do not need (`apf_controller.go`, `updateBorrowing`).
//!
//! Limits are adjusted to the demand of the last ten seconds, every ten seconds; as nobody sees a limit who
//! does not come, waits or asks, that is done when somebody comes, waits or asks.

use super::allocation::{Class, allocate};
use super::demand::DemandStats;
use super::spec::Limits;

/// A level that lends and borrows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lender {
    pub is_exempt: bool,
    pub limits: Limits,
    pub stats: DemandStats,
    /// What it has now.
    pub current: usize,
}

/// What each is to have from now on.
#[derive(Debug, PartialEq)]
pub(super) struct Adjustment {
    pub current: Vec<usize>,
    /// What each would like to have.
    pub targets: Vec<f64>,
    /// How much of it those get whose bounds do not matter.
    pub fair_fraction: f64,
}

/// Who is exempt takes what it needs. The others share the rest: first what each must keep, then what each
/// has used of its own, then by demand.
pub(super) fn adjust(lenders: &[Lender]) -> Adjustment {
    let total: usize = lenders.iter().map(|lender| lender.limits.nominal).sum();
    let sum_of = |is_exempt: bool, seats: fn(&Lender) -> usize| -> usize {
        lenders.iter().filter(|lender| lender.is_exempt == is_exempt).map(seats).sum()
    };
    let rest = total.saturating_sub(sum_of(true, Lender::least));
    let (lower, least) = (sum_of(false, |lender| lender.limits.lower), sum_of(false, Lender::least));
    let others: Vec<Class> = lenders.iter().filter(|lender| !lender.is_exempt).map(Lender::class).collect();
    let share = if rest <= lower { 0.0 } else { (rest - lower) as f64 / least.saturating_sub(lower) as f64 };
    let allocated = (rest > least).then(|| allocate(total, &others));
    let mut shares = match &allocated {
        Some(Some((shares, _))) => shares.iter(),
        _ => [].iter(),
    };
    let current = lenders.iter().map(|lender| match (&allocated, lender.is_exempt) {
        (_, true) => lender.least(),
        (None, false) => lender.limits.lower + portion(lender.least() - lender.limits.lower, share),
        (Some(None), false) => lender.current,
        (Some(Some(_)), false) => shares.next().map_or(lender.current, |share| share.round() as usize),
    });
    let current = current.collect();
    // Upstream tells for who is exempt what is another's.
    let first = others.first().map_or(0.0, |class| class.target);
    let target = |lender: &Lender| if lender.is_exempt { first } else { lender.class().target };
    let fair_fraction = allocated.flatten().map_or(0.0, |(_, fraction)| fraction);
    Adjustment { current, targets: lenders.iter().map(target).collect(), fair_fraction }
}

fn portion(seats: usize, share: f64) -> usize {
    (seats as f64 * share).round() as usize
}

impl Lender {
    /// What it does not go below: who is exempt what it used, the others that as far as it is theirs.
    fn least(&self) -> usize {
        let used = self.stats.high_watermark;
        let used = if self.is_exempt { used } else { used.min(self.limits.nominal) };
        used.max(self.limits.lower)
    }

    fn class(&self) -> Class {
        let lower = self.least() as f64;
        Class { lower, upper: self.limits.upper as f64, target: self.stats.smoothed.max(lower) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lower and nominal limit of `exempt`, `workload-high`, `workload-low` and `catch-all`, six seats a
    /// share.
    const LEVELS: [(usize, usize); 4] = [(0, 0), (120, 240), (60, 600), (30, 30)];
    const ALL: usize = 870;

    fn current(demand: [usize; 4]) -> [usize; 4] {
        let lender = |at: usize| {
            let (lower, nominal) = LEVELS[at];
            let smoothed = demand[at] as f64;
            Lender {
                is_exempt: at == 0,
                limits: Limits { nominal, lower, upper: nominal + ALL },
                stats: DemandStats {
                    high_watermark: demand[at],
                    average: smoothed,
                    deviation: 0.0,
                    smoothed,
                },
                current: nominal,
            }
        };
        let adjustment = adjust(&[0, 1, 2, 3].map(lender));
        adjustment.current.try_into().unwrap()
    }

    #[test]
    fn seats_go_where_they_are_needed() {
        // The first three as upstream tells of them: who is exempt leaves less than what others must keep,
        // or half of what is above that, or all but what is not lent.
        for (demand, expected) in [
            ([970, 970, 970, 970], [970, 120, 60, 30]),
            ([330, 970, 970, 970], [330, 180, 330, 30]),
            ([540, 970, 1, 970], [540, 240, 60, 30]),
            ([0, 0, 0, 0], [0, 497, 249, 124]),
            ([0, 600, 0, 0], [0, 757, 76, 38]),
            ([0, 240, 600, 30], [0, 240, 600, 30]),
            ([0, 600, 600, 30], [0, 240, 600, 30]),
            ([0, 600, 300, 0], [0, 540, 300, 30]),
        ] {
            assert_eq!(current(demand), expected, "{demand:?}");
        }
    }
}
