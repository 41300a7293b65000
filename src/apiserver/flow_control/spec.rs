//! What is read of a PriorityLevelConfiguration.

use serde::Deserialize;

use super::queue_set::Queuing;
use super::shuffle_sharding;

/// Of a level's seats, what one request takes at most.
const MAX_SEATS_FRACTION: f64 = 0.15;

/// What is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PriorityLevelView {
    pub spec: PriorityLevelSpec,
}

/// `PriorityLevelConfigurationSpec`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PriorityLevelSpec {
    r#type: String,
    exempt: Option<SpecPart>,
    limited: Option<SpecPart>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecPart {
    nominal_concurrency_shares: u64,
    lendable_percent: u64,
    borrowing_limit_percent: Option<u64>,
    limit_response: LimitResponse,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct LimitResponse {
    r#type: String,
    queuing: Option<QueuingView>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct QueuingView {
    queues: usize,
    hand_size: usize,
    queue_length_limit: usize,
}

/// The seats of a level: what it has, and how few or many it may come to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub nominal: usize,
    pub lower: usize,
    pub upper: usize,
}

impl PriorityLevelSpec {
    /// How its requests wait; none for a level that is broken, which counts as not being there.
    pub(super) fn queuing(&self, name: &str) -> Option<Queuing> {
        let is_exempt = self.is_exempt();
        let is_whole = self.exempt.is_some() == is_exempt && self.limited.is_some() != is_exempt;
        if !is_whole || is_exempt != (name == "exempt") {
            return None;
        }
        let Some(limited) = &self.limited else { return Some(Queuing::Exempt) };
        match (limited.limit_response.r#type.as_str(), &limited.limit_response.queuing) {
            ("Reject", None) => Some(Queuing::Reject),
            ("Queue", Some(QueuingView { queues, hand_size, queue_length_limit })) => {
                let queuing = Queuing::Queue {
                    queues: *queues,
                    hand_size: *hand_size,
                    length_limit: *queue_length_limit,
                };
                shuffle_sharding::is_possible(*queues, *hand_size).then_some(queuing)
            }
            _ => None,
        }
    }

    /// Whether its requests never wait.
    pub(super) fn is_exempt(&self) -> bool {
        self.r#type == "Exempt"
    }

    /// Its part of what the server does at once.
    pub(super) fn shares(&self) -> u64 {
        self.part().map_or(0, |part| part.nominal_concurrency_shares)
    }

    /// What that comes to, with `all` seats for the shares of all levels.
    pub(super) fn limits(&self, all: u64, shares: u64) -> Limits {
        let seats = |seats: f64| seats as usize;
        let nominal = seats((all as f64 * self.shares() as f64 / shares.max(1) as f64).ceil());
        let percent = |percent: u64| seats((nominal as f64 * percent as f64 / 100.0).round());
        let part = self.part();
        let lendable = part.map_or(0, |part| percent(part.lendable_percent));
        let borrowable = part.and_then(|part| part.borrowing_limit_percent).filter(|_| !self.is_exempt());
        let upper = nominal.saturating_add(borrowable.map_or(all as usize, percent));
        Limits { nominal, lower: nominal.saturating_sub(lendable), upper }
    }

    /// How many seats one request takes at most; 0 is without a bound of the level's.
    pub(super) fn max_seats(&self, nominal: usize, queuing: Queuing) -> usize {
        match queuing {
            Queuing::Queue { hand_size, .. } => {
                let fraction = (nominal as f64 * MAX_SEATS_FRACTION).ceil() as usize;
                fraction.min(nominal / hand_size.max(1)).max(1)
            }
            Queuing::Reject | Queuing::Exempt => 0,
        }
    }

    fn part(&self) -> Option<&SpecPart> {
        self.limited.as_ref().or(self.exempt.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(spec: Value) -> PriorityLevelSpec {
        serde_json::from_value(spec).unwrap()
    }

    fn limited(part: Value) -> PriorityLevelSpec {
        read(json!({"type": "Limited", "limited": part}))
    }

    #[test]
    fn limits_are_shares_of_what_the_server_does_at_once() {
        let limits = |nominal, lower, upper| Limits { nominal, lower, upper };
        for (spec, expected) in [
            (read(json!({"type": "Exempt", "exempt": {}})), limits(0, 0, 600)),
            (
                read(
                    json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 49, "lendablePercent": 50}}),
                ),
                limits(120, 60, 720),
            ),
            (limited(json!({"nominalConcurrencyShares": 20, "lendablePercent": 50})), limits(49, 24, 649)),
            (
                limited(json!({"nominalConcurrencyShares": 20, "borrowingLimitPercent": 10})),
                limits(49, 49, 54),
            ),
            (limited(json!({"nominalConcurrencyShares": 5, "borrowingLimitPercent": 0})), limits(13, 13, 13)),
        ] {
            assert_eq!(spec.limits(600, 245), expected, "{spec:?}");
        }
    }

    #[test]
    fn broken_levels_are_none() {
        let queue = |queues: i64, hand: i64| {
            limited(
                json!({"limitResponse": {"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": 50}}}),
            )
        };
        let whole = Queuing::Queue { queues: 128, hand_size: 6, length_limit: 50 };
        for (spec, name, expected) in [
            (queue(128, 6), "a", Some(whole)),
            (queue(128, 6), "exempt", None),
            (queue(128, 10), "a", None),
            (queue(0, 0), "a", None),
            (limited(json!({"limitResponse": {"type": "Reject"}})), "a", Some(Queuing::Reject)),
            (limited(json!({"limitResponse": {"type": "Queue"}})), "a", None),
            (read(json!({"type": "Exempt", "exempt": {}})), "exempt", Some(Queuing::Exempt)),
            (read(json!({"type": "Exempt", "exempt": {}})), "a", None),
            (read(json!({"type": "Exempt"})), "exempt", None),
        ] {
            assert_eq!(spec.queuing(name), expected, "{spec:?}");
        }
        assert_eq!(queue(128, 6).max_seats(49, whole), 8);
        assert_eq!(queue(128, 6).max_seats(3, whole), 1);
    }
}
