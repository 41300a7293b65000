//! `Schedule`: what goes wrong in one run of a test, drawn from a seed, and how a smaller one is found that
//! fails as well.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::span::Span;
use entropy::Entropy;

/// Faults in one schedule; less make a schedule that is easier to understand.
const MOST_FAULTS: usize = 6;
/// Of the first so many requests of its kind one is hit.
const EARLY: usize = 6;
/// The longest that an event or a request is late.
const LATEST: Duration = Duration::from_secs(5);

/// What goes wrong in one run. The same seed makes the same schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Schedule {
    /// Of the cluster, too.
    pub seed: u64,
    /// From what the order is drawn in which those go on who are ready; without, it is that of waking.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub order: Option<u64>,
    /// In the order in which they are added.
    pub faults: Vec<Fault>,
}

/// The way to the smallest schedule that fails.
pub struct Shrinking {
    smallest: Schedule,
    /// Which fault is left out next; none while nobody has tried without any.
    next: Option<usize>,
    is_smaller: bool,
    /// Whether it was tried without an order of its own.
    is_order_tried: bool,
}

impl Schedule {
    /// Draws one about these users; none are all but the cluster's own components.
    pub fn draw(seed: u64, users: &[String]) -> Schedule {
        let chance = Entropy::seeded(seed ^ 0x6b75_6261_7269_756d);
        let number = 1 + chance.below(MOST_FAULTS);
        let draw = |at: usize| {
            let fault = draw(&chance).named(&format!("explored-{seed}-{at}"));
            Fault { users: users.to_vec(), ..fault }
        };
        // What fails in the usual order is easier to understand.
        let order = (seed % 2 == 1).then_some(seed);
        Schedule { seed, order, faults: (1..=number).map(draw).collect() }
    }

    /// Without one of its faults.
    fn without(&self, at: usize) -> Schedule {
        let mut smaller = self.clone();
        smaller.faults.remove(at);
        smaller
    }
}

/// One of what real clusters do to operators.
fn draw(chance: &Entropy) -> Fault {
    let nth = |fault: Fault| fault.nth(1 + chance.below(EARLY) as u64);
    let events = chance.below(EARLY) as u64;
    let late =
        chance.jitter(Duration::from_millis(1), 0.0) + LATEST.mul_f64(chance.below(1000) as f64 / 1000.0);
    let changes = |fault: Fault| fault.verb("update").verb("patch");
    match chance.below(12) {
        0 | 1 => nth(changes(Fault::answer(409))),
        2 => nth(Fault::answer(500).verb("write")),
        3 => nth(Fault::answer(503)),
        4 => nth(Fault::too_many_requests(1)),
        5 => nth(Fault::lost_answer(500).verb("write")),
        6 => nth(Fault::cut().verb("write")),
        7 => Fault::close_watch(events).count(1 + chance.below(3) as u64),
        8 => Fault::expire_watch(events).count(1 + chance.below(2) as u64),
        9 => Fault::duplicate_events(),
        10 => Fault::delay_events(late),
        _ => nth(Fault { latency: Some(Span(late)), ..Fault::default() }),
    }
}

impl Shrinking {
    /// From one that fails.
    pub fn new(failing: Schedule) -> Shrinking {
        let is_order_tried = failing.order.is_none();
        Shrinking { smallest: failing, next: None, is_smaller: false, is_order_tried }
    }

    /// What to try next; none when nothing can be left out.
    pub fn candidate(&self) -> Option<Schedule> {
        if !self.is_order_tried {
            return Some(Schedule { order: None, ..self.smallest.clone() });
        }
        match self.next {
            None => Some(Schedule { faults: vec![], ..self.smallest.clone() }),
            Some(at) => (at < self.smallest.faults.len()).then(|| self.smallest.without(at)),
        }
    }

    /// Whether the candidate has failed.
    pub fn tell(&mut self, has_failed: bool) {
        let Some(candidate) = self.candidate() else { return };
        if !std::mem::replace(&mut self.is_order_tried, true) {
            if has_failed {
                self.smallest = candidate;
            }
            return;
        }
        self.is_smaller |= has_failed;
        self.next = Some(match (self.next, has_failed) {
            (None, _) => 0,
            (Some(at), true) => at,
            (Some(at), false) => at + 1,
        });
        if has_failed {
            self.smallest = candidate;
        }
        // What could not be left out may be now that something else was.
        if self.next >= Some(self.smallest.faults.len()) && std::mem::take(&mut self.is_smaller) {
            self.next = Some(0);
        }
    }

    /// The smallest so far.
    pub fn smallest(self) -> Schedule {
        self.smallest
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}", self.seed)?;
        if let Some(order) = self.order {
            write!(f, ", in the order of {order}")?;
        }
        if self.faults.is_empty() {
            write!(f, ", without any fault")?;
        }
        self.faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_faults_and_all_of_them_can_be_meant() {
        let users = ["operator".to_owned()];
        let mut texts = std::collections::BTreeSet::new();
        for seed in 0..300 {
            let schedule = Schedule::draw(seed, &users);
            assert_eq!(schedule, Schedule::draw(seed, &users));
            assert!((1..=MOST_FAULTS).contains(&schedule.faults.len()));
            for fault in &schedule.faults {
                fault.check().unwrap();
                assert_eq!(fault.users, users);
                let kind = Fault { name: String::new(), nth: None, count: None, ..fault.clone() };
                texts.insert(format!("{:?}{:?}", kind.answer, kind.cut));
            }
        }
        assert!(texts.len() >= 7, "{texts:?}");
    }

    /// Tries all that it asks for; `fails` says which schedules do.
    fn shrink(faults: &[u16], fails: impl Fn(&[u16]) -> bool) -> (Vec<u16>, usize) {
        let codes = |schedule: &Schedule| -> Vec<u16> {
            schedule.faults.iter().map(|fault| fault.answer.as_ref().unwrap().code).collect()
        };
        let faults = faults.iter().map(|code| Fault::answer(*code)).collect();
        let mut shrinking = Shrinking::new(Schedule { seed: 1, order: None, faults });
        let mut runs = 0;
        while let Some(candidate) = shrinking.candidate() {
            runs += 1;
            shrinking.tell(fails(&codes(&candidate)));
        }
        (codes(&shrinking.smallest()), runs)
    }

    #[test]
    fn the_order_is_kept_where_it_is_needed() {
        for needs_order in [true, false] {
            let failing = Schedule::draw(7, &[]);
            assert_eq!(failing.order, Some(7));
            let mut shrinking = Shrinking::new(failing);
            while let Some(candidate) = shrinking.candidate() {
                shrinking.tell(candidate.order.is_some() || !needs_order);
            }
            let smallest = shrinking.smallest();
            assert_eq!((smallest.order.is_some(), smallest.faults.len()), (needs_order, 0));
        }
    }

    #[test]
    fn what_is_not_needed_is_left_out() {
        assert_eq!(shrink(&[501, 502, 503], |_| true), (vec![], 1));
        assert_eq!(shrink(&[501, 502, 503, 504], |codes| codes.contains(&503)).0, [503]);
        let both = |codes: &[u16]| codes.contains(&501) && codes.contains(&504);
        assert_eq!(shrink(&[501, 502, 503, 504], both).0, [501, 504]);
        let (smallest, runs) = shrink(&[501, 502, 503, 504, 505, 506], |codes| codes.len() == 6);
        assert_eq!((smallest.len(), runs), (6, 7));
    }
}
