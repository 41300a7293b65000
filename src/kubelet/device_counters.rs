//! Counters that devices of one driver share, so that parts of a device are not had beside the whole
//! (`sharedCounters` and `consumesCounters` of a ResourceSlice).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::device_amounts::{capacity_of, wrong_amount};

/// What devices have together.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CounterSet {
    /// How devices name it.
    pub name: String,
    /// As `memory: 80Gi`, or `memory: {value: 80Gi}`.
    pub counters: BTreeMap<String, Value>,
}

/// What a device takes of a set.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConsumedCounters {
    /// Which set.
    pub counter_set: String,
    /// How much of which of its counters.
    pub counters: BTreeMap<String, Value>,
}

impl CounterSet {
    /// As it is in a ResourceSlice.
    pub(crate) fn in_slice(&self) -> Value {
        json!({"name": self.name, "counters": amounts(&self.counters)})
    }

    /// What is wrong with it.
    pub(crate) fn problem(&self) -> Option<String> {
        problem_of_amounts("sharedCounters", &self.counters)
    }
}

impl ConsumedCounters {
    /// As it is in a ResourceSlice.
    pub(crate) fn in_slice(&self) -> Value {
        json!({"counterSet": self.counter_set, "counters": amounts(&self.counters)})
    }

    /// What is wrong with it among the sets of its driver. Of what no set has there is nothing, and nobody
    /// would ever get the device.
    pub(crate) fn problem(&self, sets: &BTreeMap<&str, &CounterSet>) -> Option<String> {
        let set = &self.counter_set;
        let Some(there) = sets.get(set.as_str()) else {
            return Some(format!("consumesCounters: no sharedCounters of this driver are named {set:?}"));
        };
        let missing = self.counters.keys().find(|name| !there.counters.contains_key(*name));
        let missing = missing.map(|name| format!("consumesCounters: {set:?} has no counter {name:?}"));
        missing.or_else(|| problem_of_amounts("consumesCounters", &self.counters))
    }
}

fn amounts(counters: &BTreeMap<String, Value>) -> BTreeMap<&String, Value> {
    counters.iter().map(|(name, given)| (name, capacity_of(given))).collect()
}

fn problem_of_amounts(field: &str, counters: &BTreeMap<String, Value>) -> Option<String> {
    let wrong = counters.iter().find_map(|(name, given)| Some((name, wrong_amount(given)?)));
    wrong.map(|(name, amount)| format!("{field}: counter {name:?}: {amount} is no quantity, as 80Gi"))
}
