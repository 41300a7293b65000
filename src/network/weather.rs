//! What is wrong between addresses, by choice: latency, loss, refused connections, partitions.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::address_range::AddressRange;
use entropy::Entropy;
use sync::RwLock;

/// So many rules may be in force; more are refused, since each connection looks at all of them.
pub const MAX_RULES: usize = 1_000;

/// The latency of all rules together at most: what is longer counts as this, a year.
pub const MAX_LATENCY: Duration = Duration::from_secs(365 * 86_400);

/// What is wrong between two sets of addresses, in both directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// One side; empty means everybody.
    pub one: Vec<AddressRange>,
    /// The other side; empty means everybody.
    pub other: Vec<AddressRange>,
    /// How long each piece of data is on its way, in one direction.
    /// Bound: [`MAX_LATENCY`], all rules together.
    pub latency: Duration,
    /// What part of all pieces is lost, between 0 and 1: they are sent again, later.
    pub loss: f64,
    /// Connections are refused.
    pub is_refused: bool,
    /// Nothing gets through.
    pub is_partition: bool,
}

/// There are more rules than are looked at.
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyRules(pub usize);

impl std::fmt::Display for TooManyRules {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} disturbances of the network: there may be {MAX_RULES}; join some of them", self.0)
    }
}

impl std::error::Error for TooManyRules {}

/// All rules in force. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Weather(Arc<RwLock<Forecast>>);

/// Those of whoever has the network, and those of the cluster's faults, each made ready to be looked up.
#[derive(Default)]
struct Forecast {
    own: Arc<[ReadyRule]>,
    of_faults: Arc<[ReadyRule]>,
}

/// A rule, and its sides by single addresses, of which there are many, and by ranges.
struct ReadyRule {
    one: RuleSide,
    other: RuleSide,
    rule: Disturbance,
}

#[derive(Default)]
struct RuleSide {
    is_everybody: bool,
    single: HashSet<IpAddr>,
    ranges: Vec<AddressRange>,
}

/// What all rules together do to one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Mishaps {
    pub(crate) latency: Duration,
    pub(crate) loss: f64,
    pub(crate) is_refused: bool,
    pub(crate) is_partition: bool,
}

impl Weather {
    pub(crate) fn set(&self, rules: Vec<Disturbance>) -> Result<(), TooManyRules> {
        self.0.write().own = ready(rules)?;
        Ok(())
    }

    /// In place of what faults said before, beside what else is wrong.
    pub(crate) fn set_of_faults(&self, rules: Vec<Disturbance>) -> Result<(), TooManyRules> {
        self.0.write().of_faults = ready(rules)?;
        Ok(())
    }

    pub(crate) fn between(&self, from: IpAddr, to: IpAddr) -> Mishaps {
        let (own, of_faults) = {
            let all = self.0.read();
            (all.own.clone(), all.of_faults.clone())
        };
        let mut conditions = Mishaps::default();
        let rules = own.iter().chain(&*of_faults).filter(|rule| rule.is_between(from, to));
        for ReadyRule { rule, .. } in rules {
            conditions.latency = conditions.latency.saturating_add(rule.latency).min(MAX_LATENCY);
            conditions.loss = 1.0 - (1.0 - conditions.loss) * (1.0 - rule.loss.clamp(0.0, 1.0));
            conditions.is_refused |= rule.is_refused;
            conditions.is_partition |= rule.is_partition;
        }
        conditions
    }
}

fn ready(rules: Vec<Disturbance>) -> Result<Arc<[ReadyRule]>, TooManyRules> {
    if rules.len() > MAX_RULES {
        return Err(TooManyRules(rules.len()));
    }
    let ready = rules.into_iter();
    Ok(ready
        .map(|rule| ReadyRule { one: RuleSide::of(&rule.one), other: RuleSide::of(&rule.other), rule })
        .collect())
}

impl RuleSide {
    fn of(ranges: &[AddressRange]) -> RuleSide {
        let (single, ranges): (Vec<AddressRange>, Vec<_>) =
            ranges.iter().copied().partition(|range| range.first() == range.last());
        RuleSide {
            is_everybody: single.is_empty() && ranges.is_empty(),
            single: single.iter().map(AddressRange::first).collect(),
            ranges,
        }
    }

    fn has(&self, address: IpAddr) -> bool {
        self.is_everybody
            || self.single.contains(&address)
            || self.ranges.iter().any(|range| range.contains(address))
    }
}

impl ReadyRule {
    fn is_between(&self, from: IpAddr, to: IpAddr) -> bool {
        self.one.has(from) && self.other.has(to) || self.one.has(to) && self.other.has(from)
    }
}

impl Mishaps {
    pub(crate) fn is_fair(&self) -> bool {
        *self == Mishaps::default()
    }

    /// How long there and back.
    pub(crate) fn round_trip(&self) -> Duration {
        self.latency * 2
    }

    /// How often a piece is lost before it arrives: at most `limit` times.
    pub(crate) fn losses(&self, entropy: &Entropy, limit: u32) -> u32 {
        const PARTS: usize = 1_000_000;
        if self.loss <= 0.0 {
            return 0;
        }
        let is_lost = |_: &u32| (entropy.below(PARTS) as f64) < self.loss * PARTS as f64;
        (0..limit).take_while(is_lost).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_together_have_a_bound() {
        let weather = Weather::default();
        let slow = Disturbance { latency: Duration::MAX, ..Disturbance::default() };
        weather.set(vec![slow.clone(), slow]).unwrap();
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let conditions = weather.between(one, other);
        assert_eq!(conditions.latency, MAX_LATENCY);
        assert_eq!(conditions.round_trip(), MAX_LATENCY * 2);
    }
}
