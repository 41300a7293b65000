//! Traffic between pods of which policies had something to say: a record of its own, so that however much
//! there is of it, it pushes out nothing else.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

/// So many sorts of traffic are remembered, each with how often it was seen. At the bound the one is
/// forgotten that was not seen for longest.
pub const MAX_TRAFFIC: usize = 1_024;

/// Who asked whom, and what NetworkPolicies said of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficSort {
    /// Who asked: a pod as `default/client`, or the address of whoever is none.
    pub from: String,
    /// Who was asked, likewise.
    pub to: String,
    /// At which port.
    pub port: u16,
    /// `TCP` or `UDP`.
    pub protocol: String,
    /// Whether it was let in.
    pub is_allowed: bool,
    /// The policies that let it in, or that kept it out: each as `NAMESPACE/NAME`.
    pub policies: Vec<String>,
}

/// How often traffic was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgedTraffic {
    /// What was seen.
    #[serde(flatten)]
    pub sort: TrafficSort,
    /// How often.
    pub count: u64,
    /// When it was seen last, in microseconds since the cluster began.
    pub last_microseconds: u64,
}

/// All that is remembered.
#[derive(Default)]
pub(super) struct TrafficBook {
    seen: HashMap<Arc<TrafficSort>, SeenTraffic, RandomState>,
}

#[derive(Clone, Copy)]
struct SeenTraffic {
    count: u64,
    last_microseconds: u64,
}

impl TrafficBook {
    pub(super) fn add(&mut self, sort: TrafficSort, now_microseconds: u64) {
        if let Some(seen) = self.seen.get_mut(&sort) {
            seen.count += 1;
            seen.last_microseconds = now_microseconds;
            return;
        }
        if self.seen.len() == MAX_TRAFFIC {
            let oldest = self.seen.iter().min_by_key(|(_, seen)| seen.last_microseconds);
            if let Some(oldest) = oldest.map(|(sort, _)| sort.clone()) {
                self.seen.remove(&oldest);
            }
        }
        self.seen.insert(Arc::new(sort), SeenTraffic { count: 1, last_microseconds: now_microseconds });
    }

    /// Of a pod, or that a policy had something to say of; what was seen last comes last.
    pub(super) fn about(&self, is_policy: bool, key: &str) -> Vec<JudgedTraffic> {
        let is_it = |sort: &TrafficSort| {
            if is_policy {
                sort.policies.iter().any(|policy| policy == key)
            } else {
                sort.from == key || sort.to == key
            }
        };
        let mut found: Vec<JudgedTraffic> = self
            .seen
            .iter()
            .filter(|(sort, _)| is_it(sort))
            .map(|(sort, seen)| JudgedTraffic {
                sort: (**sort).clone(),
                count: seen.count,
                last_microseconds: seen.last_microseconds,
            })
            .collect();
        found.sort_by(|a, b| {
            let order = |it: &JudgedTraffic| (it.last_microseconds, it.sort.to.clone(), it.sort.port);
            order(a).cmp(&order(b))
        });
        found
    }
}

impl fmt::Display for JudgedTraffic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TrafficSort { from, to, port, protocol, is_allowed, policies } = &self.sort;
        let verdict = if *is_allowed { "let in" } else { "kept out" };
        let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
        let seconds = self.last_microseconds as f64 / 1e6;
        write!(
            out,
            "traffic: {from} to {to} at {port}/{protocol} {verdict} by {}, {times}, last after {seconds:.3} s",
            policies.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(to: &str, port: u16, is_allowed: bool) -> TrafficSort {
        let policies = vec!["default/deny".to_owned()];
        let (from, protocol) = ("default/client".to_owned(), "TCP".to_owned());
        TrafficSort { from, to: to.to_owned(), port, protocol, is_allowed, policies }
    }

    #[test]
    fn what_is_seen_again_is_counted() {
        let mut book = TrafficBook::default();
        book.add(sort("default/web", 80, false), 1_000_000);
        book.add(sort("default/web", 80, true), 2_000_000);
        book.add(sort("default/web", 80, false), 3_500_000);
        book.add(sort("default/other", 80, true), 4_000_000);
        let said: Vec<String> =
            book.about(false, "default/web").iter().map(JudgedTraffic::to_string).collect();
        assert_eq!(
            said,
            [
                "traffic: default/client to default/web at 80/TCP let in by default/deny, once, last after 2.000 s",
                "traffic: default/client to default/web at 80/TCP kept out by default/deny, 2 times, last after 3.500 s",
            ]
        );
        assert_eq!(book.about(false, "default/client").len(), 3);
        assert_eq!(book.about(true, "default/deny").len(), 3);
        assert_eq!(book.about(true, "default/web").len(), 0);
    }

    #[test]
    fn what_was_not_seen_for_longest_is_forgotten_at_the_bound() {
        let mut book = TrafficBook::default();
        for number in 0..=MAX_TRAFFIC {
            let port = u16::try_from(number).unwrap();
            book.add(sort("default/web", port, false), number as u64);
        }
        let all = book.about(false, "default/web");
        assert_eq!((all.len(), all[0].sort.port), (MAX_TRAFFIC, 1));
    }
}
